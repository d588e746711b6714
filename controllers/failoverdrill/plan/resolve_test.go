package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// situation is a redundant grid rtd: two shards of three pods, pod i of each on machine i; pod i is primary of partition i.
func situation() *plan.Situation {
	now := &plan.Situation{
		Grid:     &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "rtd"}, Spec: api.OrderGridSpec{Shards: 2, Replicas: 3, Partitions: 6}},
		Recorder: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pull-recorder-x"}},
		Safety:   api.DrillSafety{LastCopy: api.LastCopyKeep, MaxShards: 1},
	}
	for shard := range int32(2) {
		var members []api.Member
		for i := range int32(3) {
			name := api.PodName("rtd", shard, i)
			members = append(members, api.Member{ID: name + "/1", PodName: name})
			now.Pods = append(now.Pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelShard: fmt.Sprint(shard)}},
				Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("machine-%d", i)},
				Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			})
		}
		for i := range int32(3) {
			now.Partitions = append(now.Partitions, api.GridPartition{
				ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName("rtd", shard+2*i)}, Spec: api.GridPartitionSpec{Shard: shard, Partition: shard + 2*i},
				Status: api.GridPartitionStatus{Epoch: 4, Primary: &members[i], InSync: slices.Clone(members)},
			})
		}
	}
	return now
}

// TestPartitionOfAShard: a partition that has moved belongs to the shard that it is on now.
func TestPartitionOfAShard(t *testing.T) {
	now := situation()
	now.Partitions[5].Spec.Shard = 0 // its copies are still on shard 1
	target, err := plan.Resolve(&plan.Step{Fault: api.DrillFault{Type: api.FaultPodKill, Target: &api.DrillTarget{Role: api.RolePrimary}}, Shard: 1, Partition: 2}, now)
	if err != nil || target.Partition != "rtd-p1" || !slices.Contains(target.Partitions, "rtd-p5") {
		t.Errorf("%+v, %v; want p1, and p5 concerned", target, err)
	}
}

// leave removes members from a partition's in-sync set.
func leave(now *plan.Situation, partition string, pods ...string) {
	for i := range now.Partitions {
		if p := &now.Partitions[i]; p.Name == partition {
			p.Status.InSync = slices.DeleteFunc(p.Status.InSync, func(m api.Member) bool { return slices.Contains(pods, m.PodName) })
		}
	}
}

func podOf(now *plan.Situation, name string) *corev1.Pod {
	return &now.Pods[slices.IndexFunc(now.Pods, func(p corev1.Pod) bool { return p.Name == name })]
}

func list(pods []corev1.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, strings.TrimPrefix(p.Name, "rtd-"))
	}
	return strings.Join(names, " ")
}

