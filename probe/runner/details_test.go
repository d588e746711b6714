package runner

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
)

// TestDetailsByHand computes from the known step the expected time plot: calm, a stall of 50 ms
// from 500 ms on, one descent per thread, calm.
func TestDetailsByHand(t *testing.T) {
	plan, sh := known(t)
	for i := range sh.orders {
		sh.orders[i].Thread = uint8(i % 4)
	}
	ps := tally(plan, plan.Steps[0], 0, sh)
	c2e := ps.Stats.CreateToEnd
	// 950 orders take 210 us; of the others, four end and 46 are sent at 550 ms.
	sum := 950 * 210e3
	for i := 500; i < 550; i++ {
		sum += float64(550*ms - int64(i)*ms - 30_000)
		if i >= 504 {
			sum += 200e3
		}
	}
	if want := micro(sum / 1000); c2e.MeanUs != want || c2e.MinUs != 210 || c2e.MaxUs != 49_970 || c2e.Samples != 1000 {
		t.Errorf("create-to-end %+v, mean by hand %.1f", c2e, want)
	}
	if c2e.P99Us == nil || c2e.P999Us != nil {
		t.Errorf("1,000 samples carry p99 and not p99.9: %v %v", c2e.P99Us, c2e.P999Us)
	}
	// The best 80 % are all of the calm.
	if math.Abs(*c2e.Best80Us-210) > 0.3 {
		t.Errorf("best 80 %%: %.2f us, by hand 210", *c2e.Best80Us)
	}
	if len(ps.Spikes) != 1 {
		t.Fatalf("%d spikes, there is one: %+v", len(ps.Spikes), ps.Spikes)
	}
	s := ps.Spikes[0]
	// Times are after the warm-up of 100 ms.
	if s.Index != 500 || s.Thread != 0 || s.AtMs != 400.03 || s.CreateToEndUs != 49_970 || s.StallFromMs != 400.03 || s.StallToMs != 450 || s.Queued != 46 {
		t.Errorf("spike %+v", s)
	}
	if len(s.Descents) != 4 {
		t.Fatalf("%d descents, one a thread is 4: %+v", len(s.Descents), s.Descents)
	}
	for _, d := range s.Descents {
		// Every fourth order from 500 on, down to the first one that did not wait.
		if d.Orders < 12 || d.FromMs < 400 || d.ToMs > 454 || d.SlopeUsPerMs > -900 || d.SlopeUsPerMs < -1000 {
			t.Errorf("descent %+v", d)
		}
	}
	if n := len(s.Orders); n < 50 || n > spikeOrders {
		t.Errorf("%d orders around the spike", n)
	}
	first := ps.Series.First
	if len(first) != 20 || ps.Series.FirstBucketMs != 50 || len(ps.Series.Whole) != 10 {
		t.Fatalf("%d buckets of %v ms, %d of %v ms", len(first), ps.Series.FirstBucketMs, len(ps.Series.Whole), ps.Series.WholeBucketMs)
	}
	calm, stalled := first[7], first[8]
	if calm.AtMs != 350 || calm.Orders != 50 || calm.CreateToEnd != (report.Moments{MeanUs: 210, P50Us: 210, P99Us: 210, MaxUs: 210}) {
		t.Errorf("before the stall: %+v", calm)
	}
	if stalled.AtMs != 400 || stalled.CreateToEnd.MaxUs != 49_970 || stalled.SendToEnd.P50Us != 200 {
		t.Errorf("the stall: %+v", stalled)
	}
}

// TestDetailsAreBounded: a result fits its size limit, for any run.
func TestDetailsAreBounded(t *testing.T) {
	const n = 400_000 // 10 min at some rate, every latency different
	orders := make([]load.Order, n)
	for i := range orders {
		t1 := int64(i) * 1_500_000
		orders[i] = load.Order{T1: t1, T2: t1 + 1, T3: t1 + 100_000 + int64(i)*7_919%50_000_000, Thread: uint8(i % 64), Fate: load.Acked}
	}
	m := measured{orders: orders, intended: func(i int) int64 { return orders[i].T1 }, length: 10 * time.Minute}
	b, err := json.Marshal(struct {
		S *report.Series
		P []report.Spike
	}{m.series(), m.spikes(1)})
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 64<<10 {
		t.Errorf("%d bytes", len(b))
	}
	if len(m.series().Whole) > wholeBuckets {
		t.Errorf("%d buckets", len(m.series().Whole))
	}
}

func TestPausesWithinTheMeasuredPart(t *testing.T) {
	w := window{1_000 * ms, 2_000 * ms}
	pause := func(endMs int64) nodestatus.Pause { return nodestatus.Pause{EndUnixNs: endMs * ms, Ns: 2 * ms} }
	s, in := w.of("n", report.TimesExact, nodestatus.Pauses{Collections: 9, Recent: []nodestatus.Pause{pause(2_500), pause(1_400), pause(900)}})
	if s.Count != 1 || s.MaxUs != 2000 || len(in) != 1 || in[0].AtMs != 398 || in[0].Us != 2000 {
		t.Errorf("%+v %+v", s, in)
	}
	// Forgotten pauses may have been in the measured part.
	if s, _ := w.of("n", report.TimesExact, nodestatus.Pauses{Collections: 300, Recent: []nodestatus.Pause{pause(1_900), pause(1_400)}}); s.Count != -1 || s.Times != report.TimesNone {
		t.Errorf("%+v", s)
	}
	spikes := []report.Spike{{StallFromMs: 399, StallToMs: 410}, {StallFromMs: 402, StallToMs: 410}}
	overlay(spikes, in)
	if len(spikes[0].Pauses) != 1 || len(spikes[1].Pauses) != 0 {
		t.Errorf("a pause from 398 to 400 ms belongs to a stall from 399 ms and not to one from 402 ms: %+v", spikes)
	}
}
