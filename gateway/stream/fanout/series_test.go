package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// queue is what the pages of a series are of: numbers by their places.
type queue map[Place]int

// Page implements Source.
func (q queue) Page(from Place) ([]byte, Place, bool) {
	var b []byte
	to := from
	for _, p := range slices.SortedFunc(maps.Keys(q), func(a, b Place) int { return slices.Compare(a[:], b[:]) }) {
		if slices.Compare(p[:], from[:]) <= 0 {
			continue
		}
		if len(b) > 20 {
			return b, to, false
		}
		b = fmt.Appendf(b, "+%d:%d ", p[0], q[p])
		to = p
	}
	return append(b, "last"...), Place{9999}, true
}

// follower is a client of series.
type follower struct {
	t        *rapid.T
	buffered int
	got      map[uint32]map[int]int
	whole    map[uint32]bool
	at       map[uint32]Position
	from     map[uint32]uint64
	gaps     int
	closed   error
}

func (f *follower) Buffered() int { return f.buffered }

func (f *follower) Message(frame []byte, _ int, number uint32) {
	at := Position{binary.BigEndian.Uint64(frame[6:]), binary.BigEndian.Uint32(frame[14:])}
	text := strings.TrimPrefix(string(frame[18:]), "book.IBM.L3")
	if at.Before(f.at[number]) {
		f.t.Fatalf("%d: %s was sent behind %s", number, at, f.at[number])
	}
	if f.got[number] == nil {
		if at.Seq < f.from[number] {
			f.t.Fatalf("%d: resumed from %d, begins at %s", number, f.from[number], at)
		}
		f.got[number] = map[int]int{}
	}
	f.at[number] = at
	f.buffered += len(frame)
	for _, word := range strings.Fields(text) {
		var place, value int
		switch _, err := fmt.Sscanf(word[1:], "%d:%d", &place, &value); {
		case word == "last":
			if f.whole[number] {
				f.t.Fatalf("%d: a last page twice", number)
			}
			f.whole[number] = true
			continue
		case err != nil:
			f.t.Fatalf("message %q: %v", text, err)
		}
		before, there := f.got[number][place]
		if there != (word[0] == '-') || there && before != value {
			f.t.Fatalf("%d at %s: %s, where it has %d, %v", number, at, word, before, there)
		}
		if delete(f.got[number], place); word[0] == '+' {
			f.got[number][place] = value
		}
	}
}

func (f *follower) Gap(number uint32, g *Gap) {
	if r := g.Ranges[0]; r.After != f.at[number] || r.Through.Before(r.After) {
		f.t.Fatalf("%d: a gap of %+v behind %s", number, g, f.at[number])
	}
	f.gaps++
	f.buffered += 40
	f.got[number], f.whole[number] = map[int]int{}, false
}

func (f *follower) Live(uint32)     { f.t.Fatal("live was told") }
func (f *follower) Close(err error) { f.closed = err }

// TestSeriesProperty: whatever changes, begins anew, is subscribed to and slow, each client gets what is added once and what
// leaves only if it has it, and in the end has what the series is of, or was told a gap and has it from there, or was closed.
func TestSeriesProperty(tb *testing.T) {
	gaps := 0
	rapid.Check(tb, func(t *rapid.T) {
		q, opened := queue{}, 0
		h, err := New(Config{Lineage: 3, Partitions: 1, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 4096, RingSlots: 16, Limits: Limits{Buffered: 9000, Series: 3}, Latest: "book", Series: "L3",
			Opened: func(string) (Source, int, error) { opened++; return q, 0, nil }, Closed: func(string) { opened-- }})
		if err != nil {
			t.Fatal(err)
		}
		const topic = "book.IBM.L3"
		var list []*follower
		var clients []*Client
		seq, shown, number := uint64(1), false, uint32(0)
		h.Examined(0, Position{Seq: seq})
		open := func(resume bool) {
			if len(list) == 0 || len(list) < 6 && rapid.IntRange(0, 2).Draw(t, "new") > 0 {
				f := &follower{t: t, got: map[uint32]map[int]int{}, whole: map[uint32]bool{}, at: map[uint32]Position{}, from: map[uint32]uint64{}}
				list, clients = append(list, f), append(clients, h.Open(f, 0))
			}
			i := len(list) - 1
			number++
			w := Subscription{Number: number, Pattern: pattern(tb, topic), Policy: []Policy{Drop, Drop, Disconnect}[rapid.IntRange(0, 2).Draw(t, "policy")]}
			if resume {
				w.Resume = &Token{Lineage: 3, At: []PartitionPosition{{0, Position{Seq: seq}}}}
				list[i].from[number] = seq
			}
			if list[i].closed != nil {
				return
			}
			n := len(clients[i].subs)
			if _, err := clients[i].Subscribe(w); (err != nil) != (n == 3) {
				t.Fatalf("%d subscriptions: %v", n, err)
			}
			shown = shown && opened > 0 && len(h.series[topic].subs) > 0 && h.series[topic].ready
		}
		change := func() {
			seq++
			h.Examined(0, Position{Seq: seq})
			p, text := Place{uint64(rapid.IntRange(1, 20).Draw(t, "place"))}, ""
			if v, there := q[p]; there {
				delete(q, p)
				text = fmt.Sprintf("-%d:%d", p[0], v)
			} else {
				q[p] = int(seq)
				text = fmt.Sprintf("+%d:%d", p[0], seq)
			}
			if x := h.series[topic]; x == nil || !x.ready {
				return
			}
			if err := h.Changed(topic, p, Position{Seq: seq, Index: 1}, []byte(text)); err != nil {
				t.Fatal(err)
			}
			h.Reached(topic, Position{Seq: seq, Index: 7}, false)
		}
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0, 1:
				open(rapid.Bool().Draw(t, "resume"))
			case 2:
				seq++
				h.Examined(0, Position{Seq: seq})
				h.Restarted(topic, Position{Seq: seq, Index: 7}, false)
			case 3:
				h.Interrupted(topic)
			case 4:
				for i := range list {
					if list[i].buffered = 8990 * rapid.IntRange(0, 1).Draw(t, "slow"); list[i].buffered == 0 {
						clients[i].Writable()
					}
				}
			case 5:
				for range rapid.SampledFrom([]int{3, seriesMost}).Draw(t, "changes") {
					change()
				}
			case 6:
				h.Tick(0)
			case 7:
				change()
			}
		}
		h.Restarted(topic, Position{Seq: seq + 1, Index: 7}, false)
		for range 200 {
			for i := range list {
				list[i].buffered = 0
				clients[i].Writable()
			}
			h.Tick(0)
		}
		for i, f := range list {
			gaps += f.gaps
			if f.closed != nil {
				if !errors.Is(f.closed, ErrTooSlow) {
					t.Fatal(f.closed)
				}
				continue
			}
			for _, s := range clients[i].subs {
				want := map[int]int{}
				for p, v := range q {
					want[int(p[0])] = v
				}
				if !f.whole[s.number] || !maps.Equal(f.got[s.number], want) {
					t.Fatalf("%d has %v (whole: %v), it is %v", s.number, f.got[s.number], f.whole[s.number], want)
				}
			}
			clients[i].Close()
		}
		if s := h.Stats(); opened != 0 || s.Waiting != 0 || s.Subscriptions != 0 {
			t.Fatalf("%d series are open, and %+v", opened, s)
		}
	})
	if gaps == 0 {
		tb.Error("no client was told a gap")
	}
}
