package workload_test

import (
	"context"
	"os"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/workload"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

func TestWhoIsWoken(t *testing.T) {
	cl := envtest.Client(t, envtest.Config(t))
	namespace := envtest.Namespace(t, cl, "runs-")
	for name, grid := range map[string]string{"waits": "rtd", "ended": "rtd", "elsewhere": "other"} {
		p := &api.OrderProbe{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		p.Spec.GridRef.Name, p.Spec.Scenario = grid, api.ScenarioPair
		if err := cl.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	woken := func(grid, namespace string) (names []string) {
		wake := workload.OfGrid(cl, &api.OrderProbeList{}, func(p *api.OrderProbe) (string, bool) { return p.Spec.GridRef.Name, p.Name == "ended" })
		for _, r := range wake(t.Context(), &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: grid, Namespace: namespace}}) {
			names = append(names, r.Namespace+"/"+r.Name)
		}
		return names
	}
	if got := woken("rtd", namespace); !slices.Equal(got, []string{namespace + "/waits"}) {
		t.Errorf("a grid triggers %v", got)
	}
	if got := woken("rtd", "default"); len(got) != 0 {
		t.Errorf("a grid of another namespace triggers %v", got)
	}
	byPod := workload.OfPod(api.LabelProbe)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{api.LabelProbe: "pair"}}}
	if got := byPod(t.Context(), pod); len(got) != 1 || got[0].Namespace != namespace || got[0].Name != "pair" {
		t.Errorf("a pod of probe pair triggers %v", got)
	}
	pod.Labels = map[string]string{api.LabelDrill: "pair"}
	if got := byPod(t.Context(), pod); len(got) != 0 {
		t.Errorf("a pod of no probe triggers %v", got)
	}
}

func TestFindAndStop(t *testing.T) {
	cl := envtest.Client(t, envtest.Config(t))
	namespace := envtest.Namespace(t, cl, "runs-")
	find := func() *batchv1.Job {
		t.Helper()
		job, err := workload.Find(t.Context(), cl, namespace, "pair", &batchv1.Job{})
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	if job := find(); job != nil {
		t.Fatalf("there is %v", job)
	}
	if err := workload.Stop(t.Context(), cl, nil); err != nil {
		t.Errorf("stop of none: %v", err)
	}
	container := workload.Container([]string{"pod"}, 9400)
	container.Image = "order-probe:test"
	job := workload.Job(metav1.ObjectMeta{Name: "pair", Namespace: namespace, Labels: map[string]string{"a": "b"}}, 2, workload.Pod(container, nil))
	if err := cl.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if workload.Failed(job) || *find().Spec.Parallelism != 2 || *find().Spec.BackoffLimit != 0 {
		t.Errorf("job %+v", find().Spec)
	}
	if err := workload.Stop(t.Context(), cl, find()); err != nil || !ptr.Deref(find().Spec.Suspend, false) {
		t.Errorf("%v; suspended: %v", err, find().Spec.Suspend)
	}
	// One that is stopped already, over, or gone is not changed.
	writes := envtest.Writes()
	watched := envtest.Client(t, writes.Of(envtest.Config(t)))
	over := find()
	over.Spec.Suspend, over.Status.CompletionTime = nil, ptr.To(metav1.Now())
	for _, j := range []*batchv1.Job{find(), over} {
		if err := workload.Stop(t.Context(), watched, j); err != nil {
			t.Error(err)
		}
	}
	if all := writes.All(); len(all) != 0 {
		t.Errorf("writes %v", all)
	}
	last := find()
	last.Spec.Suspend = nil
	if err := cl.Delete(t.Context(), job, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the Job is gone", func(context.Context) error { return workload.Stop(t.Context(), cl, last) })
}

// A pod of a run passes the Restricted Pod Security Standard, whose admission the API server has.
func TestPodsAreRestricted(t *testing.T) {
	cl := envtest.Client(t, envtest.Config(t))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "runs-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := cl.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	container := workload.Container(nil, 9400)
	container.Image = "order-probe:test"
	spec := workload.Pod(container, &api.ProbePlacement{NodeSelector: map[string]string{"pool": "probes"}})
	spec.AutomountServiceAccountToken = ptr.To(false)
	spec.Affinity = workload.Preferring(workload.AwayFromGrid("rtd"))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: ns.Name}, Spec: spec}
	if err := cl.Create(t.Context(), pod); err != nil {
		t.Error(err)
	}
	if pod.Spec.NodeSelector["pool"] != "probes" {
		t.Errorf("node selector %v", pod.Spec.NodeSelector)
	}
}
