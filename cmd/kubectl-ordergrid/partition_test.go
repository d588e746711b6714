package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

// stage is a pair on a real API server: trades-p0 on trades-s0-0, trades-p1 on trades-s0-1. The test plays operator and
// grid nodes.
type stage struct {
	t    *testing.T
	cl   client.Client
	ns   string
	args []string // of every command
	grid *api.OrderGrid
}

func member(ordinal int, boot string) api.Member {
	pod := fmt.Sprintf("trades-s0-%d", ordinal)
	return api.Member{ID: pod + "/" + boot, PodName: pod, BootID: boot, Address: "10.0.0.1:7400"}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, cl: envtest.Client(t, envtest.Config(t))}
	s.ns = envtest.Namespace(t, s.cl, "plugin-")
	s.args = []string{"--kubeconfig", envtest.Kubeconfig(t), "-n", s.ns}
	s.grid = &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: s.ns}, Spec: api.OrderGridSpec{Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	s.must(s.cl.Create(t.Context(), s.grid))
	for i := range 2 {
		p := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName("trades", int32(i)), Namespace: s.ns},
			Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "trades"}, Partition: int32(i), Replicas: 2, MinInSync: 1, PreferredPod: member(i, "").PodName}}
		s.must(s.cl.Create(t.Context(), p))
		a, b := member(i, "00000000000000aa"), member(1-i, "00000000000000bb")
		s.configure(p.Name, a)
		s.configure(p.Name, a, b)
	}
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) partition(name string) *api.GridPartition {
	s.t.Helper()
	p := &api.GridPartition{}
	s.must(s.cl.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, p))
	return p
}

// configure writes the next configuration, like a grid node.
func (s *stage) configure(name string, inSync ...api.Member) {
	s.t.Helper()
	p := s.partition(name)
	lineage := max(p.Status.Lineage, 1)
	if p.Spec.AcceptDataLossEpoch > 0 {
		lineage++
	}
	p.Status = api.GridPartitionStatus{Epoch: p.Status.Epoch + 1, Lineage: lineage, ChangeID: fmt.Sprint("c", p.Status.Epoch+1), Primary: &inSync[0], InSync: inSync}
	s.must(s.cl.Status().Update(s.t.Context(), p))
}

// update changes a partition like the operator, retrying conflicts.
func (s *stage) update(name string, change func(*api.GridPartition)) {
	s.t.Helper()
	for {
		p := s.partition(name)
		change(p)
		err := s.cl.Update(s.t.Context(), p)
		if apierrors.IsConflict(err) {
			continue
		}
		s.must(err)
		return
	}
}

// problem sets the operator's status.
func (s *stage) problem(partition, problem string, conditions ...metav1.Condition) {
	s.t.Helper()
	s.must(s.cl.Get(s.t.Context(), client.ObjectKeyFromObject(s.grid), s.grid))
	s.grid.Status.Partitions = []api.PartitionSummary{{Name: partition, Problem: problem}}
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Now()
	}
	s.grid.Status.Conditions = conditions
	s.must(s.cl.Status().Update(s.t.Context(), s.grid))
}

// once waits for an annotation to be set, then plays operator and nodes.
func (s *stage) once(name, annotation string, then func(value string)) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		for s.t.Context().Err() == nil {
			p := &api.GridPartition{}
			if s.cl.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, p) == nil && p.Annotations[annotation] != "" {
				then(p.Annotations[annotation])
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return done
}

func (s *stage) run(args ...string) (string, error) {
	return run(append(args, s.args...)...)
}

func (s *stage) want(out string, err error, code int, texts ...string) {
	s.t.Helper()
	var exit exitError
	if (code == 0) != (err == nil) || code > 0 && (!errors.As(err, &exit) || int(exit) != code) {
		s.t.Errorf("error %v, want exit code %d\n%s", err, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("%q is not in the output:\n%s", text, out)
		}
	}
}

func TestHandover(t *testing.T) {
	s := newStage(t)
	const name = "trades-p0"
	done := s.once(name, api.AnnotationPreferredPod, func(pod string) {
		s.update(name, func(p *api.GridPartition) { p.Spec.PreferredPod = pod })
		s.configure(name, member(1, "00000000000000bb"), member(0, "00000000000000aa"))
	})
	out, err := s.run("handover", name) // without --to: the only other one
	<-done
	s.want(out, err, 0, "trades-p0: primary trades-s0-0, epoch 2, lineage 1, in sync: trades-s0-0, trades-s0-1\n",
		"trades-p0: primary trades-s0-1, epoch 3, lineage 1, in sync: trades-s0-1, trades-s0-0, after ")
	if p := s.partition(name); p.Annotations[api.AnnotationPreferredPod] != "trades-s0-1" {
		t.Errorf("annotations %v", p.Annotations)
	}

	out, err = s.run("handover", name, "--to", "trades-s0-1")
	s.want(out, err, 0) // it is primary already

	// The operator is down: nothing happens, which is reported.
	out, err = s.run("handover", name, "--to", "trades-s0-0", "--timeout", "300ms")
	s.want(out, err, 1, "the operator has not applied it (spec.preferredPod is trades-s0-1); is it running?")
	out, err = s.run("handover", name, "--reset")
	s.want(out, err, 0, "its primary may be on any pod of shard 0 again")
	if _, there := s.partition(name).Annotations[api.AnnotationPreferredPod]; there {
		t.Error("--reset left the annotation")
	}

	// The nodes do not act: the pod is not in sync.
	s.configure(name, member(1, "00000000000000bb"))
	s.update(name, func(p *api.GridPartition) { p.Spec.PreferredPod = "trades-s0-0" })
	out, err = s.run("handover", name, "--to", "trades-s0-0", "--timeout", "300ms")
	s.want(out, err, 1, "trades-s0-0 is not in sync yet", "trades-s0-0 is not primary; it has to be in sync")
	out, err = s.run("handover", name, "--to", "trades-s0-0", "--wait=false")
	s.want(out, err, 0)
	if out, err := s.run("handover", name); err == nil || !strings.Contains(err.Error(), "no other pod is in sync") {
		t.Errorf("error %v\n%s", err, out)
	}

	// The operator refuses.
	done = s.once("trades-p1", api.AnnotationPreferredPod, func(string) {
		s.update("trades-p1", func(p *api.GridPartition) { delete(p.Annotations, api.AnnotationPreferredPod) })
	})
	out, err = s.run("handover", "trades-p1")
	<-done
	s.want(out, err, 1, "was changed or refused; see kubectl describe gridpartition trades-p1")
}

