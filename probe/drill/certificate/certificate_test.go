package certificate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

const ms1 = int64(time.Millisecond)

// good is a second of an order every ms over one session, a fault at 400 ms that delays nothing,
// two copies and a sink.
func good() *history.History {
	start := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	h := &history.History{Scenario: "drill", Started: start, Rate: 1000, Replicas: 2, Partitions: []wire.PartitionID{0}, Nodes: []history.Node{{Pod: "a"}}}
	s := history.Stream{ID: fixorder.ID{Run: 5}, Node: -1, Sessions: 1}
	var log []history.Entry
	for i := range int64(1000) {
		at := (i + 1) * ms1
		s.Orders = append(s.Orders, load.Order{T1: at, T2: at, T3: at + ms1/2, Seq: uint64(i + 1), Epoch: 1, Copies: 2, Fate: load.Acked})
		e := history.Entry{Seq: uint64(i + 1), Epoch: 1, Lineage: 1, Hash: uint64(1000 + i), Index: i}
		if i > 0 {
			e.Prev = log[i-1].Hash
		}
		log = append(log, e)
	}
	h.Streams = []history.Stream{s}
	clone := func() []history.Entry { return append([]history.Entry(nil), log...) }
	h.Logs = []history.Log{{Where: "a/1", InSync: true, Entries: clone()}, {Where: "b/1", InSync: true, Primary: true, Entries: clone()}}
	h.Sinks = []history.Log{{Where: "a/x.log", Entries: clone()}}
	h.Reps = []history.Rep{{Number: 1, What: "PodKill a", Partitions: h.Partitions, Ready: 100 * ms1, From: 400 * ms1, To: 401 * ms1, Healed: 401 * ms1, Served: 420 * ms1, Redundant: 450 * ms1}}
	h.Calm = []history.Span{{From: 100 * ms1, To: 400 * ms1}}
	h.Drill = &history.Drill{Judged: start.Add(3 * time.Second), Context: api.Context{Drill: "ns/d", Seed: 3, StepsAsked: 1},
		Faults: []history.Fault{{Step: api.Step{Repetition: 1, Fault: "kill", Type: "PodKill", Provider: "ChaosMesh"}, Witness: api.Witness{State: api.Seen, Message: "uid is gone"}}}}
	return h
}

// outage delays the answers to orders created from..to, in ms, until its end.
func outage(h *history.History, from, to int64) {
	for i := from; i < to; i++ {
		h.Streams[0].Orders[i].T3 = to * ms1
	}
}

// cut removes the entries from..to everywhere.
func cut(h *history.History, from, to int, sinks bool) {
	all := []*history.Log{&h.Logs[0], &h.Logs[1]}
	if sinks {
		all = append(all, &h.Sinks[0])
	}
	for _, l := range all {
		l.Entries = append(l.Entries[:from:from], l.Entries[to:]...)
	}
}

