package ordergrid

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Reasons of condition FunctionsLoaded.
const (
	reasonLoaded            = "Loaded"
	reasonNotLoaded         = "NotLoaded"
	reasonFunctionNotFound  = "FunctionNotFound"
	reasonFunctionOtherKind = "FunctionOfOtherKind"
	reasonFunctionUnchecked = "FunctionNotChecked"
	reasonFunctionInvalid   = "FunctionInvalid"
	reasonStampGranted      = "StampGranted"
	reasonFunctionsOnTheWay = "OnTheWay"
)

// emptySHA256 is that of a file without content.
const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// postsOf adds up what the primaries report of functions of kind Post.
func postsOf(answers []*nodestatus.Memory) (all nodestatus.Posts) {
	for _, m := range answers {
		if m.Posts == nil {
			continue
		}
		for _, f := range m.Posts.InForce {
			all.Add(f)
		}
		all.Waiting = append(all.Waiting, m.Posts.Waiting...)
		all.Since = append(all.Since, m.Posts.Since...)
	}
	slices.Sort(all.Waiting)
	slices.SortFunc(all.Since, func(a, b nodestatus.PostsSince) int { return strings.Compare(a.Partition, b.Partition) })
	slices.SortFunc(all.InForce, func(a, b nodestatus.PostInForce) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.SHA256, b.SHA256), strings.Compare(a.ConfigSHA256, b.ConfigSHA256), cmp.Compare(a.Fuel, b.Fuel), cmp.Compare(a.Pages, b.Pages))
	})
	return all
}

// inForce is in how many partitions a function of kind Post is in force as it is given.
func (o *observation) inForce(f *givenFunction) int {
	want := nodestatus.PostInForce{Name: f.Name, SHA256: f.SHA256, Fuel: uint32(f.Fuel), Pages: uint32(f.MemoryPages), ConfigSHA256: f.ConfigSHA256}
	if f.ConfigSHA256 == emptySHA256 { // to a log, an empty configuration is none
		want.ConfigSHA256 = ""
	}
	for i := range o.room.posts.InForce {
		if p := &o.room.posts.InForce[i]; want.Is(p) {
			return p.Partitions
		}
	}
	return 0
}

// functionStatus is status.functions.
func (o *observation) functionStatus(before []api.GridFunctionUse) (list []api.GridFunctionUse) {
	if o.functions == nil {
		return before
	}
	for i := range o.functions.given.Functions {
		f := &o.functions.given.Functions[i]
		use := api.GridFunctionUse{Kind: f.Kind, Name: f.Name, SHA256: f.SHA256}
		if f.Kind == api.FunctionPost && o.roomAsked {
			use.Partitions = ptr.To(int32(o.inForce(f)))
		}
		list = append(list, use)
	}
	return list
}

// tellFunctions adds to the partitions from where on they call their functions.
func (o *observation) tellFunctions(partitions []api.PartitionSummary) {
	since := map[string]int64{}
	for _, s := range o.room.posts.Since {
		since[o.grid.Name+"-"+s.Partition] = int64(s.Entry)
	}
	for i := range partitions {
		partitions[i].FunctionsEntry = since[partitions[i].Name]
	}
}

// judgeFunctions: every pod runs with the functions of spec.callbacks, and every log has those of kind Post in force.
func judgeFunctions(o *observation) judgement {
	f := o.functions
	no := func(reason, format string, args ...any) judgement {
		return judgement{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	switch {
	case o.grid.Spec.Callbacks == nil:
		return judgement{}
	case f == nil:
		return o.asBefore(api.ConditionFunctionsLoaded)
	case f.bare() && len(o.pods) == 0:
		return no(f.reason, "%s. There are no pods until all functions of spec.callbacks can be given to them", sentences(f.troubles))
	case len(f.troubles) > 0 && !f.held:
		return no(f.reason, "%s. The pods are given: %s", sentences(f.troubles), f.given.names())
	case len(f.troubles) > 0:
		return no(f.reason, "%s. The pods go on with what they were given: %s", sentences(f.troubles), f.given.names())
	}
	want := f.given.args()
	var lacking []string
	for i := range o.pods {
		if p := &o.pods[i]; !runsWith(p, want) {
			lacking = append(lacking, p.Name)
		}
	}
	if n := len(lacking) + max(0, o.wantPods()-len(o.pods)); n > 0 {
		return no(reasonNotLoaded, "%d of %d pods do not run with the functions of spec.callbacks%s%s",
			n, max(o.wantPods(), len(o.pods)), some(lacking), messages.First(o.pods, messages.PodTrouble))
	}
	if j := o.judgePosts(); j.status != "" {
		return j
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, all(len(o.pods), "pod runs", "pods run") + " with the functions " + f.given.names()}
}

// judgePosts is empty where the logs have the functions of kind Post in force.
func (o *observation) judgePosts() judgement {
	for i := range o.functions.given.Functions {
		f := &o.functions.given.Functions[i]
		if f.Kind != api.FunctionPost {
			continue
		}
		if !o.roomAsked || !o.room.known {
			if before := meta.FindStatusCondition(o.grid.Status.Conditions, api.ConditionFunctionsLoaded); before != nil && !o.roomAsked {
				return judgement{before.Status, before.Reason, before.Message} // this operator has just started
			}
			return judgement{metav1.ConditionUnknown, reasonNodesSilent, "no grid node has answered the operator about the functions of its logs yet"}
		}
		if n, want := o.inForce(f), o.wantPartitions(); n < want || len(o.room.posts.Waiting) > 0 {
			return judgement{metav1.ConditionFalse, reasonFunctionsOnTheWay, fmt.Sprintf("function %s is in force in the logs of %d of %d partitions%s. A log changes once all its copies are in sync and have loaded what is new",
				f.Name, n, want, some(o.room.posts.Waiting))}
		}
	}
	return judgement{}
}

// names of the functions, for a message.
func (g *given) names() string {
	var names []string
	for i := range g.Functions {
		names = append(names, g.Functions[i].Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
