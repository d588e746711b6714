package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func lines(list []news) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.where+" | "+n.text)
	}
	return out
}

// TestNewsOfEveryState: a drill polled after every change of state reports each event once, and one that is polled once
// at the end reports the same.
func TestNewsOfEveryState(t *testing.T) {
	began := metav1.NewMicroTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	later := metav1.NewMicroTime(began.Add(10 * time.Second))
	full := api.DrillStep{Index: 4, Fault: "cut", Type: api.FaultNetworkPartition, Provider: "ChaosMesh", StateTime: &began,
		Targets: []api.DrillTargetPod{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}}
	d := func(change func(*api.DrillStep)) *api.FailoverDrill {
		s := *full.DeepCopy()
		change(&s)
		return &api.FailoverDrill{Status: api.FailoverDrillStatus{PlannedSteps: 10, Steps: []api.DrillStep{s}}}
	}
	var states []*api.FailoverDrill
	for _, state := range []api.DrillStepState{api.StepPending, api.StepWaiting, api.StepCalm, api.StepInjecting, api.StepWitnessing, api.StepHolding, api.StepRecovering, api.StepSettling, api.StepDone} {
		states = append(states, d(func(s *api.DrillStep) {
			s.State = state
			if state == api.StepWitnessing || state == api.StepHolding || state == api.StepRecovering || state == api.StepSettling || state == api.StepDone {
				s.InjectedTime = &began
			}
			if state == api.StepHolding || state == api.StepRecovering || state == api.StepSettling || state == api.StepDone {
				s.Witness = &api.DrillWitness{State: api.WitnessSeen, Message: "nothing heard for 2s"}
			}
			if state == api.StepRecovering {
				s.StateTime = &later
			}
			if state == api.StepDone {
				s.RecoveredTime, s.Outcome, s.FailedOrders, s.Message = &later, api.StepMissed, 3, "too long"
				s.P99Before, s.P99During, s.P99After = dur(412*time.Microsecond), dur(90*time.Second), dur(time.Millisecond)
			}
		}))
	}
	want := []string{
		"step 5/10 | cut (NetworkPartition)",
		"step 5/10 | injecting into a, b, c, d, 1 more by ChaosMesh",
		"step 5/10 | has hit: nothing heard for 2s",
		"step 5/10 | is recovered after 10s",
		"step 5/10 | Missed: p99 412µs before, 1m30s during, 1ms after; 3 orders failed; too long",
	}
	var got []string
	before := &api.FailoverDrill{}
	for _, after := range states {
		got = append(got, lines(newsOf(before, after))...)
		if again := newsOf(after, after); len(again) > 0 {
			t.Errorf("%s reports %v twice", after.Status.Steps[0].State, again)
		}
		before = after
	}
	if !slices.Equal(got, want) {
		t.Errorf("state by state\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	want = slices.Delete(want, 3, 4) // the time of its recovery has passed
	if got = lines(newsOf(&api.FailoverDrill{}, states[len(states)-1])); !slices.Equal(got, want) {
		t.Errorf("at the end\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNewsOfTheDrill: conditions, skipped faults, faults that remain.
func TestNewsOfTheDrill(t *testing.T) {
	set := func(d *api.FailoverDrill, kind string, is metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: "why"})
	}
	d := &api.FailoverDrill{}
	for _, tc := range []struct {
		change func(*api.FailoverDrill)
		want   string
	}{
		{func(d *api.FailoverDrill) { set(d, api.ConditionPreflight, metav1.ConditionFalse, "OtherDrill") }, "preflight | OtherDrill: why"},
		{func(d *api.FailoverDrill) {
			d.Status.Skipped = []api.DrillSkipped{{Fault: "power-off", Type: api.FaultNodePowerOff, Message: "no executor"}}
		}, "skipped | power-off (NodePowerOff): no executor"},
		{func(d *api.FailoverDrill) { d.Status.Seed, d.Status.PlannedSteps = 7, 27 }, "plan | seed 7, 27 steps"},
		{func(d *api.FailoverDrill) { set(d, api.ConditionRunning, metav1.ConditionTrue, "Baseline") }, "drill | Baseline: why"},
		{func(d *api.FailoverDrill) { set(d, api.ConditionRunning, metav1.ConditionTrue, "Step") }, ""},
		{func(d *api.FailoverDrill) { set(d, api.ConditionRecovered, metav1.ConditionFalse, "FaultActive") }, ""},
		{func(d *api.FailoverDrill) { set(d, api.ConditionRecovered, metav1.ConditionFalse, "FaultsRemain") }, "recovery | FaultsRemain: why"},
		{func(d *api.FailoverDrill) {
			set(d, api.ConditionRunning, metav1.ConditionFalse, "NotRedundant")
			set(d, api.ConditionFailed, metav1.ConditionTrue, "NotRedundant")
		}, "failed | NotRedundant: why"},
	} {
		before := d.DeepCopy()
		tc.change(d)
		if got := strings.Join(lines(newsOf(before, d)), "\n"); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestWriteDrill(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "net"}, Spec: api.FailoverDrillSpec{GridRef: api.GridReference{Name: "trades"}, Faults: make([]api.DrillFault, 2)}}
	d.Status = api.FailoverDrillStatus{Seed: 7, PlannedSteps: 2, FinishedSteps: 1,
		Conditions: []metav1.Condition{{Type: "Running", Status: "True", Reason: "Step", Message: "step 2 of 2", LastTransitionTime: metav1.NewTime(now.Add(-90 * time.Second))}},
		Skipped:    []api.DrillSkipped{{Fault: "power", Type: api.FaultNodePowerOff, Message: "no executor"}},
		Steps: []api.DrillStep{
			{Index: 0, Fault: "kill", Type: api.FaultPodKill, Provider: "ChaosMesh", Targets: []api.DrillTargetPod{{Name: "trades-s0-1"}}, State: api.StepDone, Outcome: api.StepPassed,
				Witness: &api.DrillWitness{State: api.WitnessSeen}, Outage: dur(46 * time.Millisecond), RedundantAfter: dur(3 * time.Second),
				P99Before: dur(time.Millisecond), P99During: dur(2 * time.Millisecond), P99After: dur(time.Millisecond)},
			{Index: 1, Fault: "off", Type: api.FaultNodeLinkDown, State: api.StepWaiting},
		}}
	var out bytes.Buffer
	if err := writeDrill(&out, d, now); err != nil {
		t.Fatal(err)
	}
	want := `net: 2 own on grid trades, seed 7, 1 of 2 steps finished

CONDITION  STATUS  SINCE  REASON  MESSAGE
Running    True    90s    Step    step 2 of 2

skipped: power (NodePowerOff): no executor

STEP  FAULT  TYPE          TARGETS      PROVIDER   STATE    WITNESS  OUTCOME  OUTAGE  REDUNDANT AFTER  P99 BEFORE/DURING/AFTER
1     kill   PodKill       trades-s0-1  ChaosMesh  Done     Seen     Passed   46ms    3s               1ms/2ms/1ms
2     off    NodeLinkDown  -            -          Waiting  -        -        -       -                -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 412345: "412µs", 46123456: "46.12ms", 3214567890: "3.21s", 90*time.Second + 123*time.Millisecond: "1m30s",
	} {
		if got := fmt.Sprint(rounded(d)); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

// TestMayPass: an API server outage is waited for, a refusal is not.
func TestMayPass(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{context.DeadlineExceeded, true},
		{apierrors.NewServiceUnavailable("etcd is away"), true},
		{apierrors.NewInternalError(errors.New("etcdserver: no leader")), true},
		{apierrors.NewTooManyRequestsError("later"), true},
		{apierrors.NewForbidden(schema.GroupResource{}, "net", errors.New("no")), false},
		{apierrors.NewUnauthorized("who?"), false},
		{apierrors.NewNotFound(schema.GroupResource{}, "net"), false},
	} {
		if got := mayPass(tc.err); got != tc.want {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
	// It is reported once, and once again when it is over.
	var out bytes.Buffer
	w := &follower{out: &out, now: time.Now}
	w.back()
	for range 3 {
		w.gone(errors.New("connection refused"))
	}
	w.back()
	w.back()
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "does not answer (connection refused); the drill goes on") || !strings.Contains(got, "answers again") {
		t.Errorf("said %s", got)
	}
}
