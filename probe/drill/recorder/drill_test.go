package recorder

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

// Each process is killed once, while orders flow, and nothing is lost.
func TestKilledProcesses(t *testing.T) {
	d := start(t, setup{replicas: 2})
	for i := range 2 {
		d.calm()
		d.kill(i, i)
		if r := d.over(i); r.Failed != "" || r.Served.Before(r.Injected) || r.Redundant.Before(r.Injected) || r.Counts.Created == 0 {
			t.Fatalf("step %d: %+v", i, r)
		}
	}
	time.Sleep(1500 * time.Millisecond) // time after the fault
	c := d.finish(api.Finish{Context: api.Context{Drill: "ns/x", Seed: 42, StepsAsked: 2, Versions: map[string]string{"operator": "test"}}})
	if c.Verdict != certificate.Pass || len(c.Reasons) > 0 {
		t.Fatalf("%s: %q\n%q", c.Verdict, c.Reasons, c.Violations)
	}
	if c.Orders.Acknowledged < 500 || c.Ledger.Downstream < c.Orders.Acknowledged || c.Ledger.Copies != 4 || c.Ledger.Lost+c.Ledger.Duplicated+c.Ledger.Gaps+c.Ledger.OutOfOrder != 0 {
		t.Errorf("%+v %+v", c.Orders, c.Ledger)
	}
	if c.Control.Result != certificate.ControlPassed || c.Control.Dropped != 64 || c.Control.Lost != 64 || c.Control.Repeated != 16 || c.Control.Duplicated != 16 {
		t.Errorf("%+v", c.Control)
	}
	if c.Linear.Reads == 0 || c.Linear.Windows == 0 || c.Linear.Result != certificate.Linearizable {
		t.Errorf("%+v", c.Linear)
	}
	for i, s := range c.Steps {
		if shown, err := d.rec.Step(i); err != nil || shown.WorstGap != s.Outage {
			t.Errorf("step %d: reported as an outage of %s (%v), certified as one of %s", i, shown.WorstGap, err, s.Outage)
		}
		if s.Outcome != certificate.StepPassed || s.Outage <= 0 || s.RedundantAfter <= 0 || s.Before.N == 0 || s.During.N == 0 || s.After.N == 0 || s.Witness.State != api.Seen {
			t.Errorf("%+v", s)
		}
		var messages []string
		for _, m := range s.Timeline {
			messages = append(messages, m.What)
		}
		line := strings.Join(messages, "; ")
		for _, want := range []string{"last acknowledgement before", "first acknowledgement after", "provider says: injected", "accepted", "redundant again"} {
			if !strings.Contains(line, want) {
				t.Errorf("the timeline of step %d lacks %q: %s", s.Index, want, line)
			}
		}
	}
}

// Requests before the traffic flows get an error that the recorder is preparing.
func TestAskedWhilePreparing(t *testing.T) {
	d := start(t, setup{replicas: 2, change: func(c *Config) { c.Say = func(string, ...any) {} }})
	for n := 0; ; n++ {
		s := d.rec.State()
		if s.Phase == api.Running {
			break
		}
		if _, err := d.rec.Begin(0, api.Step{Type: "PodKill", Partitions: []string{"p0"}}); !errors.Is(err, errConflict) && d.rec.State().Phase != api.Running {
			t.Fatalf("a step began: %v", err)
		}
		if n > 0 && s.Phase != api.Preparing {
			t.Fatalf("%+v", s)
		}
	}
	d.stop()
}

// A grid that drops acknowledged orders is detected, to the order: the nodes of this build count
// dropped orders.
func TestThrownAway(t *testing.T) {
	d := start(t, setup{replicas: 2, tags: []string{"faulty"}, args: []string{"--faulty-drop-every", "97"}})
	d.calm()
	c := d.finish(api.Finish{})
	if c.Verdict != certificate.Violated || c.Ledger.Lost == 0 || c.Ledger.MissingInCopies+c.Ledger.MissingDownstream+c.Ledger.Unjudged != 0 {
		t.Fatalf("%s: %+v", c.Verdict, c.Ledger)
	}
	dropped := int64(0)
	for _, u := range d.grid.HTTP {
		var status struct {
			Faulty struct{ Dropped int64 }
		}
		resp, err := http.Get(u + "/status")
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(resp.Body).Decode(&status)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		dropped += status.Faulty.Dropped
	}
	if c.Ledger.Lost != dropped {
		t.Errorf("lost %d, the nodes dropped %d", c.Ledger.Lost, dropped)
	}
	if c.Control.Result != certificate.ControlPassed {
		t.Errorf("%+v", c.Control)
	}
}

