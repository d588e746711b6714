package witness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// nodeSight is a Kubernetes node and the grid's pods on it.
type nodeSight struct {
	Node  string            `json:"n"`
	Boot  string            `json:"b"` // of the machine
	Ready string            `json:"r"`
	Pods  map[string]string `json:"p"` // that answered, and their processes' boot ids
}

func (o *Observer) seeNodes(ctx context.Context, f *inject.Fault, before *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	targets, err := o.targets(ctx, f.Pods)
	if err != nil && before == nil {
		return nil, err
	}
	answers := askAll(ctx, s, targets, o.status)
	for _, name := range f.Nodes {
		node := &corev1.Node{}
		if err := o.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return nil, err
		}
		n := nodeSight{Node: name, Boot: node.Status.NodeInfo.BootID, Pods: map[string]string{}}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				n.Ready = string(c.Status)
			}
		}
		for i := range f.Pods {
			if a := answers[f.Pods[i].Name]; a != nil && f.Pods[i].Spec.NodeName == name {
				n.Pods[f.Pods[i].Name] = a.BootID
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	if len(s.Nodes) == 0 {
		return nil, fmt.Errorf("the fault hits no node")
	}
	return s, nil
}

func (o *Observer) status(ctx context.Context, p target) (*nodestatus.Node, error) {
	ctx, cancel := soon(ctx)
	defer cancel()
	return nodestatus.Get(ctx, o.Nodes, p.http())
}

// judgeNodes: every grid node of the machine that answered before is silent or replaced by now, or the control plane
// reports that the machine is gone or was rebooted.
func judgeNodes(_ *inject.Fault, before, now *sight) Result {
	r := Result{Seen: len(before.Nodes) > 0}
	var messages []string
	for _, was := range before.Nodes {
		at := slices.IndexFunc(now.Nodes, func(n nodeSight) bool { return n.Node == was.Node })
		if at < 0 {
			r.Seen = false
			messages = append(messages, "node "+was.Node+" was not looked at")
			continue
		}
		is := now.Nodes[at]
		var gone []string
		for pod, boot := range was.Pods {
			if is.Pods[pod] != boot {
				gone = append(gone, pod)
			}
		}
		slices.Sort(gone)
		seen := len(was.Pods) > 0 && len(gone) == len(was.Pods) || was.Ready == string(metav1.ConditionTrue) && is.Ready != was.Ready || is.Boot != was.Boot
		r.Seen = r.Seen && seen
		messages = append(messages, fmt.Sprintf("of %d grid nodes on node %s that answered before, %d no longer answer or were replaced (%s); its condition Ready is %q, before %q; its boot id is %s, before %s",
			len(was.Pods), was.Node, len(gone), strings.Join(gone, ", "), is.Ready, was.Ready, is.Boot, was.Boot))
	}
	r.Message = strings.Join(messages, "; ")
	return r
}

// arbiterSight is whether the API server answers a grid node.
type arbiterSight struct {
	Pod       string `json:"p"`
	IP        string `json:"ip"`
	Reachable string `json:"r"` // yes, no
	Error     string `json:"e,omitempty"`
}

const yes, no = "yes", "no"

// seeArbiters has the grid nodes read something from the API server. During its outage their addresses are those seen
// before.
func (o *Observer) seeArbiters(ctx context.Context, f *inject.Fault, before *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	var targets []target
	if before != nil {
		for _, a := range before.Arbiters {
			targets = append(targets, target{a.Pod, a.IP})
		}
	} else {
		pods := f.Pods
		if len(pods) == 0 {
			all, err := o.gridPods(ctx, f)
			if err != nil {
				return nil, err
			}
			pods = all
		}
		var err error
		if targets, err = o.targets(ctx, pods); err != nil {
			return nil, err
		}
	}
	targets = targets[:min(len(targets), mostArbiters)]
	answers := askAll(ctx, s, targets, func(ctx context.Context, p target) (*nodestatus.Arbiter, error) {
		return nodestatus.GetArbiter(ctx, o.Nodes, p.http()) // takes as long as the node's own attempt
	})
	for _, p := range targets {
		if a := answers[p.pod]; a != nil {
			seen := arbiterSight{Pod: p.pod, IP: p.ip, Reachable: no, Error: a.Error[:min(len(a.Error), 80)]}
			if a.Reachable {
				seen.Reachable = yes
			}
			s.Arbiters = append(s.Arbiters, seen)
		}
	}
	if before == nil {
		for _, a := range s.Arbiters {
			if a.Reachable != yes {
				return nil, fmt.Errorf("grid node %s cannot reach the API server before the fault: %s", a.Pod, a.Error)
			}
		}
	}
	return s, nil
}

// mostArbiters bounds how many are asked: for an outage of the API server that is enough.
const mostArbiters = 32

// judgeArbiters: every grid node that is hit reports that the API server does not answer.
func judgeArbiters(_ *inject.Fault, before, now *sight) Result {
	r := Result{Seen: len(before.Arbiters) > 0}
	var messages []string
	for _, was := range before.Arbiters {
		at := slices.IndexFunc(now.Arbiters, func(a arbiterSight) bool { return a.Pod == was.Pod })
		switch {
		case at < 0:
			r.Seen = false
			messages = append(messages, was.Pod+" does not answer: "+now.Silent[was.Pod])
		case now.Arbiters[at].Reachable == yes:
			r.Seen = false
			messages = append(messages, "the API server answers "+was.Pod)
		default:
			messages = append(messages, "the API server does not answer "+was.Pod+": "+now.Arbiters[at].Error)
		}
	}
	r.Message = strings.Join(messages, "; ")
	return r
}

// gridPods are the present pods of the grid, by name.
func (o *Observer) gridPods(ctx context.Context, f *inject.Fault) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := o.Client.List(ctx, &pods, client.InNamespace(f.Grid.Namespace),
		client.MatchingLabels{objects.LabelInstance: f.Grid.Name, objects.LabelComponent: objects.GridNode})
	byName := map[string]corev1.Pod{}
	for i := range pods.Items {
		byName[pods.Items[i].Name] = pods.Items[i]
	}
	out := make([]corev1.Pod, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out, err
}
