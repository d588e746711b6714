package fanout

import (
	"fmt"
	"testing"
)

// TestAheadIsBounded: of a client that does not read, a few of the subscriptions and messages that wait are looked at, however
// many there are: it is among the busy at each tick.
func TestAheadIsBounded(t *testing.T) {
	h, err := New(Config{Partitions: 1, Encodings: []Encoding{flat{}}, RingBytes: 1 << 20, RingSlots: 8192, Limits: Limits{Buffered: 100, Queued: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	c := h.Open(&log{buffered: 100}, 0)
	const subs, messages = 500, 12
	for n := range uint32(subs) {
		if _, err := c.Subscribe(Subscription{Number: n, Pattern: pattern(t, fmt.Sprintf("a.%d", n))}); err != nil {
			t.Fatal(err)
		}
		for range messages {
			if err := h.Publish(&Message{At: Position{Seq: h.Last(0).Seq + 1}, Topic: fmt.Appendf(nil, "a.%d", n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	looked := 0
	h.eachWaiting(c, func(*entry) { looked++ })
	if most := ahead / 2 * (ahead / 4); len(c.ready) != subs || looked != most {
		t.Errorf("%d messages of %d subscriptions are looked at, want %d of %d", looked, len(c.ready), most, subs)
	}
}