// cascade: at 400 ms one copy fails, which the grid reports at 410 ms; from 405 ms on receipts name
// one copy. At 900 ms the last process fails, and with it everything; orders acknowledged from
// `from` on are not downstream.
func cascade(h *history.History, from int) {
	for i := 405; i < 1000; i++ {
		h.Streams[0].Orders[i].Copies = 1
	}
	for i := 900; i < 1000; i++ {
		o := &h.Streams[0].Orders[i]
		*o = load.Order{T1: o.T1, T2: o.T2, T3: o.T3, Fate: load.Unknown}
	}
	h.Degraded = []history.Degraded{{Span: history.Span{From: 410 * ms1}, Copies: 1}}
	for i := range h.Logs {
		h.Logs[i].Entries, h.Logs[i].Error = nil, "no route to host"
	}
	h.Sinks[0].Entries = h.Sinks[0].Entries[:from]
	d := h.Drill
	d.NoHolder = map[string]string{"p0": "the grid reports DataLossSuspected"}
	second := h.Reps[0]
	second.Ready, second.From, second.To, second.Healed, second.Served, second.Redundant, second.Failed = 800*ms1, 900*ms1, 900*ms1, 900*ms1, 0, 0, "no service within 1m"
	h.Reps = append(h.Reps, second)
	f := d.Faults[0]
	f.Index = 1
	d.Faults = append(d.Faults, f)
	d.Context.StepsAsked = 2
	d.Context.Expect.Loss = api.LossWarned
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*history.History)
		want   Verdict
		reason string
	}{
		"good":            {func(*history.History) {}, Pass, ""},
		"no sink":         {func(h *history.History) { h.Sinks, h.Drill.NoSink = nil, "no sink" }, Pass, ""},
		"lost":            {func(h *history.History) { cut(h, 500, 510, true) }, Violated, "10 acknowledged orders are lost"},
		"downstream only": {func(h *history.History) { cut(h, 500, 510, false) }, Violated, "10 acknowledged orders are not in every copy"},
		"not downstream":  {func(h *history.History) { h.Sinks[0].Entries = h.Sinks[0].Entries[:990] }, Violated, "10 acknowledged orders are not downstream"},
		// The content of an unreadable file is unknown: nothing is proved, and nothing is lost
		// either.
		"a sink is not read": {func(h *history.History) {
			h.Sinks[0].Entries = h.Sinks[0].Entries[:990]
			h.Sinks = append(h.Sinks, history.Log{Partition: h.Sinks[0].Partition, Where: "of p0 at missing pods", Error: "1 of 2 pods can be queried"})
		}, Invalid, "not everything could be read"},
		"no witness": {func(h *history.History) {
			h.Drill.Faults[0].Witness = api.Witness{State: api.NotSeen, Message: "same uid"}
		}, Invalid, "not shown to have hit (witness NotSeen: same uid)"},
		"witness still awaited":   {func(h *history.History) { h.Drill.Faults[0].Witness.State = api.Pending }, Invalid, "not shown to have hit"},
		"no witness was reported": {func(h *history.History) { h.Drill.Faults[0].Witness = api.Witness{} }, Invalid, "not shown to have hit"},
		"lost and no witness": {func(h *history.History) {
			cut(h, 500, 510, true)
			h.Drill.Faults[0].Witness.State = api.NotSeen
		}, Violated, "10 acknowledged orders are lost"},
		"full":               {func(h *history.History) { h.Drill.Full, h.Drill.MaxOrders = true, 1000 }, Invalid, "ledger full: the traffic ended with 1000 orders"},
		"aborted":            {func(h *history.History) { h.Drill.Aborted = "by a user" }, Invalid, "ended early: by a user"},
		"fewer steps":        {func(h *history.History) { h.Drill.Context.StepsAsked = 5 }, Invalid, "1 of 5 faults were begun"},
		"no step":            {func(h *history.History) { h.Reps, h.Drill.Faults = nil, nil }, Invalid, "no fault was injected"},
		"a copy is not read": {func(h *history.History) { h.Logs[0].Error = "refused" }, Invalid, "not everything could be read"},
		"no copy is read":    {func(h *history.History) { h.Logs[0].Error, h.Logs[1].Error = "refused", "refused" }, Invalid, "not everything could be read"},
		"failed step":        {func(h *history.History) { h.Reps[0].Failed = "no service within 1m" }, Missed, "step 0 (kill): no service within 1m"},
		"service never back": {func(h *history.History) { h.Reps[0].Served = 0 }, Missed, "service was not back"},
		"never redundant":    {func(h *history.History) { h.Reps[0].Redundant = 0 }, Missed, "redundancy was not back"},
		"slow, not judged":   {func(h *history.History) { outage(h, 400, 480); h.Reps[0].Served = 480 * ms1 }, Pass, ""},
		"slow":               {func(h *history.History) { slow(h, 50*time.Millisecond) }, Missed, "outage 79.5 ms, wanted at most 50.0 ms"},
		"slow, allowed here": {func(h *history.History) {
			slow(h, 50*time.Millisecond)
			h.Drill.Faults[0].Step.Expect.Outage = time.Second
		}, Pass, ""},
		"slow because of the recorder": {func(h *history.History) {
			slow(h, 50*time.Millisecond)
			h.Stalls = []history.Stall{{At: 410 * ms1, Len: 60 * ms1}}
		}, Invalid, "the recording process itself was kept from running"},
		"slow, machine busy":   {func(h *history.History) { slow(h, 50*time.Millisecond); h.Host.Busy = 99 }, Invalid, "99 % busy"},
		"slow orders":          {func(h *history.History) { slow(h, 0); h.Drill.Context.Expect.P99 = time.Millisecond }, Missed, "p99 of orders during the fault"},
		"slow without a fault": {func(h *history.History) { h.Drill.Context.Expect.SteadyP99 = 400 * time.Microsecond }, Missed, "p99 of orders before the fault 0.50 ms, wanted at most 0.40 ms"},
		"slow after the fault": {func(h *history.History) { h.Drill.Faults[0].Step.Expect.SteadyP99 = 400 * time.Microsecond }, Missed, "p99 of orders after the fault 0.50 ms, wanted at most 0.40 ms"},
		"fast without a fault": {func(h *history.History) { slow(h, 0); h.Drill.Context.Expect.SteadyP99 = 500 * time.Microsecond }, Pass, ""},
		"redundant late":       {func(h *history.History) { h.Drill.Context.Expect.RedundantWithin = 40 * time.Millisecond }, Missed, "redundant after 49.0 ms, wanted at most 40.0 ms"},
		"redundant, counted from the end of a fault that lasts": {func(h *history.History) {
			h.Drill.Faults[0].Lasts, h.Reps[0].Healed = true, 440*ms1
			h.Drill.Context.Expect.RedundantWithin = 40 * time.Millisecond
		}, Pass, ""},
		"failed orders":          {func(h *history.History) { fail(h); h.Drill.Context.Expect.FailedOrders = api.FailedOrdersNone }, Missed, "1 orders were not acknowledged"},
		"failed orders, allowed": {fail, Pass, ""},
		"receipts twice":         {func(h *history.History) { h.Streams[0].Orders[7].Seq = 7 }, Violated, "receipts name the place of another order"},
		"stale read": {func(h *history.History) {
			h.Reads = []history.Read{{Call: 500 * ms1, Return: 501 * ms1, Index: 300, Seq: 0, CommitSeq: 499, Epoch: 1}}
		}, Violated, "cannot be explained by one log"},

		// The rule of a warned loss.
		"cascade":              {func(h *history.History) { cascade(h, 700); finished(h) }, Pass, ""},
		"cascade, not allowed": {func(h *history.History) { cascade(h, 700); h.Drill.Context.Expect.Loss = "" }, Violated, "200 acknowledged orders are lost: in no copy in sync, and not downstream; of 200 the grid had warned, and the drill does not allow it"},
		"cascade, the fault allows it": {func(h *history.History) {
			cascade(h, 700)
			finished(h)
			h.Drill.Context.Expect.Loss = ""
			h.Drill.Faults[1].Step.Expect.Loss = api.LossWarned
		}, Pass, ""},
		"cascade, receipts of two":        {func(h *history.History) { cascade(h, 350) }, Violated, "55 acknowledged orders are lost: in no copy in sync, and not downstream; 495 more are lost that the grid had warned of"},
		"cascade, the grid was silent":    {func(h *history.History) { cascade(h, 700); h.Degraded = nil }, Violated, "200 acknowledged orders are lost"},
		"cascade, said afterwards":        {func(h *history.History) { cascade(h, 700); h.Degraded[0].From = 901 * ms1 }, Violated, "200 acknowledged orders are lost"},
		"cascade, reported and withdrawn": {func(h *history.History) { cascade(h, 700); h.Degraded[0].To = 500 * ms1 }, Violated, "200 acknowledged orders are lost"},
		"cascade, grid with one copy":     {func(h *history.History) { cascade(h, 700); h.Replicas = 1 }, Violated, "the grid has one copy of every order"},
		"cascade, nothing was lost":       {func(h *history.History) { cascade(h, 900); finished(h) }, Pass, ""},
		"cascade, new processes have nothing": {func(h *history.History) {
			cascade(h, 700)
			finished(h)
			h.Drill.NoHolder = nil
			for i := range h.Logs {
				h.Logs[i].Error, h.Logs[i].Short = "", "30s after the traffic its committed prefix is 0, acknowledged was 900"
			}
		}, Pass, ""},
		"cascade, but one copy is there, and lacks some": {func(h *history.History) {
			log := h.Sinks[0].Entries[:650]
			cascade(h, 700)
			finished(h)
			h.Drill.NoHolder = nil
			h.Logs[0].Error, h.Logs[0].Short, h.Logs[0].Entries = "", "30s after the traffic its committed prefix is 650, acknowledged was 900", log
			h.Logs = h.Logs[:1]
		}, Violated, "50 acknowledged orders are not in every copy"},
		"cascade, another partition lacks some": {func(h *history.History) {
			cascade(h, 700)
			finished(h)
			other := good()
			cut(other, 500, 510, false)
			h.Partitions = append(h.Partitions, 1)
			for _, logs := range []*[]history.Log{&other.Logs, &other.Sinks} {
				for i := range *logs {
					l := &(*logs)[i]
					l.Partition = 1
					for k := range l.Entries {
						l.Entries[k].Stream = 1
					}
				}
			}
			other.Streams[0].Partition, other.Streams[0].ID.Probe = 1, 1
			h.Streams, h.Logs, h.Sinks = append(h.Streams, other.Streams...), append(h.Logs, other.Logs...), append(h.Sinks, other.Sinks...)
		}, Violated, "10 acknowledged orders are not in every copy"},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			c.change(h)
			got, err := New(h, "0123")
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(got.Reasons, "\n"); got.Verdict != c.want || !strings.Contains(all, c.reason) || (c.want == Pass) != (len(got.Reasons) == 0) {
				t.Fatalf("%s, reasons %q; want %s, %q; violations %q", got.Verdict, got.Reasons, c.want, c.reason, got.Violations)
			}
			json, text, page, err := Render(got)
			if err != nil || !bytes.Contains(text, []byte(strings.ToUpper(string(c.want)))) || !bytes.Contains(page, []byte(c.want)) || !bytes.Contains(json, []byte(c.want)) {
				t.Fatalf("%v\n%s", err, text)
			}
		})
	}
}

