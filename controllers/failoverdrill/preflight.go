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
	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// Reasons of the condition Preflight in addition to those of the phases.
const (
	reasonNamespaceNotAllowed = "NamespaceNotAllowed"
	reasonGridNotReady        = "GridNotReady"
	reasonGridMismatch        = "GridMismatch"
	reasonTooManyShards       = "TooManyShards"
	reasonFaultNotPossible    = "FaultNotPossible"
	reasonFaultNotAllowed     = "FaultNotAllowed"
	reasonGridTooSmall        = "GridTooSmall"
)

// AllNamespaces in the list of namespaces lets drills run everywhere.
const AllNamespaces = allow.AllNamespaces

// CheckFaultType validates an entry of the faults that an administrator allows beyond the grid.
func CheckFaultType(entry string) error {
	beyond := api.DrillFaultsBeyondGrid()
	if slices.Contains(beyond, api.DrillFaultType(entry)) {
		return nil
	}
	return fmt.Errorf("%q is not a type of fault that has to be allowed; these are %s, and all others affect the grid alone", entry, typeNames(beyond))
}

func typeNames(types []api.DrillFaultType) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = string(t)
	}
	return strings.Join(list, ", ")
}

// problem is an obstacle to a drill, with its remedy.
type problem struct{ reason, message string }

// preflight is the result of the checks before a drill begins.
type preflight struct {
	problems []problem
	// asking is what is still being checked.
	asking    string
	providers []api.DrillProvider
	// skipped are the faults that are left out, because no provider supports them and the drill allows that.
	skipped []api.DrillSkipped
	// notes are hints for the user who runs the drill.
	notes []string
}

func (c *preflight) add(reason, format string, args ...any) {
	c.problems = append(c.problems, problem{reason, fmt.Sprintf(format, args...)})
}

// reason of the first problem: the checks are in the order in which a user would fix them.
func (c *preflight) reason() string { return c.problems[0].reason }

// message has all problems, so that they can be fixed at once.
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

// check finds all obstacles. Whether a fault is supported may have to be tested on the nodes, which is not done where
// no drill may run.
func check(ctx context.Context, o *observation, pods []corev1.Pod, rules *Defaults, injectors []inject.Injector, asked Memories) (c preflight) {
	namespaces := rules.Namespaces
	if d := o.drill; !slices.Contains(namespaces, d.Namespace) && !slices.Contains(namespaces, AllNamespaces) {
		c.add(reasonNamespaceNotAllowed, "the operator runs no drills in namespace %s; add it to the chart's value drills.namespaces (now: [%s]), or run the drill on a grid in one of these",
			d.Namespace, strings.Join(namespaces, " "))
		return c
	}
	var possible preflight
	possible.checkProviders(ctx, o, pods, rules.Allowed, injectors)
	if len(possible.skipped) > 0 {
		o.plan = plan.Without(o.plan, possible.skipped)
	}
	c.checkConditions(o.drill, o.grid)
	c.checkFaults(o.drill, o.grid, o.plan)
	c.checkNodes(o.drill, o.plan, pods)
	possible.problems = append(c.problems, possible.problems...)
	if len(possible.problems) == 0 && possible.asking == "" {
		possible.memoryCheck(ctx, o, pods, asked)
	}
	return possible
}

// checkFaults compares each fault with the grid.
func (c *preflight) checkFaults(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step) {
	if s, err := plan.SuiteByName(d.Spec.Suite); err == nil && s.Matches && !grid.Spec.Matches() {
		c.add(reasonGridMismatch, "suite %s needs a grid that matches, and OrderGrid %s stores orders (execution.mode); name another grid, or another suite", s.Name, grid.Name)
	}
	done := map[string]bool{}
	for i := range steps {
		if p := &steps[i]; !done[p.Fault.Name] {
			done[p.Fault.Name] = true
			c.checkFault(d, grid, p)
		}
	}
}

// checkConditions: a degraded grid is not disturbed further.
func (c *preflight) checkConditions(d *api.FailoverDrill, grid *api.OrderGrid) {
	for _, kind := range []string{api.ConditionAvailable, api.ConditionRedundant, api.ConditionDataLossSuspected, api.ConditionConfigurationRegressed} {
		want := metav1.ConditionTrue
		if kind == api.ConditionDataLossSuspected || kind == api.ConditionConfigurationRegressed {
			want = metav1.ConditionFalse
		}
		if kind == api.ConditionRedundant && d.Spec.Safety.WhenNotRedundant == api.NotRedundantAllow {
			continue
		}
		found := meta.FindStatusCondition(grid.Status.Conditions, kind)
		if found == nil && want == metav1.ConditionFalse || found != nil && found.Status == want {
			continue
		}
		text := "it has no status yet"
		if found != nil {
			text = found.Message
		}
		c.add(reasonGridNotReady, "condition %s of OrderGrid %s is not %s: %s", kind, grid.Name, want, text)
	}
}

