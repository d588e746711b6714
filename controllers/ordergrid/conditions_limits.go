package ordergrid

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Reasons of the condition LimitsLoaded, beside Loaded, OnTheWay and RefusedByNode.
const (
	reasonLimitsNotFound = "NotFound"
	reasonLimitsInvalid  = "Invalid"
	reasonLimitsInForce  = "StillInForce"
	reasonLaterInForce   = "LaterInForce"
)

// limitsOf are the states of limits by pod, nil if no pod has any.
func limitsOf(answers []*nodestatus.Memory) map[string]nodestatus.Limits {
	if !slices.ContainsFunc(answers, func(m *nodestatus.Memory) bool { return m.Limits != nil }) {
		return nil
	}
	all := map[string]nodestatus.Limits{}
	for _, m := range answers {
		all[m.Pod] = nodestatus.Limits{} // of a pod that has not read the file: none
		if m.Limits != nil {
			all[m.Pod] = *m.Limits
		}
	}
	return all
}

// limited reports whether a profile is in force wherever a node has reported, for good.
func (a *room) limited(want fileDigests) bool {
	l := a.loaded(want)
	return len(a.limits) > 0 && len(l.refused)+len(l.old) == 0
}

// judgeLimits: the limits of spec.riskProfile are in force.
func judgeLimits(o *observation) judgement {
	if o.grid.Spec.RiskProfile == nil {
		return judgeUnnamed(o)
	}
	name, s := o.grid.Spec.RiskProfile.Name, o.limits
	no := func(reason, format string, args ...any) judgement {
		return judgement{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	switch {
	case s == nil:
		return o.asBefore(api.ConditionLimitsLoaded)
	case s.missing:
		return no(reasonLimitsNotFound, "%s. What was in force before stays", s.trouble(o.grid))
	case s.invalid != "":
		return no(reasonLimitsInvalid, "%s. What was in force before stays", s.trouble(o.grid))
	}
	if j, silent := o.silent(api.ConditionLimitsLoaded, "its limits", o.room.known); silent {
		return j
	}
	l := o.room.loaded(s.files.digests())
	switch n := len(o.standbys()); {
	case len(l.refused) > 0:
		return no(reasonInstrumentsRefused, "a node does not put RiskProfile %s in force%s. What was in force before stays", name, some(l.refused))
	case len(l.later) > 0:
		return no(reasonLaterInForce, "the log has a later state of RiskProfile %s than the API server, as after etcd was restored from a backup%s. To put that of the API server in force, delete the RiskProfile and create it anew", name, some(l.later))
	case n > 0:
		return no(reasonInstrumentsOnTheWay, "%d of %d partitions are standbys of %s and have its limits; RiskProfile %s comes into force when they take orders", n, o.wantPartitions(), o.otherSite(), name)
	case len(l.old) > 0 || l.in < o.wantPartitions():
		return no(reasonInstrumentsOnTheWay, "RiskProfile %s is in force in %d of %d partitions%s. The kubelet takes about a minute to change a file", name, l.in, o.wantPartitions(), some(l.old))
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, fmt.Sprintf("RiskProfile %s is in force in %d partitions", name, l.in)}
}

// limitsLoaded is how far a profile is in force.
type limitsLoaded struct {
	refused []string // who does not put it in force, and why
	old     []string // which copies have another one, or may have again
	later   []string // which partitions have a later one
	in      int      // partitions that have it on all of their copies
}

// loaded compares what nodes report with a profile. Once a log has it with its source, no file that is behind brings back an
// earlier one; without, that of any pod may, behind a take-over.
func (a *room) loaded(want fileDigests) (l limitsLoaded) {
	has, late, sourced := map[string]bool{}, []string{}, want.sourced != want.plain
	for _, pod := range slices.Sorted(maps.Keys(a.limits)) {
		x := a.limits[pod]
		behind := x.SHA256 != want.sourced && x.SHA256 != want.plain
		switch {
		case x.Error != "":
			l.refused = append(l.refused, pod+": "+x.Error)
		case behind:
			late = append(late, "the file of "+pod)
		}
		for _, p := range x.Partitions {
			is := p.SHA256 == want.sourced || p.SHA256 == want.plain
			sourced = sourced && p.SHA256 == want.sourced
			before, seen := has[p.Partition]
			if has[p.Partition] = is && (before || !seen); !is {
				l.old = append(l.old, p.Partition+" on "+pod)
			}
			if p.Refused != "" {
				l.refused = append(l.refused, p.Partition+" on "+pod+": "+p.Refused)
			}
			if p.Waits != "" && !behind {
				l.later = append(l.later, p.Partition+" on "+pod+": "+p.Waits)
			}
		}
	}
	if !sourced {
		l.old = append(late, l.old...)
	}
	for _, everywhere := range has {
		if everywhere {
			l.in++
		}
	}
	return l
}

// judgeUnnamed is the condition of a grid without spec.riskProfile: there is one while the logs have limits.
func judgeUnnamed(o *observation) judgement {
	if !o.roomAsked || !o.room.known {
		if slices.ContainsFunc(o.grid.Status.Conditions, func(c metav1.Condition) bool { return c.Type == api.ConditionLimitsLoaded }) {
			return o.asBefore(api.ConditionLimitsLoaded) // this operator has just started, or no node answers
		}
		return judgement{}
	}
	var where []string
	for _, pod := range slices.Sorted(maps.Keys(o.room.limits)) {
		for _, p := range o.room.limits[pod].Partitions {
			if p.SHA256 != "" && !p.Empty {
				where = append(where, fmt.Sprintf("%s on %s: %q since entry %d", p.Partition, pod, p.Name, p.Entry))
			}
		}
	}
	if len(where) == 0 {
		return judgement{}
	}
	return judgement{metav1.ConditionFalse, reasonLimitsInForce, fmt.Sprintf("spec.riskProfile names no limits, and the log keeps those that it has%s. To lift them, name a RiskProfile with an empty spec, wait until it is loaded, and remove it then", some(where))}
}

// limitEvents tell that limits are in force everywhere, and what keeps them from it but time.
func limitEvents(c *metav1.Condition) []event {
	e := event{kind: corev1.EventTypeWarning, reason: "Limits" + c.Reason, action: "Observe", note: c.Message}
	switch {
	case c.Status == metav1.ConditionTrue:
		e.kind = corev1.EventTypeNormal
	case c.Status != metav1.ConditionFalse || c.Reason == reasonInstrumentsOnTheWay:
		return nil
	}
	return []event{e}
}
