// Package robustness holds the tests of the suite; the suite is in the packages
// below, the command in cmd/robustness, and docs/robustness.md describes its use.
package robustness_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/robustness"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// startDev is a grid of processes for one scenario.
func startDev(t *testing.T, exe, name string) faults.Target {
	t.Helper()
	s, err := robustness.FindScenario(name)
	if err != nil {
		t.Fatal(err)
	}
	target, err := faults.StartDev(t.Context(), faults.DevOptions{Program: exe, Replicas: 2, MemoryMiB: 512, Dir: filepath.Join(t.TempDir(), "sinks"), Args: s.NodeArgs})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// play runs a scenario and judges what was recorded as it comes back from a file.
// The target is closed.
func play(t *testing.T, target faults.Target, name string, change func(*robustness.Options)) *robustness.Report {
	t.Helper()
	s, err := robustness.FindScenario(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	defer func() {
		if err := target.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	o := robustness.Defaults()
	// A slow machine under the race detector has to come through too.
	o.Seed, o.Rate, o.Calm, o.Patience, o.RequestTimeout, o.Progress = 1, 500, 200*time.Millisecond, 2*time.Minute, 2*time.Minute, t.Logf
	change(&o)
	h, err := robustness.Run(ctx, s, target, o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.gz")
	if err := h.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := history.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := robustness.NewReport(again)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	return r
}

// TestKills is the gate: safety is judged, times are not.
func TestKills(t *testing.T) {
	exe := testgrid.Program(t, "grid-node")
	for _, name := range []string{"kill-both-in-turn", "kill-backup"} {
		t.Run(name, func(t *testing.T) {
			r := play(t, startDev(t, exe, name), name, func(o *robustness.Options) { o.Repeat = 2 })
			sound(t, r)
			if r.Orders.Acked < 100 || r.Reads == 0 {
				t.Errorf("%d orders acknowledged, %d reads answered: the traffic did not flow", r.Orders.Acked, r.Reads)
			}
		})
	}
}

// TestArbiterAway: a kill without an arbiter stops writes, and they come back.
func TestArbiterAway(t *testing.T) {
	const name = "api-outage-then-kill"
	r := play(t, startDev(t, testgrid.Program(t, "grid-node"), name), name, func(o *robustness.Options) { o.Repeat, o.Stop = 1, time.Second })
	sound(t, r)
	if rep := r.Reps[0]; rep.SilentAcks != 0 || rep.Outage.Worst < time.Second {
		t.Errorf("%d orders acknowledged without an arbiter, outage %s", rep.SilentAcks, rep.Outage.Worst)
	}
}

func sound(t *testing.T, r *robustness.Report) {
	t.Helper()
	if len(r.Violations) > 0 || len(r.Unread) > 0 || r.Verdict == robustness.Violated {
		t.Fatalf("verdict %s: %v %v", r.Verdict, r.Violations, r.Unread)
	}
	for _, rep := range r.Reps {
		if rep.Failed != "" {
			t.Errorf("repetition %d: %s", rep.Number, rep.Failed)
		}
	}
	for _, p := range r.Partitions {
		if p.Copies != 2 || !p.Control || p.Downstream == 0 {
			t.Errorf("partition %s was not looked at as a whole: %+v", p.ID, p)
		}
	}
}