func TestResolveRoles(t *testing.T) {
	wide := func(now *plan.Situation) { now.Safety.MaxShards = 2 }
	for _, test := range []struct {
		name                             string
		fault                            api.DrillFault
		pick                             uint64
		change                           func(*plan.Situation)
		pods, peers, machines, partition string // of shard 1, partition 2
	}{
		{"primary", api.DrillFault{Type: api.FaultPodKill, Target: &api.DrillTarget{Role: api.RolePrimary}}, 0, nil, "s1-2", "", "machine-2", "rtd-p1 rtd-p3 rtd-p5"},
		{"a backup", api.DrillFault{Type: api.FaultPodKill, Target: &api.DrillTarget{Role: api.RoleBackup}}, 6, nil, "s1-0", "", "machine-0", "rtd-p1 rtd-p3 rtd-p5"},
		{"another backup", api.DrillFault{Type: api.FaultPodKill, Target: &api.DrillTarget{Role: api.RoleBackup}}, 7, nil, "s1-1", "", "machine-1", "rtd-p1 rtd-p3 rtd-p5"},
		{"all backups", api.DrillFault{Type: api.FaultPodFailure, Target: &api.DrillTarget{Role: api.RoleBackups}}, 0, nil, "s1-0 s1-1", "", "machine-0 machine-1", "rtd-p1 rtd-p3 rtd-p5"},
		{"only those in sync", api.DrillFault{Type: api.FaultNetworkPartition, Target: &api.DrillTarget{Role: api.RoleBackups, Peer: api.PeerPrimary}}, 0,
			func(now *plan.Situation) { leave(now, "rtd-p5", "rtd-s1-0") }, "s1-1", "s1-2", "machine-1", "rtd-p1 rtd-p3 rtd-p5"},
		{"a shard, cut from the API server", api.DrillFault{Type: api.FaultAPIServerPartition, Target: &api.DrillTarget{Role: api.RoleShard}}, 0, nil, "s1-0 s1-1 s1-2", "", "machine-0 machine-1 machine-2", "rtd-p1 rtd-p3 rtd-p5"},
		{"every pod of a machine", api.DrillFault{Type: api.FaultPodKill, Target: &api.DrillTarget{Role: api.RoleNode}}, 0, wide, "s0-2 s1-2", "", "machine-2", "rtd-p0 rtd-p1 rtd-p2 rtd-p3 rtd-p4 rtd-p5"},
		{"the machine of a backup", api.DrillFault{Type: api.FaultNodePowerOff, Target: &api.DrillTarget{Role: api.RoleBackup}}, 0, wide, "s0-0 s1-0", "", "machine-0", "rtd-p0 rtd-p1 rtd-p2 rtd-p3 rtd-p4 rtd-p5"},
		{"the primary from its copies", api.DrillFault{Type: api.FaultNetworkDelay, Target: &api.DrillTarget{Role: api.RolePrimary, Peer: api.PeerCopies}}, 0, nil, "s1-2", "s1-0 s1-1", "machine-2", "rtd-p1 rtd-p3 rtd-p5"},
		{"the primary from everything", api.DrillFault{Type: api.FaultNetworkPartition, Target: &api.DrillTarget{Role: api.RolePrimary, Peer: api.PeerEverything}}, 0, nil, "s1-2", "", "machine-2", "rtd-p1 rtd-p3 rtd-p5"},
		{"the primary from its clients", api.DrillFault{Type: api.FaultNetworkPartition, Target: &api.DrillTarget{Role: api.RolePrimary, Peer: api.PeerClients}}, 0, nil, "s1-2", "pull-recorder-x", "machine-2", "rtd-p1 rtd-p3 rtd-p5"},
		{"a shard from itself", api.DrillFault{Type: api.FaultNetworkDelay, Target: &api.DrillTarget{Role: api.RoleShard, Peer: api.PeerCopies}}, 0, nil, "s1-0 s1-1 s1-2", "s1-0 s1-1 s1-2", "machine-0 machine-1 machine-2", "rtd-p1 rtd-p3 rtd-p5"},
		{"a hand-over", api.DrillFault{Type: api.FaultHandOver, Target: &api.DrillTarget{Role: api.RolePrimary}}, 3, nil, "s1-2", "s1-1", "machine-2", "rtd-p5"},
		{"the whole grid", api.DrillFault{Type: api.FaultRollingUpdate}, 0, nil, "s0-0 s0-1 s0-2 s1-0 s1-1 s1-2", "", "machine-0 machine-1 machine-2", "rtd-p0 rtd-p1 rtd-p2 rtd-p3 rtd-p4 rtd-p5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := situation()
			if test.change != nil {
				test.change(now)
			}
			slices.Reverse(now.Pods) // the order of the input is irrelevant
			slices.Reverse(now.Partitions)
			target, err := plan.Resolve(&plan.Step{Fault: test.fault, Shard: 1, Partition: 2, Pick: test.pick}, now)
			if err != nil {
				t.Fatal(err)
			}
			if got := list(target.Pods); got != test.pods {
				t.Errorf("pods %s, want %s", got, test.pods)
			}
			if got := list(target.Peers); got != test.peers {
				t.Errorf("peers %s, want %s", got, test.peers)
			}
			if got := strings.Join(target.Nodes, " "); got != test.machines {
				t.Errorf("machines %s, want %s", got, test.machines)
			}
			if got := strings.Join(target.Partitions, " "); got != test.partition {
				t.Errorf("partitions %s, want %s", got, test.partition)
			}
		})
	}
}

