package generator

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

func spec(s Shape) Spec {
	return Spec{Driver: Null, Shape: s, Size: fixorder.Size, Copies: 1, Warmup: 10 * time.Millisecond, Duration: 300 * time.Millisecond, Held: 10}
}

// Every shape counts what it did, through the interface of the process.
func TestShapesAgainstNothing(t *testing.T) {
	for _, shape := range []Shape{
		{Op: Submit, Rate: 2000, Threads: 4, Depth: 1}, {Op: Submit, Threads: 1, Depth: 1}, {Op: Submit, Threads: 20, Depth: 1},
		{Op: Submit, Threads: 4, Depth: 64}, {Op: Submit, Threads: 4, Depth: 64, TwoSided: true}, {Op: Get, Threads: 1, Depth: 1}, {Op: Get, Threads: 2, Depth: 8},
	} {
		in, err := json.Marshal(spec(shape))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Main(bytes.NewReader(in), &out); err != nil {
			t.Fatalf("%+v: %v", shape, err)
		}
		var r Result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Orders == 0 || r.Failed != 0 || r.SendToEnd.Count() != r.Orders {
			t.Errorf("%+v: %d orders, %d failed, %d latencies", shape, r.Orders, r.Failed, r.SendToEnd.Count())
		}
		if shape.Rate > 0 && (r.Orders != 600 || r.CreateToEnd.Count() != 600 || r.CreateToEnd.Min() < r.SendToEnd.Min()) {
			t.Errorf("%+v: %d orders, want 600 of 300 ms; create-to-end %d", shape, r.Orders, r.CreateToEnd.Count())
		}
	}
}

func TestSpecRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Shape.Op = "steal" }, `shape.op: value "steal"`},
		{func(s *Spec) { s.Shape.Threads = 0 }, "shape.threads: value 0"},
		{func(s *Spec) { s.Shape.Depth = 5000 }, "shape.depth: value 5000"},
		{func(s *Spec) { s.Shape.Rate, s.Shape.Depth = 10, 2 }, "shape.rate: value 10"},
		{func(s *Spec) { s.Shape.Op, s.Held = Get, 0 }, "held: value 0"},
		{func(s *Spec) { s.Shape.TwoSided, s.Size = true, 200 }, "shape.two_sided: value true"},
		{func(s *Spec) { s.Told = true }, "told: value true"},
		{func(s *Spec) { s.Duration = 0 }, "duration: value 0s"},
		{func(s *Spec) { s.Driver = Raw }, "request 0 and reply 0"},
		{func(s *Spec) { s.Driver = Grid }, "addresses: none given"},
		{func(s *Spec) { s.Driver, s.Addresses = "carrier-pigeon", []string{"x"} }, `driver: value "carrier-pigeon"`},
	} {
		s := spec(Shape{Op: Submit, Threads: 1, Depth: 1})
		c.change(&s)
		if _, err := Run(&s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
}

// A stream's window never exceeds its depth, every answer is of the oldest
// request, and only what is answered within the measured time counts.
func TestStreamCounts(t *testing.T) {
	n := 0
	s := &Stream{next: func() []byte { n++; return []byte{byte(n)} }, left: 5}
	for range 5 {
		if _, ok := s.Next(); !ok {
			t.Fatal("ended early")
		}
	}
	if _, ok := s.Next(); ok {
		t.Fatal("a sixth request of five")
	}
	s.Answered(5)
	if s.orders != 0 || s.head != 5 {
		t.Errorf("orders submitted ahead are counted: %d", s.orders)
	}
}

func TestSeries(t *testing.T) {
	schedule, err := load.NewSteady(2, 0) // at 0, 0.5, 1, 1.5 and 2 s
	if err != nil {
		t.Fatal(err)
	}
	const start = int64(7e9)
	var orders []load.Order
	for _, end := range []int64{100, 600, 0, 2400, 9000} { // ms behind the start; the third is not answered
		o := load.Order{T3: start + end*1e6}
		if end > 0 {
			o.Fate = load.Acked
		}
		orders = append(orders, o)
	}
	got := series(orders, schedule, start)
	if len(got) != 3 || got[0].Orders != 2 || got[1].Orders != 1 || got[2].Orders != 1 {
		t.Fatalf("%+v", got)
	}
	if got[0].Gap != 500*time.Millisecond || got[1].Gap != 0 || got[2].Gap != 6600*time.Millisecond {
		t.Errorf("gaps %v, %v, %v", got[0].Gap, got[1].Gap, got[2].Gap)
	}
	if late := got[1].CreateToEnd.Max(); late < 890e6 || late > 910e6 {
		t.Errorf("the order due at 1.5 s and answered at 2.4 s took %d ns", late)
	}
}
