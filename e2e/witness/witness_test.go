//go:build e2e

// Package witness gives a real grid every fault that can be had on this cluster, through the injectors of a FailoverDrill and
// without one, and wants the witness to see each: not before it is injected, and while it is there. Then it is reverted
// and nothing is left. `make e2e SUITE=witness` runs it; it needs KUBECONFIG, kubectl and helm in $PATH, the images on
// the nodes, pods that this machine reaches, and Chaos Mesh (make chaos-mesh-up). With ORDERGRID_EXECUTOR and
// ORDERGRID_EXECUTOR_TOKEN, URL and token of an executor, the faults that only one can do are made as well.
package witness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

const (
	namespace = "ordergrid-witness"
	gridName  = "seen"
	// patience is what a fault may take to be injected, seen, or taken back.
	patience = 90 * time.Second
	// calm is for how long the grid has to be redundant before it is broken again: what a fault did may show only now.
	calm = 5 * time.Second
)

// stage is the grid under test and its fault providers.
type stage struct {
	*testing.T
	client    client.Client
	injectors []inject.Injector
	observer  *witness.Observer
	drill     inject.Drill
	grid      *api.OrderGrid
	step      int
}

func TestEveryFaultIsSeen(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute)
	defer cancel()
	s := open(ctx, t)
	cases := faults()
	answers := s.answers(ctx, cases)
	s.orders(ctx)
	for _, f := range cases {
		ok := t.Run(f.Name, func(t *testing.T) {
			s.T = t
			provider, why := s.choose(answers, f.Type)
			if provider == nil {
				t.Skip(why)
			}
			s.show(ctx, provider, f)
		})
		if s.T = t; !ok {
			t.FailNow()
		}
	}
}

// faults are of every type, mild enough for the grid to be redundant again soon after.
func faults() []api.DrillFault {
	d := func(v time.Duration) *metav1.Duration { return &metav1.Duration{Duration: v} }
	network := func(name string, t api.DrillFaultType, n api.NetworkFault) api.DrillFault {
		return api.DrillFault{Name: name, Type: t, Duration: d(15 * time.Second), Network: &n}
	}
	everything := &api.DrillTarget{Peer: api.PeerEverything}
	narrow := network("bandwidth", api.FaultNetworkBandwidth, api.NetworkFault{Rate: "1M", Direction: api.DirectionTo})
	narrow.Target = everything
	alone := network("partition-from-everything", api.FaultNetworkPartition, api.NetworkFault{})
	alone.Target = everything
	return []api.DrillFault{
		{Name: "container-kill", Type: api.FaultContainerKill},
		{Name: "pod-kill", Type: api.FaultPodKill},
		{Name: "pod-delete", Type: api.FaultPodDelete},
		{Name: "pod-failure", Type: api.FaultPodFailure, Duration: d(15 * time.Second)},
		{Name: "hand-over", Type: api.FaultHandOver},
		{Name: "rolling-update", Type: api.FaultRollingUpdate},
		network("partition", api.FaultNetworkPartition, api.NetworkFault{}),
		alone,
		{Name: "api-server-partition", Type: api.FaultAPIServerPartition, Duration: d(15 * time.Second)},
		network("delay", api.FaultNetworkDelay, api.NetworkFault{Latency: d(5 * time.Millisecond)}),
		network("loss", api.FaultNetworkLoss, api.NetworkFault{Loss: "5%"}),
		network("duplicate", api.FaultNetworkDuplicate, api.NetworkFault{Duplicate: "20%"}),
		network("corrupt", api.FaultNetworkCorrupt, api.NetworkFault{Corrupt: "5%"}),
		narrow,
		{Name: "clock", Type: api.FaultClockSkew, Duration: d(15 * time.Second), Clock: &api.ClockFault{Offset: *d(-10 * time.Minute)}},
		{Name: "cpu", Type: api.FaultCPUStress, Duration: d(15 * time.Second), Stress: &api.StressFault{CPUWorkers: ptr.To[int32](2)}},
		{Name: "memory", Type: api.FaultMemoryStress, Duration: d(15 * time.Second), Stress: &api.StressFault{Memory: "64Mi"}},
		{Name: "link-down", Type: api.FaultNodeLinkDown, Duration: d(15 * time.Second)},
		{Name: "power-off", Type: api.FaultNodePowerOff, Duration: d(15 * time.Second)},
	}
}

