package fanout

import (
	"fmt"
	"os"
	"reflect"
	"testing"
	"unsafe"
)

// Clients and subscriptions are many: what each has at rest is bounded. The sizes are those of classes of Go's heap.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(Sub{}); n > 80 {
		t.Errorf("a Sub has %d bytes, want at most 80", n)
	}
	if n := unsafe.Sizeof(Client{}); n > 96 {
		t.Errorf("a Client has %d bytes, want at most 96", n)
	}
}

// What all subscriptions without a backlog, or anything special, share is never written to, whatever the tests did.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.ValueOf(*noBacklog).IsZero() || !reflect.ValueOf(*nothing).IsZero() {
		fmt.Printf("what subscriptions share was written to: %+v, %+v\n", *noBacklog, *nothing)
		code = 1
	}
	os.Exit(code)
}

// What waits for a subscription is apart, and given back when it was sent, or told as a gap.
func TestBacklogsAreGivenBack(t *testing.T) {
	h := small(t, Limits{Buffered: 100, Queued: 200})
	out := &log{buffered: 100}
	c := h.Open(out, 0)
	s, err := c.Subscribe(Subscription{Number: 1, Pattern: pattern(t, "a.>")})
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	publish := func(n int) {
		for range n {
			at++
			if err := h.Publish(&Message{At: Position{Seq: uint64(at)}, Topic: []byte("a.b"), Payload: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var first *backlog
	for round, n := range []int{3, 2, 30} { // the last is more than may wait
		publish(n)
		b := s.backlog
		if b == noBacklog || len(b.queue) == 0 || (b.gap != nil) != (n == 30) {
			t.Fatalf("round %d: %+v", round, b)
		}
		if first == nil {
			first = b
		} else if b != first {
			t.Errorf("round %d has another backlog", round)
		}
		for out.buffered = 0; len(c.ready) > 0; out.buffered = 0 {
			c.Writable()
		}
		if s.backlog != noBacklog || s.special != nothing || len(h.backlogs) != 1 || c.Queued() != 0 {
			t.Errorf("round %d: %+v is left, %d are the hub's, %d bytes wait", round, s.backlog, len(h.backlogs), c.Queued())
		}
		out.buffered = 100
	}
	publish(1)
	if s.backlog == noBacklog {
		t.Fatal("nothing waits")
	}
	c.Close()
	if len(h.backlogs) != 1 {
		t.Errorf("%d backlogs of a client that was closed are the hub's", len(h.backlogs))
	}
}
