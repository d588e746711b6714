package ordergrid

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Reasons of the conditions InstrumentsLoaded and ExecutionsAgree.
const (
	reasonInstrumentsNotFound = "InstrumentSetNotFound"
	reasonInstrumentsInvalid  = "InstrumentSetInvalid"
	reasonInstrumentsKept     = "ChangeRefused"
	reasonInstrumentsOnTheWay = "OnTheWay"
	reasonInstrumentsRefused  = "RefusedByNode"
	reasonInstrumentsDiffer   = "LogDiffers"
	reasonExecutionDiverged   = "Diverged"
	reasonExecutionsEqual     = "Equal"
)

// executionsOf are the states of matching, by pod.
func executionsOf(answers []*nodestatus.Memory) map[string]nodestatus.Execution {
	all := map[string]nodestatus.Execution{}
	for _, m := range answers {
		if m.Execution != nil {
			all[m.Pod] = *m.Execution
		}
	}
	return all
}

// unsettled reports whether a node has something to tell of its executions, functions, limits or regions that will change.
func (a *room) unsettled() bool {
	if len(a.posts.Waiting) > 0 {
		return true
	}
	for _, x := range a.limits {
		if x.Error != "" || slices.ContainsFunc(x.Partitions, func(p nodestatus.PartitionLimits) bool { return p.Refused != "" }) {
			return true
		}
	}
	for _, x := range a.regions {
		if x.Error != "" || slices.ContainsFunc(x.Use, func(u nodestatus.RegionUse) bool { return len(u.Full) > 0 }) {
			return true
		}
	}
	for _, x := range a.executions {
		c := x.Calendar
		if x.Error != "" || x.Missing > 0 || len(x.Diverged) > 0 || c != nil && (c.Error != "" || c.Behind > 0 || len(c.Waits) > 0) {
			return true
		}
	}
	return false
}

// executing are the pods that reported, in order.
func (o *observation) executing() (pods []string) {
	for pod := range o.room.executions {
		pods = append(pods, pod)
	}
	slices.Sort(pods)
	return pods
}

// notAsked is the judgement while no node has reported on its executions.
func (o *observation) notAsked(kind string) (judgement, bool) {
	return o.silent(kind, "its executions", len(o.room.executions) > 0)
}

// silent is the judgement while no node has reported.
func (o *observation) silent(kind, what string, reported bool) (judgement, bool) {
	switch before := meta.FindStatusCondition(o.grid.Status.Conditions, kind); {
	case !o.roomAsked && before != nil:
		return judgement{before.Status, before.Reason, before.Message}, true // this operator has just started
	case !o.roomAsked || !reported:
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, "no grid node has answered the operator about " + what + " yet"}, true
	}
	return judgement{}, false
}

// judgeInstruments: the nodes trade what the InstrumentSet lists.
func judgeInstruments(o *observation) judgement {
	if !o.grid.Spec.Matches() {
		return judgement{}
	}
	name, s := o.grid.Spec.Execution.InstrumentsFrom.Name, o.instruments
	no := func(reason, format string, args ...any) judgement {
		return judgement{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	none := ""
	if s != nil && s.sha256 == "" {
		none = ", and the pods wait for it"
	}
	switch {
	case s == nil:
		return o.asBefore(api.ConditionInstrumentsLoaded)
	case s.missing:
		return no(reasonInstrumentsNotFound, "there is no InstrumentSet %s in namespace %s%s; create it, or correct spec.execution.instrumentsFrom", name, o.grid.Namespace, none)
	case s.invalid != "":
		return no(reasonInstrumentsInvalid, "InstrumentSet %s is not given to the nodes%s: %s. Remove what is wrong and list it anew", name, none, s.invalid)
	case len(s.kept) > 0:
		return no(reasonInstrumentsKept, "the nodes trade %d instruments as they were given to them, which is not what InstrumentSet %s lists%s. An instrument that is in the log is neither changed nor removed: put it back in the list as it was",
			s.n, name, some(s.kept))
	}
	if j, silent := o.notAsked(api.ConditionInstrumentsLoaded); silent {
		return j
	}
	var refused, differ, old []string
	for _, pod := range o.executing() {
		switch x := o.room.executions[pod]; {
		case x.Error != "":
			refused = append(refused, pod+": "+x.Error)
		case len(x.Differ) > 0:
			differ = append(differ, pod+": "+strings.Join(x.Differ, ", "))
		case x.SHA256 != s.sha256 || x.Missing > 0:
			old = append(old, pod)
		}
	}
	switch {
	case len(refused) > 0:
		return no(reasonInstrumentsRefused, "a node trades what it had before%s", some(refused))
	case len(differ) > 0:
		return no(reasonInstrumentsDiffer, "the log has instruments otherwise than InstrumentSet %s lists them, and goes on with its own%s. List them as they were", name, some(differ))
	case len(old) > 0:
		return no(reasonInstrumentsOnTheWay, "%d instruments of InstrumentSet %s are on the way to %d of %d pods%s. The kubelet takes about a minute", s.n, name, len(old), len(o.room.executions), some(old))
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, fmt.Sprintf("the nodes trade the %d instruments of InstrumentSet %s", s.n, name)}
}

// judgeExecutions: the copies of each partition have executed its log in the same way.
func judgeExecutions(o *observation) judgement {
	if !o.grid.Spec.Matches() {
		return judgement{}
	}
	if j, silent := o.notAsked(api.ConditionExecutionsAgree); silent {
		return j
	}
	var where []string
	for _, pod := range o.executing() {
		for _, p := range o.room.executions[pod].Diverged {
			where = append(where, p+" on "+pod)
		}
	}
	if len(where) > 0 {
		return judgement{metav1.ConditionFalse, reasonExecutionDiverged, fmt.Sprintf("two copies have executed the same log in different ways, and nothing is reported from there on%s. See docs/runbooks/ExecutionDiverged.md", some(where))}
	}
	return judgement{metav1.ConditionTrue, reasonExecutionsEqual, fmt.Sprintf("%d pods report no difference between the executions of two copies", len(o.room.executions))}
}
