package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// RedisConn is a connection of a client that asks anything: an answer is a string, an int64, nil, or an []any of these.
type RedisConn struct {
	net.Conn
	in  *bufio.Reader
	out *bufio.Writer
}

// RedisError is the answer to a command that failed.
type RedisError string

func (e RedisError) Error() string { return "redis: " + string(e) }

// DialRedis connects to a server.
func DialRedis(ctx context.Context, at system.Place, address string) (*RedisConn, error) {
	c, err := at.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &RedisConn{c, bufio.NewReaderSize(c, 64<<10), bufio.NewWriterSize(c, 64<<10)}, nil
}

// Send writes a command, whose answer is to be received; Flush sends what was written.
func (c *RedisConn) Send(args ...string) error {
	_, _ = fmt.Fprintf(c.out, "*%d\r\n", len(args)) // the last write has the error of all
	for _, a := range args {
		_, _ = c.out.WriteString("$" + strconv.Itoa(len(a)) + "\r\n" + a)
		if _, err := c.out.WriteString("\r\n"); err != nil {
			return err
		}
	}
	return nil
}

// Flush sends what Send has written.
func (c *RedisConn) Flush() error { return c.out.Flush() }

// Do sends a command and receives its answer.
func (c *RedisConn) Do(args ...string) (any, error) {
	if err := errors.Join(c.Send(args...), c.Flush()); err != nil {
		return nil, err
	}
	return c.Receive()
}

// Receive reads the next answer; an Error is of its command, any other error of the connection.
func (c *RedisConn) Receive() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("redis: an answer begins with %q", line)
	}
	text := line[1 : len(line)-2]
	switch line[0] {
	case '+':
		return text, nil
	case '-':
		return nil, RedisError(text)
	case ':':
		return strconv.ParseInt(text, 10, 64)
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || line[0] != '$' && line[0] != '*':
		return nil, fmt.Errorf("redis: an answer begins with %q", line)
	case n < 0:
		return nil, nil
	case line[0] == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.in, b)
		return string(b[:n]), err
	}
	all := make([]any, n)
	for i := range all {
		if all[i], err = c.Receive(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