// finished makes the last step of a cascade one that is expected to end without service, as no
// process is left to serve.
func finished(h *history.History) {
	h.Reps[1].Failed, h.Reps[1].Served, h.Reps[1].Redundant = "", 950*ms1, 950*ms1
}

func slow(h *history.History, limit time.Duration) {
	outage(h, 400, 480)
	h.Reps[0].Served, h.Reps[0].Redundant = 481*ms1, 490*ms1
	h.Drill.Context.Expect.Outage = limit
}

// fail makes an order during the fault one that was refused.
func fail(h *history.History) {
	o := &h.Streams[0].Orders[410]
	seq := o.Seq
	*o = load.Order{T1: o.T1, T2: o.T2, T3: o.T3, Fate: load.Rejected}
	for _, logs := range [][]history.Log{h.Logs, h.Sinks} {
		for i := range logs {
			logs[i].Entries[seq-1].Stream, logs[i].Entries[seq-1].Index = history.NoOrder, 0
		}
	}
}

// The same history gives the same bytes.
func TestCanonical(t *testing.T) {
	h := good()
	cut(h, 500, 510, true)
	h.Drill.Context.Versions = map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
	var first []byte
	for range 5 {
		c, err := New(h, "x")
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, b) {
			t.Fatal("another certificate of the same history")
		}
		first = b
		var back Certificate
		if err := json.Unmarshal(b, &back); err != nil || back.Ledger.Lost != 10 || back.Schema != Schema {
			t.Fatalf("%v, %+v", err, back.Ledger)
		}
	}
}

