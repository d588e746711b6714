package fanout

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// flat frames a message as binary clients get it, with the number first.
type flat struct{}

func (flat) Append(dst []byte, m *Message) ([]byte, int) {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, m.At.Seq)
	return append(append(dst, m.Topic...), m.Payload...), at
}

// lends is an outlet with a buffer of its own, as a connection has one.
type lends struct {
	Outlet
	b []byte
}

func (l *lends) Buffered() int { return len(l.b) }

func (l *lends) Message(frame []byte, slot int, number uint32) {
	at := len(l.b) + slot
	l.b = append(l.b, frame...)
	binary.BigEndian.PutUint32(l.b[at:], number)
}

// BenchmarkInterval is what a delivered message costs, but for its bytes on the way, in the shape of the published presets:
// 9,000 clients with 5 of 10,000 topics each get theirs each 100 ms, at 100 messages a second and client.
func BenchmarkInterval(b *testing.B) {
	const clients, each, topics, perMs = 9000, 5, 10_000, 200
	h, err := New(Config{Partitions: 1, Encodings: []Encoding{flat{}}, RingBytes: 16 << 20})
	if err != nil {
		b.Fatal(err)
	}
	outs := make([]lends, clients)
	for i := range outs {
		outs[i].b = make([]byte, 0, 2048)
		k := h.Open(&outs[i], 0)
		for j := range each {
			if _, err := k.Subscribe(Subscription{Number: uint32(j), Pattern: pattern(b, fmt.Sprintf("quotes.T%d", (i*each+j)%topics)), Flush: 100 * time.Millisecond}); err != nil {
				b.Fatal(err)
			}
		}
	}
	names := make([][]byte, topics)
	for i := range names {
		names[i] = fmt.Appendf(nil, "quotes.T%d", i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	m := &Message{Payload: make([]byte, 50)}
	now := time.Duration(0)
	step := func() {
		for range perMs {
			m.At.Seq++
			m.Topic = names[random.IntN(topics)]
			if err := h.Publish(m); err != nil {
				b.Fatal(err)
			}
		}
		now += time.Millisecond
		h.Tick(now)
		for i := range outs { // the kernel takes all at once
			if len(outs[i].b) > 0 {
				outs[i].b = outs[i].b[:0]
			}
		}
	}
	for range 200 {
		step()
	}
	before, from := h.Stats().Delivered, time.Now()
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(time.Since(from).Nanoseconds())/float64(h.Stats().Delivered-before), "ns/delivery")
	if n := h.Stats().Dropped; n > 0 {
		b.Fatalf("%d messages were left out", n)
	}
}