// TestSafety: forbidden targets are refused, and temporarily missing ones are reported as such.
func TestSafety(t *testing.T) {
	kill := func(r api.DrillRole) api.DrillFault {
		return api.DrillFault{Name: "kill", Type: api.FaultPodKill, Target: &api.DrillTarget{Role: r}}
	}
	alone := func(now *plan.Situation) { leave(now, "rtd-p5", "rtd-s1-0", "rtd-s1-1") }
	for _, test := range []struct {
		name    string
		fault   api.DrillFault
		change  func(*plan.Situation)
		refused bool   // otherwise not possible yet
		want    string // "": allowed
	}{
		{"the last copy", kill(api.RolePrimary), alone, true, "kill would end rtd-s1-2, the last in-sync copy of partition rtd-p5: orders that only it holds would be lost; set safety.lastCopy: Take to lose it on purpose"},
		{"the last copy, on purpose", kill(api.RolePrimary), func(now *plan.Situation) { alone(now); now.Safety.LastCopy = api.LastCopyTake }, true, ""},
		{"a whole shard", kill(api.RoleShard), nil, true, "kill would end rtd-s1-0, rtd-s1-1, rtd-s1-2, the last in-sync copy of partition rtd-p1"},
		{"all backups", kill(api.RoleBackups), nil, true, ""},
		{"copies that have just failed", kill(api.RolePrimary), func(now *plan.Situation) {
			podOf(now, "rtd-s1-0").Status.Conditions[0].Status = corev1.ConditionFalse
			podOf(now, "rtd-s1-1").Status.Conditions = nil
		}, true, "kill would end rtd-s1-2, the last in-sync copy"},
		{"a copy that is being deleted", kill(api.RolePrimary), func(now *plan.Situation) {
			leave(now, "rtd-p5", "rtd-s1-0")
			podOf(now, "rtd-s1-1").DeletionTimestamp = &metav1.Time{}
		}, true, "kill would end rtd-s1-2, the last in-sync copy"},
		{"the last copy of another partition", kill(api.RolePrimary), func(now *plan.Situation) { leave(now, "rtd-p3", "rtd-s1-0", "rtd-s1-1") }, true, "the last in-sync copy of partition rtd-p3"},
		{"a network fault ends no process", api.DrillFault{Name: "cut", Type: api.FaultNetworkPartition, Target: &api.DrillTarget{Role: api.RolePrimary, Peer: api.PeerEverything}}, alone, true, ""},
		{"two shards", kill(api.RoleNode), nil, true, "kill would hit 2 shards (rtd-s0-2, rtd-s1-2), safety.maxShards is 1; raise it, or keep shards on machines of their own"},
		{"a machine with two shards", api.DrillFault{Name: "off", Type: api.FaultNodeLinkDown, Target: &api.DrillTarget{Role: api.RoleBackup}}, nil, true, "off would hit 2 shards"},
		{"a rolling update counts no shards", api.DrillFault{Name: "roll", Type: api.FaultRollingUpdate}, nil, true, ""},
		{"no primary", kill(api.RolePrimary), func(now *plan.Situation) { now.Partitions[5].Status.Primary = nil }, false, "partition rtd-p5 has no primary"},
		{"no backup", kill(api.RoleBackup), alone, false, "partition rtd-p5 has no backup in sync"},
		{"no backup to hand over to", api.DrillFault{Name: "move", Type: api.FaultHandOver, Target: &api.DrillTarget{Role: api.RolePrimary}}, alone, false, "partition rtd-p5 has no backup in sync to hand over to"},
		{"a pod that is gone", kill(api.RolePrimary), func(now *plan.Situation) { now.Pods = now.Pods[:5] }, false, "pod rtd-s1-2 of partition rtd-p5 does not exist, or is being deleted"},
		{"no partition", kill(api.RolePrimary), func(now *plan.Situation) { now.Partitions = nil }, false, "shard 1 has no partition"},
		{"the machine of the recorder", api.DrillFault{Name: "off", Type: api.FaultNodePowerOff, Target: &api.DrillTarget{Role: api.RoleNode}}, func(now *plan.Situation) {
			now.Recorder.Spec.NodeName = now.Pods[0].Spec.NodeName
			for i := range now.Pods {
				now.Pods[i].Spec.NodeName = now.Pods[0].Spec.NodeName
			}
		}, true, "which the recorder is on"},
		{"no recorder", api.DrillFault{Name: "cut", Type: api.FaultNetworkPartition, Target: &api.DrillTarget{Role: api.RolePrimary, Peer: api.PeerClients}}, func(now *plan.Situation) { now.Recorder = nil }, false, "the recorder has no pod"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := situation()
			if test.change != nil {
				test.change(now)
			}
			_, err := plan.Resolve(&plan.Step{Fault: test.fault, Shard: 1, Partition: 2}, now)
			if test.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %s", err, test.want)
			}
			if plan.IsRefused(err) != test.refused || errors.As(err, new(*plan.NotYetError)) == test.refused {
				t.Errorf("%T", err)
			}
		})
	}
}
