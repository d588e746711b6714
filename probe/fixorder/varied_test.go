package fixorder

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/flow"
)

func variedOf(t testing.TB, v Version) (*Varied, *flow.Messages) {
	t.Helper()
	s, err := flow.New(flow.Params{Arrival: flow.Arrival{Type: flow.Hawkes}.Defaulted(), Varied: true, Rate: 3000, Measure: 5 * time.Second, Probes: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewVaried(v, ID{Run: 42, Probe: 1})
	if err != nil {
		t.Fatal(err)
	}
	m.Use(1000, s.Messages())
	return m, s.Messages()
}

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// Every message is valid for the grid, names the order it refers to, and passes the check of
// another maker, which has never seen it.
func TestVariedMessagesAreOrders(t *testing.T) {
	for _, v := range Versions() {
		m, content := variedOf(t, v)
		checker, _ := variedOf(t, v)
		kinds := map[byte]int{}
		sizes := 0
		var o order.Order
		for i := range content.Len() {
			index := 1000 + i
			fix := m.Make(index, i+1, someTime, someTime.Add(time.Millisecond))
			if err := order.Parse(fix, &o); err != nil {
				t.Fatalf("FIX %s message %d: %v\n%q", v, index, err, fix)
			}
			kinds[o.MsgType]++
			sizes = max(sizes, len(fix))
			if got, want := string(fix[o.ClOrdIDOff:][:o.ClOrdIDLen]), (ID{Run: 42, Probe: 1}).ClOrdID(index); got != want {
				t.Fatalf("message %d has ClOrdID %s", index, got)
			}
			var c flow.Message
			content.Message(i, &c)
			if off, n, ok := order.Find(fix, 41); ok != (c.Kind != flow.NewOrder) || ok && string(fix[off:off+n]) != (ID{Run: 42, Probe: 1}).ClOrdID(1000+c.Target) {
				t.Fatalf("message %d (%c) refers to %q, want %d", index, c.Kind, fix[off:off+n], 1000+c.Target)
			}
			if err := checker.Check(index, fix); err != nil {
				t.Fatalf("message %d: %v", index, err)
			}
		}
		if kinds['D'] == 0 || kinds['F'] == 0 || kinds['G'] == 0 {
			t.Errorf("FIX %s: kinds %v", v, kinds)
		}
		if sizes > Size {
			t.Errorf("FIX %s: up to %d bytes; places in a grid are planned for %d", v, sizes, Size)
		}
	}
}

func TestVariedDoesNotAllocate(t *testing.T) {
	m, content := variedOf(t, FIX44)
	i := int64(0)
	if n := testing.AllocsPerRun(2000, func() {
		m.Make(1000+i%content.Len(), i+1, someTime, someTime)
		i++
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// Check detects every changed byte.
func TestVariedCheckSeesEveryByte(t *testing.T) {
	m, _ := variedOf(t, FIX42)
	checker, _ := variedOf(t, FIX42)
	fix := bytes.Clone(m.Make(1003, 7, someTime, someTime))
	free := bytes.Index(fix, []byte("\x0134=")) // MsgSeqNum and times are accepted as they are, if the sum fits
	end := bytes.Index(fix, []byte("\x0111="))
	for i := range fix {
		bad := bytes.Clone(fix)
		bad[i] ^= 1
		if err := checker.Check(1003, bad); err == nil {
			t.Errorf("byte %d (%q) changed and not detected", i, fix[i])
		}
		if i > free && i < end {
			continue
		}
		order.Seal(bad) // a change with a correct checksum
		if err := checker.Check(1003, bad); err == nil && !bytes.Equal(bad, fix) {
			t.Errorf("byte %d (%q) changed with the sum and not detected", i, fix[i])
		}
	}
	for name, c := range map[string]struct {
		index int64
		fix   []byte
		want  string
	}{
		"another order":   {1004, fix, "differs from what was sent"},
		"before the step": {999, fix, "no message 999"},
		"behind the step": {1 << 40, fix, "no message"},
		"nothing":         {1003, nil, "0 bytes are not an order"},
		"cut":             {1003, fix[:100], "100 bytes are not an order"},
		"longer":          {1003, append(bytes.Clone(fix), 'x'), "differs"},
	} {
		if err := checker.Check(c.index, c.fix); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkVaried(b *testing.B) {
	m, content := variedOf(b, FIX42)
	i := int64(0)
	for b.Loop() {
		m.Make(1000+i%content.Len(), i%MaxSeqNum+1, someTime, someTime)
		i++
	}
}
