package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// news is one line about a drill.
type news struct{ where, text string }

// newsOf returns what is new in a drill: its phase, its steps, and the certificate. Events between two polls are in
// their order.
func newsOf(before, after *api.FailoverDrill) (list []news) {
	say := func(where, format string, args ...any) {
		list = append(list, news{where, fmt.Sprintf(format, args...)})
	}
	s := &after.Status
	if s.Seed != 0 && before.Status.Seed == 0 {
		say("plan", "seed %d, %d steps", s.Seed, s.PlannedSteps)
	}
	for _, k := range s.Skipped {
		if !slices.ContainsFunc(before.Status.Skipped, func(b api.DrillSkipped) bool { return b.Fault == k.Fault }) {
			say("skipped", "%s (%s): %s", k.Fault, k.Type, k.Message)
		}
	}
	if p := newCondition(before, after, api.ConditionPreflight); p != nil {
		say("preflight", "%s: %s", p.Reason, p.Message)
	}
	for i := range s.Steps {
		list = append(list, stepNews(stepOf(before, s.Steps[i].Index), &s.Steps[i], s.PlannedSteps)...)
	}
	if r := newCondition(before, after, api.ConditionRecovered); r != nil && (r.Reason == "FaultsRemain" || r.Reason == "FaultsUnknown") {
		say("recovery", "%s: %s", r.Reason, r.Message)
	}
	// Steps have been reported one by one.
	if r := newCondition(before, after, api.ConditionRunning); r != nil && isTrue(after, api.ConditionRunning) && r.Reason != "Step" {
		say("drill", "%s: %s", r.Reason, r.Message)
	}
	for _, kind := range []string{api.ConditionComplete, api.ConditionFailed} {
		if isTrue(after, kind) && !isTrue(before, kind) {
			c := condition(after, kind)
			say(strings.ToLower(kind), "%s: %s", c.Reason, c.Message)
			if s.Certificate != nil {
				say("certificate", "%s", certificateLine(s.Certificate))
			}
		}
	}
	return list
}

// newCondition is a condition whose reason, message or status has changed.
func newCondition(before, after *api.FailoverDrill, kind string) *metav1.Condition {
	b, a := condition(before, kind), condition(after, kind)
	if a == nil || b != nil && b.Status == a.Status && b.Reason == a.Reason && b.Message == a.Message {
		return nil
	}
	return a
}

func stepOf(d *api.FailoverDrill, index int32) *api.DrillStep {
	for i := range d.Status.Steps {
		if d.Status.Steps[i].Index == index {
			return &d.Status.Steps[i]
		}
	}
	return &api.DrillStep{}
}

// passed reports whether a step has reached a state, or gone beyond it, since the last poll.
func passed(before, after *api.DrillStep, state api.DrillStepState) bool {
	order := []api.DrillStepState{"", api.StepPending, api.StepWaiting, api.StepCalm, api.StepInjecting, api.StepWitnessing, api.StepHolding, api.StepRecovering, api.StepSettling, api.StepDone}
	at := slices.Index(order, state)
	return slices.Index(order, before.State) < at && slices.Index(order, after.State) >= at
}

// stepNews are the lines about one step.
func stepNews(before, after *api.DrillStep, planned int32) (list []news) {
	where := fmt.Sprintf("step %d/%d", after.Index+1, planned)
	say := func(format string, args ...any) { list = append(list, news{where, fmt.Sprintf(format, args...)}) }
	if passed(before, after, api.StepWaiting) {
		about := ""
		if after.Partition != "" {
			about = ", partition " + after.Partition
		}
		say("%s (%s%s)", after.Fault, after.Type, about)
	}
	if passed(before, after, api.StepInjecting) && after.Outcome != api.StepRefused {
		say("injecting into %s by %s", targetText(after), after.Provider)
	}
	if w := after.Witness; w != nil && w.State != api.WitnessPending && (before.Witness == nil || before.Witness.State != w.State) {
		seen := map[api.WitnessState]string{api.WitnessSeen: "has hit", api.WitnessNotSeen: "was not seen to hit"}[w.State]
		say("%s: %s", seen, w.Message)
	}
	if passed(before, after, api.StepRecovering) && after.RecoveredTime == nil && after.InjectedTime != nil && !after.Type.Momentary() {
		say("is recovered after %s", rounded(after.StateTime.Sub(after.InjectedTime.Time)))
	}
	if passed(before, after, api.StepDone) {
		say("%s", outcomeLine(after))
	}
	return list
}

func targetText(s *api.DrillStep) string {
	var names []string
	for _, p := range s.Targets {
		names = append(names, p.Name)
	}
	switch {
	case len(names) == 0 && len(s.Nodes) == 0:
		return "the grid"
	case len(names) > 4:
		names = append(names[:4:4], fmt.Sprintf("%d more", len(s.Targets)-4))
	case len(names) == 0:
		names = s.Nodes
	}
	return strings.Join(names, ", ")
}

// outcomeLine is a step that is over in one line.
func outcomeLine(s *api.DrillStep) string {
	parts := []string{}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.Outage != nil {
		add("outage %s", rounded(s.Outage.Duration))
	}
	if s.RedundantAfter != nil {
		add("redundant after %s", rounded(s.RedundantAfter.Duration))
	}
	if s.P99Before != nil && s.P99During != nil && s.P99After != nil {
		add("p99 %s before, %s during, %s after", rounded(s.P99Before.Duration), rounded(s.P99During.Duration), rounded(s.P99After.Duration))
	}
	if s.FailedOrders > 0 {
		add("%d orders failed", s.FailedOrders)
	}
	if s.Message != "" {
		add("%s", s.Message)
	}
	outcome := string(s.Outcome)
	if outcome == "" {
		outcome = "over"
	}
	if len(parts) == 0 {
		return outcome
	}
	return outcome + ": " + strings.Join(parts, "; ")
}

// certificateLine is a certificate in one line.
func certificateLine(c *api.DrillCertificate) string {
	text := fmt.Sprintf("%s: lost %d, missing %d, duplicated %d, gaps %d, out of order %d; %d orders acknowledged to the traffic", c.Verdict, c.Lost, c.Missing, c.Duplicated, c.Gaps, c.OutOfOrder, c.Acknowledged)
	if c.OutageP50 != nil && c.OutageP99 != nil && c.OutageMax != nil {
		text += fmt.Sprintf("; outage p50 %s, p99 %s, max %s", rounded(c.OutageP50.Duration), rounded(c.OutageP99.Duration), rounded(c.OutageMax.Duration))
	}
	if c.Reason != "" {
		text += ". " + c.Reason
	}
	return text
}

// rounded keeps three or four digits.
func rounded(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond} {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d.Round(time.Microsecond)
}
