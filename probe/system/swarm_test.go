package system

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// unmasked is a frame of the server.
func unmasked(opcode byte, payload []byte) []byte {
	b := masked(nil, opcode, payload)
	head := len(b) - len(payload) - 4
	b[1] &= 0x7f
	return append(b[:head:head], payload...)
}

func streamed(id, partition uint32, seq uint64, data string) []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{1}, id), partition)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, seq), 0)
	return unmasked(0x2, append(append(binary.BigEndian.AppendUint16(b, 1), 't'), data...))
}

// quoted is a message of a client as the gateway sends it.
func quoted(id uint32, index int, due time.Duration, size int) []byte {
	b := appendUser(nil, id, "user.00001")
	b = append(b[:len(b)-3], append([]byte{9}, "publisher\x00\x00"...)...)
	return unmasked(0x2, appendPayload(b, index, due, size))
}

// Messages are the same however the bytes are cut; what is missing, repeated, told or another one is counted.
func TestSwarmCounts(t *testing.T) {
	filler := string(bytes.Repeat([]byte{'x'}, 200)) // a frame with a length of two bytes
	all := bytes.Join([][]byte{streamed(0, 0, 5, "a"), streamed(1, 0, 6, filler), streamed(0, 1, 5, `{"clOrdID":"FAN-0000000042"}`),
		unmasked(0x1, []byte(`{"op":"gap","ranges":[{"count":2},{}]}`)), streamed(0, 0, 9, "b"), quoted(0, 70, time.Second, 50), quoted(0, 71, 2*time.Second, 2048),
		unmasked(0x1, []byte(`{"op":"gap","id":0,"user":{"count":8}}`)), unmasked(0x1, []byte(`{"op":"gap","id":0,"user":{}}`)), unmasked(0x1, []byte(`{"op":"gap","id":0,"ranges":[{"count":4}],"user":{"count":1}}`))}, nil)
	var want account
	want.add(0, 5)
	want.add(0, 6)
	want.add(1, 5)
	want.add(0, 9)
	want.add(userPartition, 71)
	want.add(userPartition, 72)
	for step := 1; step <= len(all); step++ {
		s, l := &swarm{}, &listener{last: map[uint64]uint64{}, measured: true}
		s.clients = []*listener{l}
		for b := all; len(b) > 0; {
			n := min(step, len(b))
			if err := s.take(l, b[:n]); err != nil {
				t.Fatalf("cut every %d bytes: %v", step, err)
			}
			b = b[n:]
		}
		got := s.tally(func(int) account { return want })
		if got != (tally{expected: 6, received: 6, told: 17}) || s.received.Load() != 6 || s.data != int64(len("ab")+len(filler)+len(`{"clOrdID":"FAN-0000000042"}`)+50+2048) {
			t.Fatalf("cut every %d bytes: %+v, %d bytes of data", step, got, s.data)
		}
		if len(l.arrivals) != 3 || l.arrivals[0].index != 42 || l.arrivals[1].index != 70 || l.arrivals[2].index != 71 || l.arrivals[2].due != 2*time.Second {
			t.Fatalf("cut every %d bytes: arrivals %v", step, l.arrivals)
		}
		more := want
		more.add(0, 10)
		other := account{count: want.count, sum: want.sum + 1}
		if got := s.tally(func(int) account { return more }); got.missing != 1 {
			t.Fatalf("one is missing: %+v", got)
		}
		if got := s.tally(func(int) account { return other }); got.others != 1 {
			t.Fatalf("another one: %+v", got)
		}
		if err := s.take(l, streamed(0, 0, 9, "again")); err != nil || l.repeated != 1 {
			t.Fatalf("a message again: %d, %v", l.repeated, err)
		}
		if err := s.take(l, quoted(0, 70, 0, 50)); err != nil || l.repeated != 2 {
			t.Fatalf("a message of a client behind its successor: %d, %v", l.repeated, err)
		}
	}
	for name, b := range map[string][]byte{"fragment": {0x02, 1, 0, 0, 0}, "long": {0x82, 127, 0, 0}, "short message": unmasked(2, []byte("x")), "close": unmasked(8, nil), "text": unmasked(1, []byte(`{"op":"end"}`)),
		"gap of nothing": unmasked(1, []byte(`{"op":"gap"}`)), "no payload": unmasked(2, appendUser(nil, 0, "user.1")), "cut message of a client": unmasked(2, appendUser(nil, 0, "user.1")[:12]),
		"index at one end": unmasked(2, append(appendPayload(appendUser(nil, 0, "user.1"), 7, 0, 50), 'x'))} {
		if err := (&swarm{}).take(&listener{last: map[uint64]uint64{}}, b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	l := &listener{last: map[uint64]uint64{}, payload: 1024}
	if err := (&swarm{}).take(l, quoted(0, 1, 0, 1023)); err == nil || !strings.Contains(err.Error(), "1023 bytes of data, sent: 1024") {
		t.Errorf("a shorter message than was sent: %v", err)
	}
}

func TestSpread(t *testing.T) {
	at := time.Now()
	first := func(n int) (a []arrival) {
		for i := range 10 {
			a = append(a, arrival{index: i, at: at.Add(time.Duration(n))})
		}
		return a
	}
	if share, n := spread([][]arrival{first(1), first(2), first(3)}); share != 1 || n != 10 {
		t.Errorf("always in one order: %v of %d", share, n)
	}
	turns := [][]arrival{first(1), first(2)}
	for i := range 5 {
		turns[0][i].at = at.Add(time.Minute)
	}
	if share, n := spread(turns); share != 0 || n != 10 {
		t.Errorf("in turns: %v of %d", share, n)
	}
	if share, n := spread([][]arrival{first(1), nil}); share != 0 || n != 0 {
		t.Errorf("nothing in common: %v of %d", share, n)
	}
}

// Clients that are measured want the same topics, and orders are ones that a grid takes.
func TestFloodShape(t *testing.T) {
	f := flood{preset: published.Preset{Topics: 1000, Pub: 500, RateEach: 50, Subs: 100, Payload: 50}, clients: 100}
	list := f.measured(5)
	if len(list) != 5 || list[0] != 0 || list[4] != 90 {
		t.Fatalf("measured: %v", list)
	}
	for _, i := range list {
		if f.wanted(i)[0] != f.wanted(0)[0] {
			t.Errorf("client %d wants %v", i, f.wanted(i)[0])
		}
	}
	seen := map[int]bool{}
	for i := range f.preset.Topics {
		seen[f.topicOf(i)] = true
	}
	if len(seen) != f.preset.Topics {
		t.Errorf("%d topics in turn, want %d", len(seen), f.preset.Topics)
	}
	var o order.Order
	if err := order.Parse(newOrder(nil, "FAN-0000000007", f.account(3), "SYM", 100, ""), &o); err != nil {
		t.Error(err)
	}
	if f.topic(3) != "user.00003" {
		t.Errorf("topic %s", f.topic(3))
	}
	f.orders = true
	if f.topic(3) != "orders.T00003.SYM.buy" {
		t.Errorf("topic of orders %s", f.topic(3))
	}
}

// What a step found becomes the verdict.
func TestJudgeStream(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*flooded)
		want   Verdict
	}{
		"right":         {func(*flooded) {}, Pass},
		"missing":       {func(x *flooded) { x.missing = 1 }, Wrong},
		"repeated":      {func(x *flooded) { x.repeated = 1 }, Wrong},
		"told":          {func(x *flooded) { x.missing, x.told = 2, 2 }, Fail},
		"late orders":   {func(x *flooded) { x.late = time.Second }, Invalid},
		"probe is full": {func(x *flooded) { x.reader = 0.9 }, Invalid},
		"nothing":       {func(x *flooded) { x.expected = 0 }, Invalid},
	} {
		x, r := &flooded{tally: tally{expected: 10, received: 10}}, &Report{Verdict: Pass}
		c.change(x)
		streamRow(r, flood{name: name}, x, 36)
		if r.Verdict != c.want || len(r.Rows[0]) != len(streamColumns) {
			t.Errorf("%s: %s: %v", name, r.Verdict, r.Reasons)
		}
	}
}