// answers of all injectors, once none of them is still trying.
func (s *stage) answers(ctx context.Context, faults []api.DrillFault) map[inject.Injector]map[api.DrillFaultType]inject.Answer {
	out := map[inject.Injector]map[api.DrillFaultType]inject.Answer{}
	scope := &inject.Scope{Drill: s.drill, Grid: s.grid, Faults: faults, Nodes: s.nodes(ctx)}
	for _, i := range s.injectors {
		s.until(ctx, string(i.Provider())+" knows what the nodes can do", func() error {
			a, err := i.Supports(ctx, scope)
			for t := range a {
				if a[t].Verdict == inject.Asking {
					err = errors.Join(err, errors.New(a[t].Message))
				}
			}
			out[i] = a
			return err
		})
	}
	return out
}

func (s *stage) choose(answers map[inject.Injector]map[api.DrillFaultType]inject.Answer, t api.DrillFaultType) (inject.Injector, string) {
	var why []string
	for _, i := range s.injectors {
		if answers[i][t].Verdict == inject.Yes {
			return i, ""
		}
		why = append(why, string(i.Provider())+": "+answers[i][t].Message)
	}
	return nil, strings.Join(why, "\n")
}

// show is the life of one fault.
func (s *stage) show(ctx context.Context, by inject.Injector, spec api.DrillFault) {
	s.redundant(ctx)
	f := s.fault(ctx, spec)
	before, err := s.observer.Baseline(ctx, f)
	if err != nil {
		s.Fatal(err)
	}
	if r, err := s.observer.Look(ctx, f, before); err != nil || r.Seen {
		s.Fatalf("seen before it is injected: %+v, %v", r, err)
	}
	defer s.takeBack(ctx, by, f)
	begin := time.Now()
	s.until(ctx, "is asked for", func() error {
		err := by.Inject(ctx, f)
		if inject.IsPermanent(err) {
			s.Fatal(err)
		}
		return err
	})
	s.until(ctx, "is injected", func() (err error) {
		if f.Reported, err = by.State(ctx, f); err == nil && f.Reported.Phase != inject.Injected {
			err = fmt.Errorf("%s: %s", f.Reported.Phase, f.Reported.Message)
		}
		return err
	})
	injected := time.Since(begin)
	s.until(ctx, "is seen", func() error {
		if said, err := by.State(ctx, f); err == nil {
			f.Reported = said
		}
		r, err := s.observer.Look(ctx, f, before)
		if err == nil && !r.Seen {
			err = errors.New(r.Message)
		}
		if err == nil {
			s.Logf("%s: injected after %s, seen after %s: %s", by.Provider(), injected.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), r.Message)
		}
		return err
	})
}

// takeBack until nothing is left: no object, no fault at an executor, no annotation.
func (s *stage) takeBack(ctx context.Context, by inject.Injector, f *inject.Fault) {
	begin := time.Now()
	s.until(ctx, "is taken back", func() error {
		if err := by.Recover(ctx, f); err != nil {
			return err
		}
		st, err := by.State(ctx, f)
		if err == nil && st.Phase != inject.Gone {
			err = fmt.Errorf("%s: %s", st.Phase, st.Message)
		}
		return err
	})
	s.Logf("taken back after %s", time.Since(begin).Round(time.Millisecond))
	s.until(ctx, "nothing is left behind", func() error {
		left, err := by.Leftovers(ctx, s.drill)
		if len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("%q", left))
		}
		return err
	})
}