// checkFault checks that the fault is meaningful for the grid.
func (c *preflight) checkFault(d *api.FailoverDrill, grid *api.OrderGrid, p *plan.Step) {
	f := &p.Fault
	switch {
	case grid.Spec.Replicas < 2 && needsBackup(p):
		c.add(reasonGridMismatch, "fault %s (%s) needs a backup, and OrderGrid %s has replicas: 1; name a grid with two copies or more, or leave the fault out", f.Name, f.Type, grid.Name)
	case grid.Spec.Replicas < 2 && plan.EndsCopies(f.Type) && d.Spec.Safety.LastCopy != api.LastCopyTake && !refusalExpected(p):
		c.add(reasonGridMismatch, "fault %s (%s) takes the only copy there is: OrderGrid %s has replicas: 1, and every order that was acknowledged would be lost; set spec.safety.lastCopy: Take to see that, or name a grid with two copies or more", f.Name, f.Type, grid.Name)
	case f.Expect != nil && f.Expect.Grid == api.GridRefusesOrders && grid.Spec.MinInSync < 2 && f.Start != api.StartHeld:
		c.add(reasonGridMismatch, "fault %s expects that orders are refused when copies are missing, and OrderGrid %s has minInSync: %d, with which one copy is enough; set it to 2, or leave out expect.grid", f.Name, grid.Name, grid.Spec.MinInSync)
	case (f.Type == api.FaultIODelay || f.Type == api.FaultIOError) && len(grid.FileSinks()) == 0:
		c.add(reasonGridMismatch, "fault %s (%s) concerns the files of a sink, and OrderGrid %s has none; name a grid with a sink of type File", f.Name, f.Type, grid.Name)
	}
}

// needsBackup: without a second copy the fault has no target, or no other end.
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

// checkNodes: a fault of a machine affects every shard with a pod on it.
func (c *preflight) checkNodes(d *api.FailoverDrill, steps []plan.Step, pods []corev1.Pod) {
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
		return !p.Fault.Type.GridWide() && (p.Fault.Type.OfMachine() || role(&p) == api.RoleNode)
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

// checkProviders chooses the provider of each type of fault: the first injector that supports it on every node
// concerned. A type that an administrator does not allow in the namespace has none.
func (c *preflight) checkProviders(ctx context.Context, o *observation, pods []corev1.Pod, allowed allow.List, injectors []inject.Injector) {
	spec := &o.drill.Spec
	scope := &inject.Scope{Drill: drillOf(o.drill), Grid: o.grid, Nodes: nodesOf(pods), Faults: spec.Faults}
	types := typesOf(spec.Faults)
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
	unsupported := map[string]string{}
	for _, t := range types {
		reason, why := reasonFaultNotAllowed, notAllowed(t, o.drill.Namespace, allowed)
		if why == "" {
			reason, why = reasonFaultNotPossible, c.choose(t, injectors, answers)
		}
		switch {
		case why == "":
		case spec.UnsupportedFaults == api.UnsupportedSkip:
			for i := range spec.Faults {
				if spec.Faults[i].Type == t {
					unsupported[spec.Faults[i].Name] = brief(why)
				}
			}
		default:
			c.add(reason, "faults of type %s cannot be made: %s; fix that, or leave them out with spec.unsupportedFaults: Skip", t, why)
		}
	}
	if c.asking != "" || len(unsupported) == 0 {
		return
	}
	c.skipped = plan.Skip(spec, unsupported)
	if len(plan.Without(o.plan, c.skipped)) == 0 {
		c.add(reasonFaultNotPossible, "none of the faults can be made: %s", c.skipped[0].Message)
	}
}

// notAllowed returns why a type of fault is not allowed in a namespace; empty if it is.
func notAllowed(t api.DrillFaultType, namespace string, allowed allow.List) string {
	if !slices.Contains(api.DrillFaultsBeyondGrid(), t) || slices.Contains(allowed.In(namespace), string(t)) {
		return ""
	}
	return fmt.Sprintf("it affects more than the grid (%s), and an administrator has to allow it, by the value drills.allow of the operator's chart", allowed.Sentence(namespace))
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

// choose returns the first injector that answers Yes; while an earlier one answers Asking, none is chosen. If all
// answer No it returns why.
func (c *preflight) choose(t api.DrillFaultType, injectors []inject.Injector, answers []map[api.DrillFaultType]inject.Answer) string {
	var why []string
	for i, in := range injectors {
		switch a := answers[i][t]; a.Verdict {
		case inject.Yes:
			c.providers = append(c.providers, api.DrillProvider{Type: t, Provider: string(in.Provider())})
			return ""
		case inject.Asking:
			c.asking = fmt.Sprintf("%s for %s: %s", in.Provider(), t, a.Message)
			return ""
		default:
			if a.Message != "" {
				why = append(why, fmt.Sprintf("%s: %s", in.Provider(), a.Message))
			}
		}
	}
	if len(why) == 0 {
		return "no provider supports it; start the operator with an executor that offers it (chart value drills.executors)"
	}
	return strings.Join(why, "; ")
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
