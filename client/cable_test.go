package client

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// cable is a network that can be cut: its traffic is then dropped without a reset, and a dial
// blocks until its deadline.
type cable struct {
	mu      sync.Mutex
	cut     map[string]bool // addresses that new connections do not reach
	conns   []*cabled
	dialled map[string]int
}

type cabled struct {
	net.Conn
	to   string
	dead chan struct{} // closed when it is cut
	once sync.Once
	mu   sync.Mutex
	end  time.Time // read deadline
}

func newCable() *cable { return &cable{cut: map[string]bool{}, dialled: map[string]int{}} }

func (k *cable) dial(ctx context.Context, address string) (net.Conn, error) {
	k.mu.Lock()
	k.dialled[address]++
	cut := k.cut[address]
	k.mu.Unlock()
	if cut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &cabled{Conn: conn, to: address, dead: make(chan struct{})}
	k.mu.Lock()
	k.conns = append(k.conns, c)
	k.mu.Unlock()
	return c, nil
}

// vanish drops all traffic to an address; with redial, only that of the present connections.
func (k *cable) vanish(address string, redial bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut[address] = !redial
	for _, c := range k.conns {
		if c.to == address {
			c.once.Do(func() { close(c.dead) })
		}
	}
}

func (c *cabled) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.end = t
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t)
}

func (c *cabled) Read(p []byte) (int, error) {
	for {
		select {
		case <-c.dead:
			c.mu.Lock()
			end := c.end
			c.mu.Unlock()
			time.Sleep(time.Until(end))
			return 0, os.ErrDeadlineExceeded
		default:
		}
		n, err := c.Conn.Read(p)
		select {
		case <-c.dead: // what had arrived meanwhile is lost
		default:
			return n, err
		}
	}
}

func (c *cabled) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}