// fault resolves the roles: the primary of partition 0, and the others as its peers.
func (s *stage) fault(ctx context.Context, spec api.DrillFault) *inject.Fault {
	s.step++
	f := &inject.Fault{Drill: s.drill, Step: s.step, Spec: spec, Grid: s.grid, Partitions: []string{api.PartitionName(gridName, 0)}}
	if spec.Duration != nil {
		f.Duration = spec.Duration.Duration
	}
	record := &api.GridPartition{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: f.Partitions[0]}, record); err != nil {
		s.Fatal(err)
	}
	everything := spec.Target != nil && spec.Target.Peer == api.PeerEverything
	for _, p := range s.pods(ctx) {
		switch {
		case p.Name == record.Status.Primary.PodName:
			f.Pods, f.Nodes = []corev1.Pod{p}, []string{p.Spec.NodeName}
		case strings.HasPrefix(string(spec.Type), "Network") && !everything:
			f.Peers = append(f.Peers, p)
		}
	}
	return f
}

func (s *stage) pods(ctx context.Context) []corev1.Pod {
	var pods corev1.PodList
	if err := s.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{objects.LabelInstance: gridName, objects.LabelComponent: objects.GridNode}); err != nil {
		s.Fatal(err)
	}
	return pods.Items
}

func (s *stage) nodes(ctx context.Context) (names []string) {
	for _, p := range s.pods(ctx) {
		names = append(names, p.Spec.NodeName)
	}
	return names
}

func (s *stage) redundant(ctx context.Context) {
	since := time.Now()
	s.until(ctx, "grid is redundant for a while", func() (err error) {
		defer func() {
			if err != nil {
				since = time.Now()
			} else if time.Since(since) < calm {
				err = errors.New("only just")
			}
		}()
		grid := &api.OrderGrid{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: gridName}, grid); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionRedundant); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("%+v", c)
		}
		var records api.GridPartitionList
		if err := s.client.List(ctx, &records, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range records.Items {
			if n := len(records.Items[i].Status.InSync); n != 2 {
				return fmt.Errorf("%s has %d copies", records.Items[i].Name, n)
			}
		}
		if n := grid.Status.Pods; n != 2 || grid.Status.ReadyShards != 1 {
			return fmt.Errorf("%d pods, %d shards ready", n, grid.Status.ReadyShards)
		}
		s.grid = grid
		return nil
	})
}

func (s *stage) until(ctx context.Context, what string, ok func() error) {
	s.Helper()
	limit := time.Now().Add(patience)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(limit) || ctx.Err() != nil {
			s.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func open(ctx context.Context, t *testing.T) *stage {
	ground := fixture.New(t, namespace)
	ground.Open(ctx)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 10 * time.Second
	c, err := client.New(config, client.Options{Scheme: envtest.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, client: c, drill: inject.Drill{Namespace: namespace, Name: "watched"},
		observer:  &witness.Observer{Client: c, Nodes: nodestatus.NewClient(6*time.Second, nil)},
		injectors: []inject.Injector{&inject.ChaosMesh{Client: c, ProbeImage: "ordergrid.dev/order-probe:dev"}, &inject.Grid{Client: c}}}
	if url := os.Getenv("ORDERGRID_EXECUTOR"); url != "" {
		service, err := executor.NewClient(url, os.Getenv("ORDERGRID_EXECUTOR_TOKEN"), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.injectors = append(s.injectors, &inject.Executor{Name: "local", Service: service, Reader: c})
	}
	t.Cleanup(func() { s.T = t; s.close() })
	ground.Apply(ctx, "grid.yaml")
	s.redundant(ctx)
	s.own(ctx)
	return s
}

// own makes the drill that owns everything: what has an owner that is not there is removed at once. It is of a grid that
// does not exist, and aborted, so that the operator does nothing about it.
func (s *stage) own(ctx context.Context) {
	d := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.drill.Name},
		Spec: api.FailoverDrillSpec{GridRef: api.GridReference{Name: "missing"}, Suite: api.SuitePullThePlug, State: api.DrillAbort}}
	if err := s.client.Create(ctx, d); err != nil {
		s.Fatal(err)
	}
	s.drill.UID = d.UID
}

// close reverts what a failed test left.
func (s *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for _, i := range s.injectors {
		if err := i.RecoverAll(ctx, s.drill); err != nil {
			s.Error(err)
		}
	}
}
