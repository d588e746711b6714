package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Situation is the state of a grid right before a step.
type Situation struct {
	Grid       *api.OrderGrid
	Partitions []api.GridPartition // of this grid
	Pods       []corev1.Pod        // of this grid
	Recorder   *corev1.Pod
	Safety     api.DrillSafety
}

// Target is what a step hits.
type Target struct {
	// Pods, sorted by name. For a fault of the whole grid, all of them.
	Pods []corev1.Pod
	// Peers are the other ends of a network fault, none for all; of a hand-over, the pod that becomes primary.
	Peers []corev1.Pod
	// Nodes of the pods, each once, by name: affected by a fault of a machine.
	Nodes []string
	// Partitions whose primary or copies are affected, by name: those of the shards of Pods.
	Partitions []string
	// Partition of the step, by name; "" for the whole grid.
	Partition string
}

// RefusedError means that safety forbids the step now.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }

// NotYetError means that no pod has the role at the moment; try again.
type NotYetError struct{ Message string }

func (e *NotYetError) Error() string { return e.Message }

// IsRefused reports whether a step was refused by safety.
func IsRefused(err error) bool { return errors.As(err, new(*RefusedError)) }

// Resolve returns the targets of a step, if it is allowed: the error is a RefusedError, or a NotYetError where no pod
// has the role. It reads nothing but its arguments.
func Resolve(s *Step, now *Situation) (*Target, error) {
	t := &Target{}
	if s.Fault.Type.GridWide() {
		t.Pods = byName(now.Pods)
	} else if err := t.find(s, now); err != nil {
		return nil, err
	}
	t.Nodes = nodesOf(t.Pods)
	if s.Fault.Type.OfMachine() {
		t.Pods = on(now.Pods, t.Nodes)
		if r := now.Recorder; r != nil && slices.Contains(t.Nodes, r.Spec.NodeName) {
			return nil, &RefusedError{fmt.Sprintf("%s would break machine %s, which the recorder is on: its ledger would be lost", s.Fault.Name, r.Spec.NodeName)}
		}
	}
	shards := shardsOf(t.Pods)
	t.Partitions = now.PartitionsOf(t.Pods)
	if s.Fault.Type == api.FaultHandOver {
		t.Partitions = []string{t.Partition}
	}
	if err := t.findPeers(s, now); err != nil {
		return nil, err
	}
	if n := int32(len(shards)); !s.Fault.Type.GridWide() && n > now.Safety.MaxShards {
		return nil, &RefusedError{fmt.Sprintf("%s would hit %d shards (%s), safety.maxShards is %d; raise it, or keep shards on machines of their own",
			s.Fault.Name, n, joined(names(t.Pods)), now.Safety.MaxShards)}
	}
	return t, keepLastCopy(s, t, now)
}

// PartitionsOf are the partitions whose present or desired shard is one of the pods', by name: one that moves is on
// two.
func (now *Situation) PartitionsOf(pods []corev1.Pod) (list []string) {
	shards := shardsOf(pods)
	mates := map[string]bool{}
	for i := range now.Pods {
		if shard, ok := shardOf(&now.Pods[i]); ok && slices.Contains(shards, shard) {
			mates[now.Pods[i].Name] = true
		}
	}
	for i := range now.Partitions {
		p := &now.Partitions[i]
		if slices.Contains(shards, p.Spec.Shard) || slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool { return mates[m.PodName] }) {
			list = append(list, p.Name)
		}
	}
	slices.Sort(list)
	return list
}

// choose selects the partition of the step.
func (t *Target) choose(s *Step, now *Situation) error {
	if s.Shard < 0 {
		t.Partition = s.PartitionName(now.Grid.Name)
		return nil
	}
	var there []int32
	for i := range now.Partitions {
		if p := &now.Partitions[i]; p.Spec.Shard == s.Shard {
			there = append(there, p.Spec.Partition)
		}
	}
	if len(there) == 0 {
		return &NotYetError{fmt.Sprintf("shard %d has no partition", s.Shard)}
	}
	slices.Sort(there)
	t.Partition = api.PartitionName(now.Grid.Name, there[int(s.Partition)%len(there)])
	return nil
}

