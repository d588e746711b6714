package failoverdrill

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// situation reads what the roles of a step are resolved from. Not from the cache: with an old one a fault would hit a
// pod that is no longer primary.
func (r *Reconciler) situation(ctx context.Context, o *observation) (*plan.Situation, error) {
	now := &plan.Situation{Grid: o.grid, Recorder: o.pod, Safety: o.drill.Spec.Safety}
	var partitions api.GridPartitionList
	if err := r.Live.List(ctx, &partitions, inGrid(o.drill)...); err != nil {
		return nil, fmt.Errorf("list GridPartitions: %w", err)
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, inGrid(o.drill)...); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	now.Partitions, now.Pods = partitions.Items, pods.Items
	return now, nil
}

// inGrid selects the objects of the drill's grid.
func inGrid(d *api.FailoverDrill) []client.ListOption {
	return []client.ListOption{client.InNamespace(d.Namespace), client.MatchingLabels{api.LabelGrid: d.Spec.GridRef.Name}}
}

func role(p *plan.Step) api.DrillRole {
	if t := p.Fault.Target; t != nil && t.Role != "" {
		return t.Role
	}
	return api.RolePrimary
}

func targetsOf(pods []corev1.Pod) (list []api.DrillTargetPod) {
	for i := range pods {
		list = append(list, targetOf(&pods[i]))
	}
	return list
}

func names(targets []api.DrillTargetPod) string {
	list := make([]string, len(targets))
	for i := range targets {
		list[i] = targets[i].Name
	}
	return strings.Join(list, ", ")
}

// served are partition ids on the wire, from the names of their records.
func served(now *plan.Situation, records []string) (list []string) {
	for i := range now.Partitions {
		for _, name := range records {
			if p := &now.Partitions[i]; p.Name == name {
				list = append(list, fmt.Sprintf("p%d", p.Spec.Partition))
			}
		}
	}
	return list
}

// faultOf is a step's fault for the injectors, built from status.
func faultOf(o *observation, s *api.DrillStep) *inject.Fault {
	p := &o.plan[s.Index]
	f := &inject.Fault{
		Drill: drillOf(o.drill), Step: int(s.Index), Spec: p.Fault, Grid: o.grid, Nodes: s.Nodes, Partitions: nil,
		Pods: podsIn(o.drill.Namespace, s.Targets), Peers: podsIn(o.drill.Namespace, s.Peers), Duration: heldTime(o.plan, int(s.Index)),
	}
	if s.Partition != "" {
		f.Partitions = []string{s.Partition}
	}
	if f.Grid == nil { // it was deleted meanwhile, and its faults are recovered regardless
		f.Grid = &api.OrderGrid{}
		f.Grid.Namespace, f.Grid.Name = o.drill.Namespace, o.drill.Spec.GridRef.Name
	}
	return f
}

func podsIn(namespace string, targets []api.DrillTargetPod) (pods []corev1.Pod) {
	for _, t := range targets {
		pod := corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID = namespace, t.Name, types.UID(t.UID)
		pod.Spec.NodeName, pod.Status.PodIP = t.Node, t.IP
		if t.IP != "" {
			pod.Status.PodIPs = []corev1.PodIP{{IP: t.IP}}
		}
		pods = append(pods, pod)
	}
	return pods
}
