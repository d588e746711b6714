// Package inject makes the faults of a FailoverDrill and takes them back: through Chaos Mesh (ChaosMesh), through a
// service outside Kubernetes (Executors), or by what the grid itself offers (Grid).
//
// An Injector keeps no state: everything it needs stands in the Fault, in the API server and at the executor, so that an
// operator that starts in the middle of a drill goes on where the one before it ended. Every call may be repeated.
package inject

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Injector makes the faults of one provider. The methods return within the deadline of their context; an error is one
// that may pass (the API server or the executor did not answer), unless IsPermanent says otherwise.
type Injector interface {
	// Provider is what stands in the status of a step that this injector makes.
	Provider() Provider

	// Supports says for every type of the scope whether the provider can make it there. The answer may be Asking for
	// the first calls: something has to be tried on the nodes first. Call again after a second, with the same scope.
	// What it tried with is being removed once no answer is Asking; RecoverAll removes it as well.
	Supports(ctx context.Context, scope *Scope) (map[api.DrillFaultType]Answer, error)

	// Inject asks for the fault, or finds that it was asked for. That it is asked for does not say that it is there:
	// State says so, and the witness.
	Inject(ctx context.Context, f *Fault) error

	// State is what the provider says of the fault now.
	State(ctx context.Context, f *Fault) (State, error)

	// Recover asks to take the fault back. It works as well when the fault was never asked for or is gone. State says
	// Gone once nothing is left; Recover is called until then, because each call does what can be done by then about
	// a fault that is stuck.
	Recover(ctx context.Context, f *Fault) error

	// Leftovers names everything of the drill that the provider still holds, in words for a person. Empty: nothing.
	Leftovers(ctx context.Context, d Drill) ([]string, error)

	// RecoverAll asks to take back everything of the drill, known by its labels and names alone. Called until
	// Leftovers is empty.
	RecoverAll(ctx context.Context, d Drill) error
}

// Provider names who makes a fault, as in status.providers of a drill.
type Provider string

const (
	// ProviderChaosMesh makes faults with Chaos Mesh's objects.
	ProviderChaosMesh Provider = "ChaosMesh"
	// ProviderExecutor and the name of one behind it makes faults through a service outside Kubernetes.
	ProviderExecutor Provider = "Executor/"
	// ProviderGrid makes faults by what the grid offers: a hand-over, a rolling update, the deletion of a pod.
	ProviderGrid Provider = "Grid"
)

// Drill names a FailoverDrill.
type Drill struct {
	Namespace string
	Name      string
	UID       types.UID
}

// Fault is one step of a drill, with what it hits.
type Fault struct {
	Drill Drill
	// Step is the index of the step in the drill's plan, from 0. With Drill it makes the names of all objects.
	Step int
	// Spec is the fault as the drill describes it, drawn from its list.
	Spec api.DrillFault
	// Pods that are hit, as they were when the step began. Of a pod the injectors use name, namespace, UID, the node's
	// name, the pod's addresses and the annotations k8s.v1.cni.cncf.io/network-status; what is missing is read anew.
	Pods []corev1.Pod
	// Peers are the other ends of a network fault; empty means all traffic of Pods. For a HandOver, the first is the
	// pod that becomes primary; empty means the injector chooses among those in sync.
	Peers []corev1.Pod
	// Nodes that are hit by a node fault.
	Nodes []string
	// Partitions are the names of the GridPartitions a HandOver moves.
	Partitions []string
	Grid       *api.OrderGrid
	// Said is what State answered last. A witness counts what an executor measures; an injector does not look at it.
	Said State
	// Duration the fault is to last. Providers take it back by themselves Margin after it.
	Duration time.Duration
}

// Margin is how much longer than Fault.Duration a fault lasts if the operator does not take it back: time for the
// injection itself, and for an operator that starts anew.
const Margin = 60 * time.Second

// Scope is what a drill wants to do where.
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
	// Yes says that every node of the scope can.
	Yes Verdict = "Yes"
	// No says that one cannot; the message says why and what to do about it.
	No Verdict = "No"
	// Asking says that it is being tried; ask again.
	Asking Verdict = "Asking"
)

// Answer of Supports for one type.
type Answer struct {
	Verdict Verdict
	// Message says, for No, why not and the remedy; for Asking, what is being tried.
	Message string
}

// Phase of a fault as its provider sees it.
type Phase string

const (
	// Pending is asked for, not there yet.
	Pending Phase = "Pending"
	// Injected is in place everywhere. Of what happens once, a kill, it says that it has happened.
	Injected Phase = "Injected"
	// Recovering is being taken back.
	Recovering Phase = "Recovering"
	// Gone says that there is nothing of it, because it was taken back or was never asked for.
	Gone Phase = "Gone"
	// Failed will not be there; the message says why. Recover it all the same: then it is Gone.
	Failed Phase = "Failed"
)

// State of a fault.
type State struct {
	Phase Phase
	// Message is what the provider says, with the remedy if one is known.
	Message string
	// Seen is the provider's own witness, if it has one: "" or what it has measured that shows the fault.
	Seen string
	// Ended is true when the provider has taken the fault back by itself, because its time was over.
	Ended bool
}
