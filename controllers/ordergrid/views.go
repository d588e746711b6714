package ordergrid

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Reasons of the condition ViewsComplete.
const (
	reasonViewsComplete   = "Complete"
	reasonViewsIncomplete = "Incomplete"
	reasonViewsBehind     = "Behind"
	reasonViewsStarting   = "Starting"
)

// viewsFarBehind is how many committed entries a view may lack: a second or two of a busy partition.
const viewsFarBehind = 100_000

// nodeMemory is what a grid node has for orders, for views of them, and for regions.
func nodeMemory(grid *api.OrderGrid) resource.Quantity {
	n := grid.Spec.Memory.DeepCopy()
	if v := grid.Spec.Views; v != nil {
		n.Add(v.Memory)
	}
	if x := grid.Spec.Regions; x != nil {
		n.Add(x.Memory)
	}
	return n
}

// viewArgs configure the views of a grid node.
func viewArgs(grid *api.OrderGrid) []string {
	v := grid.Spec.Views
	if v == nil {
		return nil
	}
	args := []string{"--views", v.Memory.String(), "--view-rows", fmt.Sprint(v.Rows), "--view-values", fmt.Sprint(v.Values)}
	if v.Copies == api.ViewsOnBackups {
		args = append(args, "--view-copies", "backup")
	}
	for _, x := range grid.Spec.OrderIndex {
		column := fmt.Sprintf("%d:%s", x.Tag, strings.ToLower(string(x.Type)))
		if x.Name != "" {
			column += ":" + x.Name
		}
		args = append(args, "--order-index", column)
	}
	return args
}

// viewState is what a node reports of a view, as coarse as it is judged.
type viewState struct {
	kept   bool
	behind bool
	why    string // it is not whole
}

// viewsOf are the views of a grid, by pod and partition.
func viewsOf(answers []*nodestatus.Memory) map[string]map[string]viewState {
	all := map[string]map[string]viewState{}
	for _, m := range answers {
		all[m.Pod] = map[string]viewState{}
		for _, v := range m.Views {
			all[m.Pod][v.Partition] = viewState{kept: v.Kept, behind: v.Lag > viewsFarBehind, why: v.Error}
		}
	}
	return all
}

// judgeViews: questions about every order are answered, by the copies that spec.views names.
func judgeViews(o *observation) judgement {
	switch before := meta.FindStatusCondition(o.grid.Status.Conditions, api.ConditionViewsComplete); {
	case o.grid.Spec.Views == nil:
		return judgement{}
	case !o.roomAsked && before != nil:
		return judgement{before.Status, before.Reason, before.Message} // this operator has just started
	case !o.roomAsked || !o.room.known:
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, "no grid node has answered the operator about its views yet"}
	}
	var missing, behind, silent, starting []string
	for i := range o.partitions {
		o.judgeView(&o.partitions[i], &missing, &behind, &silent, &starting)
	}
	of := o.wantPartitions()
	switch {
	case len(missing) > 0:
		return judgement{metav1.ConditionFalse, reasonViewsIncomplete, fmt.Sprintf("questions about the latest orders are refused for want of a whole view, at %d copies of %d partitions%s. Raise spec.views: memory, rows or values, as the message says",
			len(missing), of, some(missing))}
	case len(starting) > 0 || len(o.partitions) < of:
		return judgement{metav1.ConditionFalse, reasonViewsStarting, fmt.Sprintf("some copies of %d partitions run without views, or are not in sync yet%s", of, some(starting))}
	case len(behind) > 0:
		return judgement{metav1.ConditionFalse, reasonViewsBehind, fmt.Sprintf("views lack more than %d committed orders, so answers are old or late%s", viewsFarBehind, some(behind))}
	case len(silent) > 0:
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, "these pods do not answer the operator" + some(silent)}
	}
	return judgement{metav1.ConditionTrue, reasonViewsComplete, all(of, "partition is", "partitions are") + " in whole views"}
}

// judgeView adds the copies of a partition whose views are not as spec.views asks.
func (o *observation) judgeView(p *api.GridPartition, missing, behind, silent, starting *[]string) {
	kept := false
	name := fmt.Sprintf("p%d", p.Spec.Partition)
	for _, m := range p.Status.InSync {
		node, answered := o.room.views[m.PodName]
		v, there := node[name]
		where := name + " on " + m.PodName
		switch {
		case !answered:
			*silent = append(*silent, m.PodName)
			kept = true // not known
		case !there:
			*starting = append(*starting, where)
		case !v.kept:
			continue // of a primary
		case v.why != "":
			*missing = append(*missing, where+": "+v.why)
		case v.behind:
			*behind = append(*behind, where)
		}
		kept = kept || there
	}
	if !kept && !slices.Contains(*starting, name) {
		*starting = append(*starting, name)
	}
	*silent = slices.Compact(*silent)
}
