package fanout

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// A connection may take what is due at the end of an interval already. What it does not take waits behind it, in order,
// and a later message that replaces an earlier one is not held, nor what an interval of minutes is for.
func TestHeldUntilTheIntervalEnds(t *testing.T) {
	h := small(t, Limits{})
	held, conflated, rare := &log{holds: 2}, &log{holds: 2}, &log{holds: 2}
	c := h.Open(held, 0)
	for _, w := range []struct {
		c *Client
		s Subscription
	}{
		{c, Subscription{Number: 1, Flush: 100 * time.Millisecond}}, {c, Subscription{Number: 2, Flush: 100 * time.Millisecond}},
		{h.Open(conflated, 0), Subscription{Number: 1, Policy: Conflate, Flush: 100 * time.Millisecond}},
		{h.Open(rare, 0), Subscription{Number: 1, Flush: time.Minute}},
	} {
		w.s.Pattern = pattern(t, "a")
		if w.s.Number == 2 {
			w.s.Pattern = pattern(t, "b")
		}
		if _, err := w.c.Subscribe(w.s); err != nil {
			t.Fatal(err)
		}
	}
	seq := uint64(0)
	publish := func(topic string) {
		seq++
		if err := h.Publish(&Message{At: Position{Seq: seq}, Topic: []byte(topic), Payload: []byte(strconv.Itoa(int(seq)))}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(l *log, heldNow int, sent ...string) {
		t.Helper()
		if len(l.held) != heldNow || !slices.Equal(l.sent, sent) {
			t.Fatalf("held are %q, %q is sent, want %d and %q", l.held, l.sent, heldNow, sent)
		}
	}
	h.Tick(0)
	publish("a")
	publish("a")
	publish("a")
	want(held, 2)
	want(conflated, 0)
	want(rare, 0)
	h.Tick(100 * time.Millisecond)
	want(held, 0, "a1", "a2", "a3")
	want(conflated, 0, "a3")
	want(rare, 0)
	publish("b")
	c.Unsubscribe(2)
	want(held, 0, "a1", "a2", "a3", "b4")
	publish("a")
	c.Subscription(1).Token()
	want(held, 0, "a1", "a2", "a3", "b4", "a5")
}