func TestTimeline(t *testing.T) {
	h := good()
	outage(h, 400, 480)
	h.Reps[0].Served, h.Reps[0].Redundant = 481*ms1, 700*ms1
	h.Drill.Faults[0].Changes = []history.Change{
		{Partition: "p0", Epoch: 2, Cause: "take-over", By: "b/1", InSync: 1, Reset: true, Suspected: 402 * ms1, Proposed: 403 * ms1, Accepted: 410 * ms1, Serving: 411 * ms1, FirstOrder: 479 * ms1},
		{Partition: "p0", Epoch: 3, Cause: "admission", By: "b/1", InSync: 2, Proposed: 690 * ms1, Accepted: 699 * ms1, Serving: 411 * ms1},
	}
	c, err := New(h, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, m := range c.Steps[0].Timeline {
		got = append(got, m.What)
		if i > 0 && m.At < c.Steps[0].Timeline[i-1].At {
			t.Errorf("%v is out of order", m)
		}
	}
	want := "step begins to inject; last acknowledgement before the longest gap; provider says: injected; provider says: recovered; detected: connection ended; " +
		"take-over to epoch 2 requested (CAS); take-over to epoch 2 accepted, 1 in sync; serving as primary; first order acknowledged; first acknowledgement after it; " +
		"every session has had a new order acknowledged; admission to epoch 3 requested (CAS); admission to epoch 3 accepted, 2 in sync; redundant again"
	if line := strings.Join(got, "; "); line != want {
		t.Errorf("%s\nwant %s", line, want)
	}
	if s := c.Steps[0]; s.Detected != 1500*time.Microsecond || s.TakenOver != 9500*time.Microsecond {
		t.Errorf("detected after %s, taken over after %s, want 1.5ms and 9.5ms after the last acknowledgement", s.Detected, s.TakenOver)
	}
}

// A step that changes a hundred partitions does not fill the certificate, and the recorder's
// observations stay.
func TestTimelineIsBounded(t *testing.T) {
	h := good()
	for i := range int64(500) {
		h.Drill.Faults[0].Changes = append(h.Drill.Faults[0].Changes, history.Change{Partition: "p0", Epoch: uint64(i), Cause: "shrink", By: "b/1", Proposed: (402 + i) * ms1, Accepted: (403 + i) * ms1})
	}
	c, err := New(h, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range c.Steps[0].Timeline {
		if m.Who == "recorder" {
			seen++
		}
	}
	if n := len(c.Steps[0].Timeline); n != maxMoments || seen != 7 {
		t.Errorf("%d moments, %d of them the recorder's; want %d and 7", n, seen, maxMoments)
	}
}
