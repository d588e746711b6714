package failoverdrill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// Reasons of the condition Preflight beside those of the phases.
const (
	reasonNamespaceNotAllowed = "NamespaceNotAllowed"
	reasonGridNotReady        = "GridNotReady"
	reasonGridMismatch        = "GridMismatch"
	reasonTooManyShards       = "TooManyShards"
	reasonFaultNotPossible    = "FaultNotPossible"
)

// AllNamespaces in the list of namespaces lets drills run everywhere.
const AllNamespaces = "*"

// problem is something that stands in the way of a drill, with its remedy.
type problem struct{ reason, message string }

// preflight is what was found out before a drill begins.
type preflight struct {
	problems []problem
	// asking says what is still being found out.
	asking    string
	providers []api.DrillProvider
}

func (c *preflight) add(reason, format string, args ...any) {
	c.problems = append(c.problems, problem{reason, fmt.Sprintf(format, args...)})
}

// reason of the first problem: the checks are in the order in which a person would go about them.
func (c *preflight) reason() string { return c.problems[0].reason }

// message has all problems, so that nobody has to mend one to see the next.
func (c *preflight) message() string {
	if len(c.problems) == 1 {
		return c.problems[0].message
	}
	list := make([]string, len(c.problems))
	for i, p := range c.problems {
		list[i] = fmt.Sprintf("(%d) %s", i+1, p.message)
	}
	return strings.Join(list, ". ")
}

// checkGrid holds the drill against the grid as it is. It changes nothing.
func checkGrid(c *preflight, o *observation, pods []corev1.Pod, namespaces []string) {
	d, grid := o.drill, o.grid
	if !slices.Contains(namespaces, d.Namespace) && !slices.Contains(namespaces, AllNamespaces) {
		c.add(reasonNamespaceNotAllowed, "the operator runs no drills in namespace %s; add it to the chart's value drills.namespaces (now: %s), or run the drill on a grid in one of these",
			d.Namespace, strings.Join(append([]string{"["}, namespaces...), " ")+" ]")
	}
	checkConditions(c, d, grid)
	done := map[string]bool{}
	for i := range o.plan {
		p := &o.plan[i]
		if done[p.Fault.Name] {
			continue
		}
		done[p.Fault.Name] = true
		checkFault(c, d, grid, p)
	}
	checkNodes(c, d, o.plan, pods)
}

// checkConditions: a grid in trouble is not broken further.
func checkConditions(c *preflight, d *api.FailoverDrill, grid *api.OrderGrid) {
	for kind, want := range map[string]metav1.ConditionStatus{
		api.ConditionAvailable: metav1.ConditionTrue, api.ConditionRedundant: metav1.ConditionTrue,
		api.ConditionDataLossSuspected: metav1.ConditionFalse, api.ConditionConfigurationRegressed: metav1.ConditionFalse,
	} {
		if kind == api.ConditionRedundant && d.Spec.Safety.WhenNotRedundant == api.NotRedundantAllow {
			continue
		}
		found := meta.FindStatusCondition(grid.Status.Conditions, kind)
		if found == nil && want == metav1.ConditionFalse || found != nil && found.Status == want {
			continue
		}
		text := "its status is not known yet"
		if found != nil {
			text = found.Message
		}
		c.add(reasonGridNotReady, "condition %s of OrderGrid %s is not %s: %s", kind, grid.Name, want, text)
	}
	slices.SortStableFunc(c.problems, func(a, b problem) int { return strings.Compare(orderOf(a), orderOf(b)) })
}

// orderOf keeps the message the same however a map is walked through.
func orderOf(p problem) string {
	if p.reason == reasonNamespaceNotAllowed {
		return ""
	}
	return p.message
}

// checkFault: whether the grid is one the fault means something for.
func checkFault(c *preflight, d *api.FailoverDrill, grid *api.OrderGrid, p *plan.Step) {
	f := &p.Fault
	switch {
	case grid.Spec.Replicas < 2 && needsBackup(p):
		c.add(reasonGridMismatch, "fault %s (%s) needs a backup, and OrderGrid %s has replicas: 1; name a grid with two copies or more, or leave the fault out", f.Name, f.Type, grid.Name)
	case grid.Spec.Replicas < 2 && takesCopies(f.Type) && d.Spec.Safety.LastCopy != api.LastCopyTake && !refusalExpected(p):
		c.add(reasonGridMismatch, "fault %s (%s) takes the only copy there is: OrderGrid %s has replicas: 1, and every order that was acknowledged would be lost; set spec.safety.lastCopy: Take to see that, or name a grid with two copies or more", f.Name, f.Type, grid.Name)
	case f.Expect != nil && f.Expect.Grid == api.GridRefusesOrders && grid.Spec.MinInSync < 2:
		c.add(reasonGridMismatch, "fault %s expects that orders are refused when copies are missing, and OrderGrid %s has minInSync: %d, with which one copy is enough; set it to 2, or leave out expect.grid", f.Name, grid.Name, grid.Spec.MinInSync)
	case (f.Type == api.FaultIODelay || f.Type == api.FaultIOError) && grid.Spec.WriteBehind.Sink != api.SinkFile:
		c.add(reasonGridMismatch, "fault %s (%s) is about the files of the sink, and OrderGrid %s has writeBehind.sink: %s; name a grid with File", f.Name, f.Type, grid.Name, grid.Spec.WriteBehind.Sink)
	}
}

