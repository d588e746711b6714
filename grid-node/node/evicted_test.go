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

// Sessions of one client are evicted repeatedly, by a flood of sessions of its own, while
// it submits with them. Each order that meets an evicted session is resent under the next
// one: all are acknowledged, none has an unknown outcome. A round in which a connection
// ended for another reason, as on a stalled machine, is repeated: an order unanswered
// then, and evicted after it, may have been accepted.
func TestEvictedSessionsLeaveNothingUnknown(t *testing.T) {
	const rounds, attempts = 3, 12
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
	judged, evictions := 0, uint64(0)
	for attempt := 0; judged < rounds && attempt < attempts; attempt++ {
		before := c.Stats()
		orders, failed := submitInFlood(t, g.addrs[0], sessions, attempt)
		after := c.Stats()
		evicted := after.Evictions - before.Evictions
		if others := after.Connects - before.Connects - evicted; others != 0 {
			t.Logf("attempt %d: %d connections ended for another reason: not judged (%d failed)", attempt, others, len(failed))
			continue
		}
		judged++
		evictions += evicted
		for _, err := range failed {
			t.Errorf("attempt %d: %v", attempt, err)
		}
		if accepted := after.Accepted - before.Accepted; accepted != uint64(orders) {
			t.Errorf("attempt %d: %d of %d orders accepted, want all", attempt, accepted, orders)
		}
	}
	if judged < rounds {
		t.Fatalf("%d of %d rounds without another end of a connection, want %d", judged, attempts, rounds)
	}
	if evictions < rounds*uint64(len(sessions)) {
		t.Errorf("%d evictions: inconclusive about a session evicted again", evictions)
	}
}

// submitInFlood evicts the sessions by one flood, and submits with them during another;
// it returns how many orders there were and how those that failed did.
func submitInFlood(t *testing.T, addr string, sessions []*client.Session, attempt int) (orders int, failed []error) {
	t.Helper()
	floodSessions(t, addr, uint64(2*attempt), 4200) // all are quiet
	stop := make(chan struct{})
	var traders sync.WaitGroup
	var mu sync.Mutex
	answered := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		orders++
		if err != nil {
			failed = append(failed, err)
		}
	}
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
					done := func(_ client.Receipt, err error) {
						answered(err)
						batch.Done()
					}
					if err := s.SubmitAsync(fix(fmt.Sprintf("evicted-%d-%d-%d-%d", attempt, k, i, j)), done); err != nil {
						done(client.Receipt{}, err)
					}
				}
				batch.Wait()
			}
		})
	}
	floodSessions(t, addr, uint64(2*attempt+1), 4200)
	close(stop)
	traders.Wait()
	return orders, failed
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
