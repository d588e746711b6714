package generator

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// redisDriver speaks RESP: SET key order and, with two copies, WAIT 1. WAIT
// blocks its connection, so a pipelining client waits for a batch at a time.
type redisDriver struct{ spec *Spec }

func (d *redisDriver) Close() error { return nil }

func (d *redisDriver) Connect(n int) (Conn, error) {
	s, err := dial(d.spec.Addresses[n%len(d.spec.Addresses)], d.spec.Shape.Threads <= pinnedThreads)
	if err != nil {
		return nil, err
	}
	return &redisConn{socket: s, wait: d.spec.Copies > 1, in: make([]byte, 256<<10)}, nil
}

type redisConn struct {
	*socket
	wait   bool
	in     []byte
	r, w   int // in[r:w] is unread
	keyOff int
}

func (c *redisConn) Close() { c.close() }

// waitCommand: one replica, within the time a client waits for any answer (ms).
const waitCommand = "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$5\r\n10000\r\n"

func (c *redisConn) set(order []byte) {
	if c.keyOff == 0 {
		c.keyOff = keyOffset(order)
	}
	c.out = append(c.out, "*3\r\n$3\r\nSET\r\n$20\r\n"...)
	c.out = append(c.out, order[c.keyOff:c.keyOff+fixorder.IDSize]...)
	c.out = append(c.out, "\r\n$"...)
	c.out = strconv.AppendInt(c.out, int64(len(order)), 10)
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, order...)
	c.out = append(c.out, "\r\n"...)
}

func (c *redisConn) get(key []byte) {
	c.out = append(c.out, "*2\r\n$3\r\nGET\r\n$20\r\n"...)
	c.out = append(c.out, key...)
	c.out = append(c.out, "\r\n"...)
}

func (c *redisConn) Submit(order []byte) error {
	c.set(order)
	return c.finish(1)
}

// finish sends n SETs, with their WAIT, and reads all answers.
func (c *redisConn) finish(n int) error {
	if c.wait {
		c.out = append(c.out, waitCommand...)
	}
	if err := c.flush(); err != nil {
		return err
	}
	for ; n > 0; n-- {
		if err := c.answer(Submit); err != nil {
			return err
		}
	}
	if !c.wait {
		return nil
	}
	line, err := c.line()
	if err == nil && !bytes.Equal(line, []byte(":1")) {
		err = fmt.Errorf("WAIT 1 was answered %.60q, wanted: :1", line)
	}
	return err
}

func (c *redisConn) Get(key []byte) error {
	c.get(key)
	if err := c.flush(); err != nil {
		return err
	}
	return c.answer(Get)
}

// answer reads the answer to one SET or GET.
func (c *redisConn) answer(op Op) error {
	line, err := c.line()
	switch {
	case err != nil:
		return err
	case op == Submit && bytes.Equal(line, []byte("+OK")):
		return nil
	case op == Get && len(line) > 1 && line[0] == '$':
		n, err := strconv.Atoi(string(line[1:]))
		if err != nil || n < 1 {
			return fmt.Errorf("GET was answered %.60q, wanted: an order", line)
		}
		return c.skip(n + 2)
	}
	return fmt.Errorf("%s was answered %.80q", op, line)
}

// line returns the next line without its end, valid until the next read.
func (c *redisConn) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(c.in[c.r:c.w], '\n'); i > 0 {
			line := c.in[c.r : c.r+i-1]
			c.r += i + 1
			return line, nil
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

func (c *redisConn) skip(n int) error {
	for c.w-c.r < n {
		if err := c.fill(); err != nil {
			return err
		}
	}
	c.r += n
	return nil
}

func (c *redisConn) fill() error {
	if c.r > 0 {
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.in) {
		return fmt.Errorf("an answer of more than %d bytes", len(c.in))
	}
	n, err := c.read(c.in[c.w:])
	c.w += n
	return err
}

func (c *redisConn) Pipe(op Op, depth int, s *Stream) error {
	if op == Submit && c.wait {
		return c.batches(depth, s)
	}
	put := func(m []byte) error {
		if op == Get {
			c.get(m)
		} else {
			c.set(m)
		}
		return nil
	}
	return s.pipe(depth, put, c.flush, func(unanswered int) (n int, err error) {
		// One answer at least, and then all that came with it.
		for n == 0 || n < unanswered && bytes.IndexByte(c.in[c.r:c.w], '\n') >= 0 {
			if err := c.answer(op); err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
}

func (c *redisConn) batches(depth int, s *Stream) error {
	for {
		n := 0
		for ; n < depth; n++ {
			m, ok := s.Next()
			if !ok {
				break
			}
			c.set(m)
		}
		if n == 0 {
			return nil
		}
		if err := c.finish(n); err != nil {
			return err
		}
		s.Answered(n)
	}
}
