package node

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Sessions of one client are evicted again and again, by a flood of sessions of its own,
// while it submits with them. Each order that meets an evicted session goes out under the
// next one: all are acknowledged, none has an unknown outcome.
func TestEvictedSessionsLeaveNothingUnknown(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	var sessions []*client.Session
	for range 4 {
		s, err := c.OpenSession(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	orders := 0
	for round := range 3 {
		floodSessions(t, g.addrs[0], uint64(2*round), 4200) // all are quiet
		stop := make(chan struct{})
		var traders sync.WaitGroup
		var mu sync.Mutex
		for k, s := range sessions {
			traders.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(5<<k) * time.Millisecond): // quiet for long enough to be evicted
					}
					var batch sync.WaitGroup
					batch.Add(4)
					for j := range 4 {
						if err := s.SubmitAsync(fix(fmt.Sprintf("evicted-%d-%d-%d-%d", round, k, i, j)), func(_ client.Receipt, err error) {
							if err != nil {
								t.Errorf("round %d, session %d, order %d: %v", round, k, i, err)
							}
							batch.Done()
						}); err != nil {
							t.Errorf("round %d, session %d: %v", round, k, err)
							batch.Done()
						}
					}
					batch.Wait()
					mu.Lock()
					orders += 4
					mu.Unlock()
				}
			})
		}
		floodSessions(t, g.addrs[0], uint64(2*round+1), 4200)
		close(stop)
		traders.Wait()
	}
	s := c.Stats()
	t.Logf("%d orders, %d evictions of 4 sessions", orders, s.Evictions)
	if s.Evictions < 3*uint64(len(sessions)) {
		t.Errorf("%d evictions: this shows nothing of a session that is evicted again", s.Evictions)
	}
	if s.Unknown != 0 || int(s.Accepted) != orders {
		t.Errorf("%d of %d orders accepted, %d unknown; want all and none", s.Accepted, orders, s.Unknown)
	}
}

// floodSessions opens so many sessions, of the address that the test is at, and waits for
// the answers.
func floodSessions(t *testing.T, addr string, id uint64, n int) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	flooder := &raw{Conn: conn, t: t}
	b := hello(wire.RoleClient, 0, "flooder", "")
	for i := range n {
		b = wire.AppendOpenSession(b, 0, &wire.OpenSession{ReqID: uint64(i + 1), IDHi: 77 + id, IDLo: uint64(i + 1), Attempt: 1})
	}
	go func() { _, _ = flooder.Write(b) }()
	for answered := 0; answered < n; {
		if typ := wire.FrameType(flooder.next()); typ == wire.TypeSessionOpened || typ == wire.TypeReject { // Overloaded, now and then
			answered++
		}
	}
}
