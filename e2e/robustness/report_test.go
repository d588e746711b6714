package robustness

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

const ms1 = int64(time.Millisecond)

// quick is a run of a second with an order a millisecond and one kill that
// had no effect.
func quick() *history.History {
	h := &history.History{Scenario: "kill-primary", Target: "dev", Rate: 1000, Seed: 9, Replicas: 2, Partitions: []wire.PartitionID{0}, Nodes: []history.Node{{Pod: "a"}}}
	s := history.Stream{ID: fixorder.ID{Run: 5}, Node: -1, Sessions: 1}
	log := history.Log{Where: "a", InSync: true}
	var prev uint64
	for i := range int64(1000) {
		s.Orders = append(s.Orders, load.Order{T1: i * ms1, T2: i * ms1, T3: i*ms1 + ms1/2, Seq: uint64(i + 1), Epoch: 1, Copies: 2, Fate: load.Acked})
		log.Entries = append(log.Entries, history.Entry{Seq: uint64(i + 1), Epoch: 1, Prev: prev, Hash: uint64(i + 7), Index: i})
		prev = uint64(i + 7)
	}
	h.Streams, h.Logs = []history.Stream{s}, []history.Log{log}
	h.Calm = []history.Span{{From: 100 * ms1, To: 400 * ms1}}
	h.Reps = []history.Rep{{Number: 1, What: "kill -9 a", Partitions: h.Partitions, Ready: 100 * ms1, From: 400 * ms1, To: 400 * ms1, Served: 402 * ms1, Redundant: 500 * ms1}}
	return h
}

// outage delays the answers of everything created in the span to its end.
func outage(h *history.History, from, to int64) {
	for i := range h.Streams[0].Orders {
		if o := &h.Streams[0].Orders[i]; o.T1 >= from*ms1 && o.T1 < to*ms1 {
			o.T3 = to * ms1
		}
	}
	h.Reps[0].Served = max(h.Reps[0].Served, (to+1)*ms1)
	h.Reps[0].Redundant = max(h.Reps[0].Redundant, (to+50)*ms1)
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*history.History)
		want   Verdict
		exit   int
		reason string
	}{
		"all well":         {func(*history.History) {}, Pass, 0, ""},
		"within the goal":  {func(h *history.History) { outage(h, 400, 440) }, Pass, 0, ""},
		"too slow":         {func(h *history.History) { outage(h, 400, 480) }, Missed, 1, "outage 80.5 ms at p99, wanted at most 50.0 ms"},
		"a failed order":   {func(h *history.History) { h.Streams[0].Orders[999].Fate = load.Unknown }, Missed, 1, "1 of 1000 orders were not acknowledged"},
		"a broken promise": {func(h *history.History) { h.Logs[0].Entries = h.Logs[0].Entries[:999] }, Violated, 1, "promises about orders were broken"},
		"both":             {func(h *history.History) { outage(h, 400, 480); h.Logs[0].Entries = h.Logs[0].Entries[:999] }, Violated, 1, "wanted at most"},
		"too slow, but it was us": {func(h *history.History) {
			outage(h, 400, 480)
			h.Stalls = []history.Stall{{At: 410 * ms1, Len: 60 * ms1}}
		}, Invalid, 3, "the recording process itself was kept from running"},
		"too slow, but so was calm": {func(h *history.History) { outage(h, 400, 480); calmGap(h) }, Invalid, 3, "without a fault the longest gap is already"},
		"slow, arbiter away, machine busy": {func(h *history.History) {
			h.Scenario, h.Host.Busy = "api-outage", 99
			outage(h, 400, 440)
		}, Invalid, 3, "but the machine was 99 % busy"},
		"too slow, machine busy": {func(h *history.History) { outage(h, 400, 480); h.Host.Busy = 99 }, Invalid, 3, "but the machine was 99 % busy"},
		"not read":               {func(h *history.History) { h.Logs[0].Error = "refused" }, Invalid, 3, "refused"},
		"no repetition":          {func(h *history.History) { h.Reps = nil }, Invalid, 3, "no repetition"},
		"not finished":           {func(h *history.History) { h.Reps[0].Failed = "no service within 1m" }, Missed, 1, "no service within 1m"},
		"written without an arbiter": {func(h *history.History) {
			h.Scenario, h.Reps[0].Healed = "api-outage-then-kill", 600*ms1
		}, Violated, 1, "acknowledged while none may be"},
		"slow while the arbiter is unavailable": {func(h *history.History) {
			h.Scenario = "api-outage"
			outage(h, 400, 440)
		}, Missed, 1, "p99 of orders was"},
	} {
		t.Run(name, func(t *testing.T) {
			h := quick()
			c.change(h)
			r, _, err := NewReport(h)
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != c.want || r.ExitCode() != c.exit || !strings.Contains(strings.Join(r.Reasons, "\n"), c.reason) {
				t.Fatalf("verdict %s, exit %d, reasons %q; want %s, %d, %q", r.Verdict, r.ExitCode(), r.Reasons, c.want, c.exit, c.reason)
			}
			var text, j bytes.Buffer
			if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), string(c.want)) {
				t.Fatalf("%v\n%s", err, &text)
			}
			var back Report
			if err := r.WriteJSON(&j); err != nil || json.Unmarshal(j.Bytes(), &back) != nil || back.Verdict != c.want {
				t.Fatalf("%v\n%s", err, &j)
			}
		})
	}
}

// Where an outage is longer than the goal, the report names what the nodes wrote.
func TestNamesTheNodesLogs(t *testing.T) {
	for _, c := range []struct {
		until int64 // ms
		named bool
	}{{440, false}, {480, true}} {
		h := quick()
		h.Started, h.StartedAt = time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC), 100*ms1
		h.NodeLogs = []string{"logs/a.log", "logs/b.log"}
		outage(h, 400, c.until)
		r, _, err := NewReport(h)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		line := "from 15:00:00.300 on (look for \"held up\"): logs/a.log, logs/b.log"
		if got := strings.Contains(text.String(), line); got != c.named || (len(r.Reps[0].NodeLogs) > 0) != c.named {
			t.Errorf("outage until %d ms: logs named %t, want %t:\n%s", c.until, got, c.named, &text)
		}
	}
}

// calmGap answers what was created in 40 ms of the calm time at their end.
func calmGap(h *history.History) {
	for i := 200; i < 240; i++ {
		h.Streams[0].Orders[i].T3 = 240 * ms1
	}
}

func TestUnknownScenario(t *testing.T) {
	h := quick()
	h.Drill = &history.Drill{}
	if _, _, err := NewReport(h); err == nil || !strings.Contains(err.Error(), "order-probe certify") {
		t.Errorf("of a drill: %v", err)
	}
	h.Scenario, h.Drill = "flood", nil
	if _, _, err := NewReport(h); err == nil || !strings.Contains(err.Error(), "allowed: calm, kill-primary") {
		t.Fatalf("got %v", err)
	}
}
