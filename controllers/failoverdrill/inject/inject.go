// Package inject makes the faults of a FailoverDrill and recovers them: through Chaos Mesh (ChaosMesh), through a
// service outside Kubernetes (Executors), or with the means of the grid itself (Grid).
//
// An Injector keeps no state: everything it needs is in the Fault, in the API server and at the executor, so that an
// operator that restarts in the middle of a drill continues where the previous one stopped. Every call may be repeated.
package inject

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Injector makes the faults of one provider. The methods return within the deadline of their context; an error is
// transient (the API server or the executor did not answer), unless IsPermanent is true.
type Injector interface {
	// Provider is the provider in the status of a step that this injector makes.
	Provider() Provider

	// Supports reports for every type of the scope whether the provider can make it there. The answer may be Asking for
	// the first calls, while the nodes are tested. Call again after a second, with the same scope. The objects of the
	// test are removed once no answer is Asking; RecoverAll removes them as well.
	Supports(ctx context.Context, scope *Scope) (map[api.DrillFaultType]Answer, error)

	// Inject requests the fault, or finds that it was requested. That does not mean that it is in place: see State, and
	// the witness.
	Inject(ctx context.Context, f *Fault) error

	// State is the provider's present state of the fault.
	State(ctx context.Context, f *Fault) (State, error)

	// Recover requests the recovery of the fault. It also works when the fault was never requested or is gone. State is
	// Gone once nothing is left; Recover is called until then, because each call takes the next step for a fault that
	// is stuck.
	Recover(ctx context.Context, f *Fault) error

	// Leftovers names everything of the drill that the provider still holds, for messages. Empty: nothing.
	Leftovers(ctx context.Context, d Drill) ([]string, error)

	// RecoverAll requests the recovery of everything of the drill, known by its labels and names alone. Called until
	// Leftovers is empty.
	RecoverAll(ctx context.Context, d Drill) error
}

// Provider names the maker of a fault, as in status.providers of a drill.
type Provider string

const (
	// ProviderChaosMesh makes faults with Chaos Mesh's objects.
	ProviderChaosMesh Provider = "ChaosMesh"
	// ProviderExecutor and the name of one behind it makes faults through a service outside Kubernetes.
	ProviderExecutor Provider = "Executor/"
	// ProviderGrid makes faults with the means of the grid: a hand-over, a rolling update, the deletion of a pod.
	ProviderGrid Provider = "Grid"
)

// Drill names a FailoverDrill.
type Drill struct {
	Namespace string
	Name      string
	UID       types.UID
}

// Fault is one step of a drill, with its targets.
type Fault struct {
	Drill Drill
	// Step is the index of the step in the drill's plan, from 0. With Drill it makes the names of all objects.
	Step int
	// Spec is the fault as described by the drill, taken from its list.
	Spec api.DrillFault
	// Pods that are hit, as of the beginning of the step. Of a pod the injectors use name, namespace, UID, the node's
	// name, the pod's addresses and the annotations k8s.v1.cni.cncf.io/network-status; missing fields are read anew.
	Pods []corev1.Pod
	// Peers are the other ends of a network fault; empty means all traffic of Pods. For a HandOver, the first is the
	// pod that becomes primary; empty means the injector chooses among those in sync.
	Peers []corev1.Pod
	// Nodes hit by a node fault.
	Nodes []string
	// Partitions are the names of the GridPartitions a HandOver moves.
	Partitions []string
	Grid       *api.OrderGrid
	// Reported is the last result of State. A witness uses an executor's counters; an injector ignores it.
	Reported State
	// Duration of the fault. Providers recover it by themselves Margin after it.
	Duration time.Duration
}

// Margin is how much longer than Fault.Duration a fault lasts if the operator does not recover it: time for the
// injection itself, and for a restart of the operator.
const Margin = 60 * time.Second

// Scope is the faults and nodes of a drill.
type Scope struct {
	Drill Drill
	Grid  *api.OrderGrid
	// Faults of the drill. Of those of one type, Supports answers for the most demanding.
	Faults []api.DrillFault
	// Nodes that may be concerned: those with a pod of the grid.
	Nodes []string
}

// Verdict is whether a provider can make a type of fault.
type Verdict string

const (
	// Yes: every node of the scope can.
	Yes Verdict = "Yes"
	// No: one cannot; the message has the reason and the remedy.
	No Verdict = "No"
	// Asking: it is being tested; ask again.
	Asking Verdict = "Asking"
)

// Answer of Supports for one type.
type Answer struct {
	Verdict Verdict
	// Message is, for No, the reason and the remedy; for Asking, what is being tested.
	Message string
}

// Phase of a fault as seen by its provider.
type Phase string

const (
	// Pending is requested, not in place yet.
	Pending Phase = "Pending"
	// Injected is in place everywhere. A momentary fault, a kill, has happened.
	Injected Phase = "Injected"
	// Recovering is being recovered.
	Recovering Phase = "Recovering"
	// Gone: nothing of it is left, because it was recovered or was never requested.
	Gone Phase = "Gone"
	// Failed will not be in place; the message has the reason. Recover it regardless: then it is Gone.
	Failed Phase = "Failed"
)

// State of a fault.
type State struct {
	Phase Phase
	// Message of the provider, with the remedy if one is known.
	Message string
	// Seen is the provider's own witness, if it has one: "" or the measurement that shows the fault.
	Seen string
	// Ended is true when the provider has recovered the fault by itself, because its time was over.
	Ended bool
}
