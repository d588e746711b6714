package generator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/client"
)

// gridDriver is package client as users have it: a session per client, whose I/O
// is the client's default unless Spec.ClientIO is set.
type gridDriver struct {
	spec   *Spec
	client *client.Client
	mode   client.ReadMode
	// executions that the clients were told of.
	executions atomic.Int64
}

var readModes = map[ReadMode]client.ReadMode{"": client.Confirmed, Confirmed: client.Confirmed, Leased: client.Leased}

func newGridDriver(s *Spec) (Driver, error) {
	mode, ok := readModes[s.ReadMode]
	if !ok {
		return nil, fmt.Errorf("read_mode: value %q, allowed: confirmed, leased", s.ReadMode)
	}
	cfg := client.Config{Endpoints: s.Addresses, Name: "bench", RequestTimeout: answerLimit}
	if s.TLS != nil {
		cfg.TLS = client.TLSFiles(*s.TLS)
	}
	if s.ClientIO != "" {
		io, err := client.ParseIO(s.ClientIO)
		if err != nil {
			return nil, err
		}
		cfg.IO = io
	}
	d := &gridDriver{spec: s, mode: mode}
	if s.Told {
		cfg.OnExecutions = func(list []client.Execution) { d.executions.Add(int64(len(list))) }
	}
	var err error
	if d.client, err = client.Dial(context.Background(), cfg); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *gridDriver) Close() error { return d.client.Close() }

func (d *gridDriver) Connect(n int) (Conn, error) {
	parts := d.client.Table()
	if len(parts) == 0 {
		return nil, errors.New("the grid has no partitions")
	}
	s, err := d.client.Session(parts[n%len(parts)].ID)
	if err != nil {
		return nil, err
	}
	return &gridConn{d: d, session: s}, nil
}

type gridConn struct {
	d       *gridDriver
	session *client.Session
}

func (c *gridConn) Close() { _ = c.session.Close() } // it never fails

func (c *gridConn) check(r client.Receipt) error {
	if int(r.Copies) < c.d.spec.Copies {
		return fmt.Errorf("acknowledged with %d copies, wanted: %d", r.Copies, c.d.spec.Copies)
	}
	return nil
}

func (c *gridConn) Submit(order []byte) error {
	r, err := c.session.Submit(context.Background(), order)
	if err != nil {
		return err
	}
	return c.check(r)
}

func (c *gridConn) Get(key []byte) error {
	_, err := c.d.client.GetByClOrdID(context.Background(), string(key), client.WithMode(c.d.mode))
	return err
}

func (c *gridConn) Pipe(op Op, depth int, s *Stream) error {
	p := &gridPipe{conn: c, stream: s, over: make(chan struct{})}
	push, onBatch := c.session.Push, c.session.OnBatch
	if op == Get {
		r, err := c.d.client.Reader(c.session.Partition(), client.WithMode(c.d.mode))
		if err != nil {
			return err
		}
		defer r.Close() //nolint:errcheck // it never fails
		read := p.read
		p.enqueue = func(key []byte) error { return r.EnqueueByClOrdID(key, read) }
		push, onBatch = r.Push, r.OnBatch
	} else {
		acknowledged := p.acknowledged
		p.enqueue = func(order []byte) error { return c.session.Enqueue(order, acknowledged) }
	}
	onBatch(p.batch)
	defer onBatch(nil)
	p.mu.Lock()
	p.send(depth)
	idle := p.unanswered == 0
	p.mu.Unlock()
	if !idle {
		push()
		<-p.over
	}
	return p.err
}

// gridPipe keeps requests unanswered: a batch of answers sends as many new ones,
// in one write, as the raw drivers do.
type gridPipe struct {
	conn    *gridConn
	enqueue func([]byte) error

	// The client runs callbacks from one goroutine at a time, but the first
	// requests are sent from another.
	mu         sync.Mutex
	stream     *Stream
	unanswered int
	err        error // of sending
	over       chan struct{}

	answered int   // of this batch; callbacks only
	failed   error // callbacks only
}

// send enqueues up to n requests.
func (p *gridPipe) send(n int) {
	for ; n > 0 && p.err == nil; n-- {
		m, ok := p.stream.Next()
		if !ok {
			return
		}
		if p.err = p.enqueue(m); p.err == nil {
			p.unanswered++
		}
	}
}

func (p *gridPipe) acknowledged(r client.Receipt, err error) {
	p.answered++
	if err == nil {
		err = p.conn.check(r)
	}
	if err != nil && p.failed == nil {
		p.failed = err
	}
}

// read handles an order; its bytes are read as far as any user must.
func (p *gridPipe) read(o *client.OrderView, err error) {
	p.answered++
	if err == nil && len(o.FIX()) != p.conn.d.spec.Size {
		err = fmt.Errorf("order %s has %d bytes, wanted: %d", o.ClOrdID(), len(o.FIX()), p.conn.d.spec.Size)
	}
	if err != nil && p.failed == nil {
		p.failed = err
	}
}

// batch takes the answers of one read into account and sends what they made room for.
func (p *gridPipe) batch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.answered
	p.answered = 0
	p.stream.Answered(n)
	p.unanswered -= n
	if p.err == nil {
		p.err = p.failed
	}
	p.send(n)
	if p.unanswered == 0 && n > 0 {
		close(p.over)
	}
}