// needsBackup: without a second copy the fault has nobody to hit, or nobody at the other end.
func needsBackup(p *plan.Step) bool {
	f := &p.Fault
	switch r := role(p); {
	case f.Type.GridWide():
		return false
	case r == api.RoleBackup || r == api.RoleBackups || f.Type == api.FaultHandOver:
		return true
	}
	return strings.HasPrefix(string(f.Type), "Network") && (f.Target == nil || f.Target.Peer == "" || f.Target.Peer == api.PeerCopies)
}

// checkNodes: a fault of a machine concerns every shard with a pod on it.
func checkNodes(c *preflight, d *api.FailoverDrill, steps []plan.Step, pods []corev1.Pod) {
	limit := max(d.Spec.Safety.MaxShards, 1)
	shards := map[string]map[string]bool{}
	for i := range pods {
		node := pods[i].Spec.NodeName
		if shards[node] == nil {
			shards[node] = map[string]bool{}
		}
		shards[node][pods[i].Labels[api.LabelShard]] = true
	}
	i := slices.IndexFunc(steps, func(p plan.Step) bool {
		return !p.Fault.Type.GridWide() && (breaksMachine(p.Fault.Type) || role(&p) == api.RoleNode)
	})
	if i < 0 {
		return
	}
	for _, node := range slices.Sorted(maps.Keys(shards)) {
		if n := int32(len(shards[node])); n > limit {
			c.add(reasonTooManyShards, "node %s has pods of %d shards, and spec.safety.maxShards is %d: fault %s would concern them all; raise maxShards, or place the shards on different nodes", node, n, limit, steps[i].Fault.Name)
		}
	}
}

// checkProviders chooses who makes each type of fault: the first injector that can on every node concerned.
func checkProviders(ctx context.Context, c *preflight, o *observation, pods []corev1.Pod, injectors []inject.Injector) {
	scope := &inject.Scope{Drill: drillOf(o.drill), Grid: o.grid, Nodes: nodesOf(pods), Faults: o.drill.Spec.Faults}
	types := typesOf(o.drill.Spec.Faults)
	answers := make([]map[api.DrillFaultType]inject.Answer, len(injectors))
	for i, in := range injectors {
		ask, cancel := context.WithTimeout(ctx, 2*askLimit)
		var err error
		answers[i], err = in.Supports(ask, scope)
		cancel()
		if err != nil {
			answers[i] = map[api.DrillFaultType]inject.Answer{}
			for _, t := range types {
				answers[i][t] = inject.Answer{Verdict: inject.No, Message: "does not answer: " + err.Error()}
			}
		}
	}
	for _, t := range types {
		c.choose(t, injectors, answers)
	}
}

func typesOf(faults []api.DrillFault) (types []api.DrillFaultType) {
	for i := range faults {
		if t := faults[i].Type; !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

// choose takes the first injector that says yes; while one before it is being asked, nothing is chosen.
func (c *preflight) choose(t api.DrillFaultType, injectors []inject.Injector, answers []map[api.DrillFaultType]inject.Answer) {
	var why []string
	for i, in := range injectors {
		switch a := answers[i][t]; a.Verdict {
		case inject.Yes:
			c.providers = append(c.providers, api.DrillProvider{Type: t, Provider: string(in.Provider())})
			return
		case inject.Asking:
			c.asking = fmt.Sprintf("%s for %s: %s", in.Provider(), t, a.Message)
			return
		default:
			if a.Message != "" {
				why = append(why, fmt.Sprintf("%s: %s", in.Provider(), a.Message))
			}
		}
	}
	if len(why) == 0 {
		why = []string{"no provider knows it; start the operator with an executor that offers it (chart value drills.executors)"}
	}
	c.add(reasonFaultNotPossible, "faults of type %s cannot be made: %s", t, strings.Join(why, "; "))
}

func nodesOf(pods []corev1.Pod) (nodes []string) {
	for i := range pods {
		if n := pods[i].Spec.NodeName; n != "" && !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	slices.Sort(nodes)
	return nodes
}
