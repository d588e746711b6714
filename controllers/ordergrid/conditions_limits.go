package ordergrid

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Reasons of the condition LimitsLoaded, beside Loaded, OnTheWay and RefusedByNode.
const (
	reasonLimitsNotFound = "NotFound"
	reasonLimitsInvalid  = "Invalid"
	reasonLimitsInForce  = "StillInForce"
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

// limited reports whether a profile is in force wherever a node has reported.
func (a *room) limited(digest string) bool {
	for _, x := range a.limits {
		if x.SHA256 != digest || slices.ContainsFunc(x.Partitions, func(p nodestatus.PartitionLimits) bool { return p.SHA256 != digest }) {
			return false
		}
	}
	return len(a.limits) > 0
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
	refused, old, in := o.loaded(s.sha256)
	switch n := len(o.standbys()); {
	case len(refused) > 0:
		return no(reasonInstrumentsRefused, "a node does not put RiskProfile %s in force%s. What was in force before stays", name, some(refused))
	case n > 0:
		return no(reasonInstrumentsOnTheWay, "%d of %d partitions are standbys of %s and have its limits; RiskProfile %s comes into force when they take orders", n, o.wantPartitions(), o.otherSite(), name)
	case len(old) > 0 || in < o.wantPartitions():
		return no(reasonInstrumentsOnTheWay, "RiskProfile %s is in force in %d of %d partitions%s. The kubelet takes about a minute to change a file", name, in, o.wantPartitions(), some(old))
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, fmt.Sprintf("RiskProfile %s is in force in %d partitions", name, in)}
}

// loaded compares what nodes report with a profile: who refuses it, which copies of which partitions have another one, and
// how many partitions have it on all of their copies.
func (o *observation) loaded(digest string) (refused, old []string, in int) {
	has := map[string]bool{}
	for _, pod := range slices.Sorted(maps.Keys(o.room.limits)) {
		x := o.room.limits[pod]
		switch {
		case x.Error != "":
			refused = append(refused, pod+": "+x.Error)
		case x.SHA256 != digest:
			old = append(old, "the file of "+pod)
		}
		for _, p := range x.Partitions {
			before, seen := has[p.Partition]
			if has[p.Partition] = p.SHA256 == digest && (before || !seen); p.SHA256 != digest {
				old = append(old, p.Partition+" on "+pod)
			}
			if p.Refused != "" {
				refused = append(refused, p.Partition+" on "+pod+": "+p.Refused)
			}
		}
	}
	for _, everywhere := range has {
		if everywhere {
			in++
		}
	}
	return refused, old, in
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