// What is discarded is judged at each rate at which the cores were not full.
func TestJudgeDiscards(t *testing.T) {
	for name, c := range map[string]struct {
		steps   []discardStep
		want    Verdict
		printed int
	}{
		"flat":                    {[]discardStep{{0, 100, 0.5}, {5e5, 110, 0.7}, {1e6, 119, 0.79}}, Pass, 0},
		"too slow":                {[]discardStep{{0, 100, 0.5}, {5e5, 121, 0.7}, {1e6, 100, 0.7}}, Fail, 0},
		"full at the end":         {[]discardStep{{0, 100, 0.5}, {5e5, 110, 0.7}, {1e6, 500, 0.9}}, Pass, 1},
		"too slow before full":    {[]discardStep{{0, 100, 0.5}, {5e5, 130, 0.7}, {1e6, 500, 0.9}}, Fail, 1},
		"full from the beginning": {[]discardStep{{0, 100, 0.95}, {5e5, 130, 0.7}}, Pass, 1},
	} {
		r := &Report{Verdict: Pass}
		if r.judgeDiscards(c.steps); r.Verdict != c.want || len(r.Differences) != c.printed {
			t.Errorf("%s: %s %v, %v", name, r.Verdict, r.Reasons, r.Differences)
		}
	}
}

func TestStreamParameters(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{published.FanoutScenario, published.FilterScenario, published.LargeScenario} {
		s, _ := d.Scenario(name)
		last := time.Duration(0)
		for _, mode := range []scenario.Mode{scenario.Quick, scenario.Scaled, scenario.Exact} {
			p, err := fanoutOf(d, s, mode)
			if err != nil {
				t.Fatal(err)
			}
			length, err := Length(d, name, mode)
			if err != nil || length <= last {
				t.Errorf("%s %s: takes %v, %v for the one before, %v; %+v", name, mode, length, last, err, p)
			}
			last = length
		}
	}
}
