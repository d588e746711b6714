package generator

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// FIXLogin is how clients log on: client n is the session of the n-th sender, in FIX 4.2.
type FIXLogin struct {
	Senders  []string `json:"senders"`
	Target   string   `json:"target"`
	User     string   `json:"user"`
	Password string   `json:"password"`
}

// fixDriver has a FIX session for each client. It builds and reads messages at a few hundred nanoseconds each, as all
// orders of a run have one form; what a gateway sends is counted by its type and ExecType, and not checked further.
type fixDriver struct{ spec *Spec }

func (d *fixDriver) Close() error { return nil }

// again is how long a Logon is tried: an acceptor may not have noticed yet that the connection before has ended.
const again = 2 * time.Second

// Connect logs the client's session on, with both numbers at 1.
func (d *fixDriver) Connect(n int) (Conn, error) {
	l := d.spec.FIX
	if l == nil || n >= len(l.Senders) {
		return nil, fmt.Errorf("fix: client %d has no session", n)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s, err := dial(d.spec.Addresses[n%len(d.spec.Addresses)], d.spec.Shape.Threads <= pinnedThreads)
		if err != nil {
			return nil, err
		}
		c := &fixConn{socket: s, sender: l.Senders[n], target: l.Target, seq: 1, in: make([]byte, 256<<10)}
		if err = c.logon(l); err == nil {
			return c, nil
		}
		c.close()
		if time.Since(begun) > again {
			return nil, fmt.Errorf("log on as %s: %w", c.sender, err)
		}
	}
}

type fixConn struct {
	*socket
	sender, target string
	seq            uint64 // of the next message
	in             []byte
	have           int    // bytes of in that are not a whole message yet
	order          []byte // the last order, as a form for the next one
	id, number     int    // where in it ClOrdID and MsgSeqNum are
	key            int    // where in an order of the generator ClOrdID is
}

// Close logs out, and waits a moment for the other side to do so.
func (c *fixConn) Close() {
	if c.write(c.session(nil, "5", "")) == nil {
		for until := time.Now().Add(time.Second); time.Now().Before(until); {
			n, errno := c.receive(c.in)
			waits := errno == syscall.EAGAIN || errno == syscall.EINTR
			if !waits && (errno != 0 || n == 0 || bytes.Contains(c.in[:n], []byte("\x0135=5\x01"))) {
				break
			}
		}
	}
	c.close()
}

// session appends a message of the session layer.
func (c *fixConn) session(dst []byte, kind, fields string) []byte {
	body := fmt.Sprintf("35=%s\x0149=%s\x0156=%s\x0134=%d\x0152=%s\x01%s", kind, c.sender, c.target, c.seq, time.Now().UTC().Format("20060102-15:04:05.000"), fields)
	c.seq++
	m := fmt.Appendf(nil, "8=FIX.4.2\x019=%d\x01%s", len(body), body)
	return append(dst, fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))...)
}

func (c *fixConn) logon(l *FIXLogin) error {
	fields := "98=0\x01108=3600\x01141=Y\x01"
	if l.User != "" {
		fields += "553=" + l.User + "\x01554=" + l.Password + "\x01"
	}
	if err := c.write(c.session(nil, "A", fields)); err != nil {
		return err
	}
	for {
		n, err := c.read(c.in[c.have:])
		if err != nil {
			return err
		}
		c.have += n
		m, err := c.message(c.in[:c.have])
		switch {
		case err != nil:
			return err
		case m == 0:
			continue
		case kindOf(c.in) != 'A':
			return fmt.Errorf("the answer is %.200q", c.in[:m])
		}
		c.have = copy(c.in, c.in[m:c.have])
		return nil
	}
}

// form makes an order of the generator the next one of the session: of the form of all of them the digits of ClOrdID,
// MsgSeqNum and CheckSum change.
func (c *fixConn) form(message []byte) error {
	if c.order == nil {
		var err error
		if c.order, err = fixorder.Readdress(nil, message, &fixorder.Address{Sender: c.sender, Target: c.target, Seq: c.seq}); err != nil {
			return err
		}
		c.id, c.key = keyOffset(c.order), keyOffset(message)
		c.number = bytes.Index(c.order, []byte("\x0134=")) + len("\x0134=")
	}
	copy(c.order[c.id:c.id+fixorder.IDSize], message[c.key:])
	end := c.number + bytes.IndexByte(c.order[c.number:], 1)
	for at, n := end-1, c.seq; at >= c.number; at, n = at-1, n/10 {
		c.order[at] = byte('0' + n%10)
	}
	c.seq++
	s, at := order.CheckSum(c.order[:len(c.order)-7]), len(c.order)-4
	c.order[at], c.order[at+1], c.order[at+2] = '0'+s/100, '0'+s/10%10, '0'+s%10
	c.out = append(c.out, c.order...)
	return nil
}

// message returns how long the first message is; 0: it is not whole.
func (c *fixConn) message(in []byte) (int, error) {
	const head = len("8=FIX.4.2\x019=")
	end := -1
	if len(in) > head {
		end = bytes.IndexByte(in[head:min(len(in), head+8)], 1)
	}
	if end < 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(string(in[head : head+end]))
	if err != nil {
		return 0, fmt.Errorf("no message of FIX 4.2: %.40q", in)
	}
	if n += head + end + 1 + len("10=000\x01"); n > len(in) {
		return 0, nil
	}
	return n, nil
}

// kindOf is the first character of MsgType.
func kindOf(m []byte) byte {
	return m[bytes.Index(m[:min(len(m), 32)], []byte("\x0135="))+len("\x0135=")]
}

// accepted is how an ExecutionReport of an order that was taken says so.
var accepted = []byte("\x01150=0\x01")

// reports reads once, and returns how many orders were reported as new.
func (c *fixConn) reports() (orders int, err error) {
	n, err := c.read(c.in[c.have:])
	if err != nil {
		return 0, err
	}
	rest := c.in[:c.have+n]
	for {
		n, err := c.message(rest)
		if err != nil || n == 0 {
			c.have = copy(c.in, rest)
			return orders, err
		}
		m := rest[:n]
		rest = rest[n:]
		switch kind := kindOf(m); {
		case kind == '8' && bytes.Contains(m, accepted):
			orders++
		case kind != '0':
			return orders, fmt.Errorf("%s was sent %.300q", c.sender, m)
		}
	}
}

func (c *fixConn) Submit(order []byte) error {
	if err := c.form(order); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	for {
		if n, err := c.reports(); err != nil || n > 0 {
			return err
		}
	}
}

func (c *fixConn) Get([]byte) error {
	return errors.New("fix: a session reads no orders; allowed: submits")
}

func (c *fixConn) Pipe(op Op, depth int, s *Stream) error {
	if op != Submit {
		return c.Get(nil)
	}
	return s.pipe(depth, c.form, c.flush, func(int) (int, error) { return c.reports() })
}