// A grid with one copy of every order loses what its process held, and the certificate reports it.
func TestOneCopyIsLost(t *testing.T) {
	d := start(t, setup{replicas: 1, noSink: true, change: func(c *Config) { c.Patience, c.Timeout = 3*time.Second, 3*time.Second }})
	d.calm()
	d.kill(0, 0)
	time.Sleep(2 * time.Second)
	if _, err := d.api.Tell(t.Context(), 0, api.Abandoned, api.Note{Message: "no service within 2s"}); err != nil {
		t.Fatal(err)
	}
	c := d.finish(api.Finish{Context: api.Context{StepsAsked: 1}})
	if c.Verdict != certificate.Violated || c.Ledger.Lost < c.Orders.Acknowledged || c.Orders.Acknowledged == 0 || c.Ledger.LostWarned != 0 {
		t.Fatalf("%s: %+v of %+v", c.Verdict, c.Ledger, c.Orders)
	}
	if !strings.Contains(c.Reasons[0], "has one copy of every order") {
		t.Errorf("%q", c.Reasons)
	}
}

// A run interrupted by a signal is still judged, as a drill that was ended early.
func TestStopped(t *testing.T) {
	d := start(t, setup{replicas: 2})
	d.calm()
	d.stop()
	c := d.certificate()
	if c.Verdict != certificate.Invalid || !strings.Contains(strings.Join(c.Reasons, "\n"), "SIGTERM") || c.Ledger.Lost != 0 || c.Orders.Acknowledged == 0 {
		t.Fatalf("%s %q %+v", c.Verdict, c.Reasons, c.Ledger)
	}
}

// The traffic ends with the last order there is room for, and the verdict reports it.
func TestFull(t *testing.T) {
	d := start(t, setup{replicas: 2, noSink: true, change: func(c *Config) { c.MaxOrders = 1500 }})
	d.until("the ledger is full", func() bool { s := d.state(); return s.Full && s.Counts.Created == 1500 })
	c := d.finish(api.Finish{})
	if c.Verdict != certificate.Invalid || !strings.Contains(strings.Join(c.Reasons, "\n"), "ledger full") || c.Orders.Created != 1500 || !strings.HasPrefix(c.Ledger.Sink, "no sink: ") {
		t.Fatalf("%s %q %+v", c.Verdict, c.Reasons, c.Orders)
	}
}

// Both processes of a pair at once: orders that the sinks had not taken yet are lost, and receipts
// of two copies excuse nothing, though the drill allows warned losses.
func TestBothCopiesAtOnce(t *testing.T) {
	d := start(t, setup{replicas: 2, noSink: true, change: func(c *Config) { c.Patience, c.Timeout = 3*time.Second, 3*time.Second }})
	d.calm()
	d.kill(0, 0, 1)
	time.Sleep(time.Second)
	c := d.finish(api.Finish{DataLoss: []string{"p0", "p1"}, Context: api.Context{StepsAsked: 1, Expect: api.Expect{Loss: api.LossWarned}}})
	if c.Verdict != certificate.Violated || c.Ledger.Lost < c.Orders.Acknowledged || c.Orders.Acknowledged == 0 || c.Ledger.LostWarned != 0 || c.Ledger.Unjudged != 0 {
		t.Fatalf("%s: %+v of %+v", c.Verdict, c.Ledger, c.Orders)
	}
	if s := c.Steps[0]; s.Outcome == certificate.StepPassed || s.FailedOrders == 0 || s.Outage < time.Second {
		t.Errorf("%+v", s)
	}
}

// A fault that begins during another one: both are recorded, and over independently. Orders from
// before the drill are ignored.
func TestStepsOverlap(t *testing.T) {
	const before = 20_000
	d := start(t, setup{replicas: 2, before: before})
	d.calm()
	outer := api.Step{Fault: "away", Type: "APIServerPartition", Provider: "test", What: "nothing is missing"}
	if _, err := d.api.Begin(t.Context(), 0, outer); err != nil {
		t.Fatal(err)
	}
	if _, err := d.api.Tell(t.Context(), 0, api.Injected, api.Note{Witness: api.Witness{State: api.Seen}}); err != nil {
		t.Fatal(err)
	}
	d.kill(1, 1)
	d.over(1)
	if r, err := d.api.Step(t.Context(), 0); err != nil || r.Over || !r.Recovered.IsZero() {
		t.Fatalf("the fault around it: %+v, %v", r, err)
	}
	if _, err := d.api.Tell(t.Context(), 0, api.Recovered, api.Note{}); err != nil {
		t.Fatal(err)
	}
	if r := d.over(0); r.Redundant.Before(r.Recovered) {
		t.Errorf("redundant before the recovery of the fault: %+v", r)
	}
	c := d.finish(api.Finish{Context: api.Context{StepsAsked: 2}})
	if c.Verdict != certificate.Pass || len(c.Steps) != 2 || c.Steps[0].Lasted <= 0 || c.Steps[1].Lasted != 0 || c.Steps[0].Outage < c.Steps[1].Outage {
		t.Fatalf("%s %q: %+v", c.Verdict, c.Reasons, c.Steps)
	}
	for _, p := range c.Partitions {
		if p.Entries >= before || p.Entries == 0 {
			t.Errorf("%s: %d entries were checked, %d are earlier ones", p.ID, p.Entries, before)
		}
	}
}