// find resolves the role.
func (t *Target) find(s *Step, now *Situation) error {
	if err := t.choose(s, now); err != nil {
		return err
	}
	name := t.Partition
	at := slices.IndexFunc(now.Partitions, func(p api.GridPartition) bool { return p.Name == name })
	if at < 0 || now.Partitions[at].Status.Primary == nil {
		return &NotYetError{fmt.Sprintf("partition %s has no primary", name)}
	}
	p := &now.Partitions[at]
	var want []string
	switch r := s.Fault.Target.Role; r {
	case api.RolePrimary:
		want = []string{p.Status.Primary.PodName}
	case api.RoleNode:
		want = []string{awayFromRecorder(p, now)}
	case api.RoleBackup, api.RoleBackups:
		if want = backups(p); len(want) == 0 {
			return &NotYetError{fmt.Sprintf("partition %s has no backup in sync", name)}
		}
		if r == api.RoleBackup {
			want = want[s.Pick%uint64(len(want)):][:1]
		}
	case api.RoleShard:
		for _, pod := range now.Pods {
			if shard, ok := shardOf(&pod); ok && shard == p.Spec.Shard {
				want = append(want, pod.Name)
			}
		}
	default:
		return fmt.Errorf("target.role %q is unknown", r)
	}
	for _, podName := range want {
		pod := slices.IndexFunc(now.Pods, func(pod corev1.Pod) bool { return pod.Name == podName })
		if pod < 0 || now.Pods[pod].DeletionTimestamp != nil {
			return &NotYetError{fmt.Sprintf("pod %s of partition %s does not exist, or is being deleted", podName, name)}
		}
		t.Pods = append(t.Pods, now.Pods[pod])
	}
	if len(t.Pods) == 0 {
		return &NotYetError{fmt.Sprintf("shard %d has no pods", p.Spec.Shard)}
	}
	if s.Fault.Target.Role == api.RoleNode {
		node := t.Pods[0].Spec.NodeName
		if node == "" {
			return &NotYetError{fmt.Sprintf("pod %s is on no machine", t.Pods[0].Name)}
		}
		t.Pods = on(now.Pods, []string{node})
	}
	t.Pods = byName(t.Pods)
	return nil
}

// awayFromRecorder is the primary of a partition, or, where that shares a machine with the recorder, whose ledger would
// be lost, a backup that does not.
func awayFromRecorder(p *api.GridPartition, now *Situation) string {
	primary := p.Status.Primary.PodName
	if now.Recorder == nil {
		return primary
	}
	for _, name := range append([]string{primary}, backups(p)...) {
		if at := slices.IndexFunc(now.Pods, func(pod corev1.Pod) bool { return pod.Name == name }); at >= 0 && now.Pods[at].Spec.NodeName != now.Recorder.Spec.NodeName {
			return name
		}
	}
	return primary
}

// findPeers resolves the other end.
func (t *Target) findPeers(s *Step, now *Situation) error {
	if s.Fault.Type == api.FaultHandOver {
		return t.findSuccessor(s, now)
	}
	if !strings.HasPrefix(string(s.Fault.Type), "Network") {
		return nil
	}
	switch peer := s.Fault.Target.Peer; peer {
	case api.PeerEverything:
	case api.PeerClients:
		if now.Recorder == nil {
			return &NotYetError{"the recorder has no pod"}
		}
		t.Peers = []corev1.Pod{*now.Recorder}
	case api.PeerPrimary:
		for i := range now.Partitions {
			if p := &now.Partitions[i]; p.Name == t.Partition && p.Status.Primary != nil {
				t.Peers = podsNamed(now.Pods, p.Status.Primary.PodName)
			}
		}
		if len(t.Peers) == 0 || slices.Contains(names(t.Pods), t.Peers[0].Name) {
			return fmt.Errorf("fault %s: target.peer: Primary is the target itself, or does not exist; set role: Backup", s.Fault.Name)
		}
	case api.PeerCopies:
		shards, targets := shardsOf(t.Pods), names(t.Pods)
		for _, pod := range byName(now.Pods) {
			if shard, ok := shardOf(&pod); ok && slices.Contains(shards, shard) && !slices.Contains(targets, pod.Name) {
				t.Peers = append(t.Peers, pod)
			}
		}
		if len(t.Peers) == 0 { // the whole shard is the target: its pods from each other
			t.Peers = slices.Clone(t.Pods)
		}
	default:
		return fmt.Errorf("target.peer %q is unknown", peer)
	}
	return nil
}

// findSuccessor selects the backup that becomes primary.
func (t *Target) findSuccessor(s *Step, now *Situation) error {
	for i := range now.Partitions {
		if p := &now.Partitions[i]; p.Name == t.Partition {
			if b := backups(p); len(b) > 0 {
				t.Peers = podsNamed(now.Pods, b[s.Pick%uint64(len(b))])
			}
		}
	}
	if len(t.Peers) == 0 {
		return &NotYetError{fmt.Sprintf("partition %s has no backup in sync to hand over to", t.Partition)}
	}
	return nil
}