func TestRecover(t *testing.T) {
	s := newStage(t)
	const name = "trades-p0"
	out, err := s.run("recover", name)
	s.want(out, err, 0, "trades-p0: no decision pending, the partition is healthy")
	s.problem(name, "PrimaryNotReady", metav1.Condition{Type: "DataLossSuspected", Status: "Unknown", Reason: "MembersUnreachable", Message: "for trades-p0 it is not known"})
	out, err = s.run("recover", name)
	s.want(out, err, 0, "trades-p0: PrimaryNotReady; no decision pending", "DataLossSuspected is Unknown (MembersUnreachable): for trades-p0 it is not known")
	s.problem(name, "DataLossSuspected", metav1.Condition{Type: "DataLossSuspected", Status: "True", Reason: "NoInSyncMemberLeft", Message: "trades-p0 has lost every process"})
	out, err = s.run("recover", name)
	s.want(out, err, 1, "DataLossSuspected is True (NoInSyncMemberLeft): trades-p0 has lost every process")

	var usage usageError
	if out, err = s.run("recover", name, "--accept-data-loss", "7"); !errors.As(err, &usage) || !strings.Contains(err.Error(), "value 7, allowed: 2, the present epoch") {
		t.Errorf("error %v\n%s", err, out)
	}
	if out, err = s.run("recover", name, "--reassert", "c2"); !errors.As(err, &usage) || !strings.Contains(err.Error(), "is already the one in the record") {
		t.Errorf("error %v\n%s", err, out)
	}

	done := s.once(name, api.AnnotationAcceptDataLoss, func(string) {
		s.update(name, func(p *api.GridPartition) { delete(p.Annotations, api.AnnotationAcceptDataLoss) })
	})
	out, err = s.run("recover", name, "--accept-data-loss", "2")
	<-done
	s.want(out, err, 1, "trades-p0: not done; see kubectl describe gridpartition trades-p0", "DataLossSuspected is True")

	out, err = s.run("recover", name, "--accept-data-loss", "2", "--timeout", "300ms")
	s.want(out, err, 1, "not settled after 300ms; the annotation ordergrid.dev/accept-data-loss stays")

	done = s.once(name, api.AnnotationAcceptDataLoss, func(string) {
		s.update(name, func(p *api.GridPartition) { p.Spec.AcceptDataLossEpoch = 2 })
		s.configure(name, member(1, "00000000000000cc"))
		s.update(name, func(p *api.GridPartition) {
			delete(p.Annotations, api.AnnotationAcceptDataLoss)
			p.Spec.AcceptDataLossEpoch = 0
		})
	})
	out, err = s.run("recover", name, "--accept-data-loss", "2")
	<-done
	s.want(out, err, 0, "trades-p0: primary trades-s0-1, epoch 3, lineage 2, in sync: trades-s0-1, after ")
}

func TestPartitionUsage(t *testing.T) {
	s := newStage(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"handover"}, "0 arguments, allowed: the name of one GridPartition, such as trades-p1"},
		{[]string{"handover", "trades-p0", "--to", "trades-s1-0"}, `--to: value "trades-s1-0", allowed: [trades-s0-0 trades-s0-1]`},
		{[]string{"handover", "trades-p0", "--to", "x", "--reset"}, "exclude each other"},
		{[]string{"recover", "a", "b"}, "2 arguments"},
		{[]string{"recover", "trades-p0", "--accept-data-loss", "-1"}, "value -1, allowed: the partition's present epoch"},
		{[]string{"recover", "trades-p0", "--accept-data-loss", "0"}, "value 0, allowed"},
		{[]string{"recover", "trades-p0", "--accept-data-loss", "1", "--reassert", "c"}, "exclude each other"},
		{[]string{"recover", "trades-p0", "--accept-data-loss", "all"}, "invalid argument"},
	} {
		_, err := s.run(test.args...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: error %v, want a usage error with %q", test.args, err, test.want)
		}
	}
	for _, command := range []string{"handover", "recover"} {
		if _, err := s.run(command, "trades-p9"); err == nil || !strings.Contains(err.Error(), "does not exist; kubectl get gp -A lists them") {
			t.Errorf("%s of no partition: %v", command, err)
		}
		out, err := run(command, "--help")
		if err != nil || !strings.Contains(out, "Exit codes: 0") || !strings.Contains(out, "trades-p0") {
			t.Errorf("%s --help: %v\n%s", command, err, out)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := kubeFlags{kubeconfig: s.args[1], namespace: s.ns}
	c, err := k.connect()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.await(ctx, "trades-p0", func(*api.GridPartition) bool { return false }); err == nil {
		t.Error("an interrupted command waits on")
	}
}
