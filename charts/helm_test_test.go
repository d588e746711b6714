package charts

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/manager"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// helmTest runs `helm test` on a release whose operator is running. There is no kubelet: the test plays the hook's pod,
// with the operator's own code and the permissions of the pod's account, and sets its result for helm.
func helmTest(t *testing.T, kubeconfig string, cl client.Client) {
	t.Helper()
	metrics := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // no DNS resolves the Service's name here
	defer metrics.Close()
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := helmAt(t, kubeconfig, "test", "og", "--namespace", "og-system", "--timeout", "3m")
		done <- result{out, err}
	}()
	pod := &corev1.Pod{}
	envtest.Eventually(t, "helm has made the pod of its test", func(ctx context.Context) error {
		return cl.Get(ctx, client.ObjectKey{Namespace: "og-system", Name: "og-ordergrid-test"}, pod)
	})
	args := pod.Spec.Containers[0].Args
	if len(args) != 3 || args[0] != "check" || args[1] != "--namespace=og-system" || args[2] != "--url=https://og-ordergrid-metrics.og-system.svc:8080/metrics" {
		t.Errorf("args %v", args)
	}
	cfg := envtest.Config(t)
	cfg.Impersonate.UserName = "system:serviceaccount:og-system:" + pod.Spec.ServiceAccountName
	cfg.Impersonate.Groups = []string{"system:authenticated"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var output strings.Builder
	err := manager.Check(ctx, cfg, manager.CheckOptions{Namespace: "og-system", URL: metrics.URL, Out: &output})
	pod.Status.Phase = corev1.PodSucceeded
	if err != nil {
		pod.Status.Phase = corev1.PodFailed
		t.Errorf("check: %v, after\n%s", err, output.String())
	}
	if n := strings.Count(output.String(), "ok: "); err == nil && n != 3 {
		t.Errorf("%d things were checked:\n%s", n, output.String())
	}
	if err := cl.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.err != nil || !strings.Contains(r.out, "Succeeded") {
		t.Errorf("helm test: %v\n%s", r.err, r.out)
	}
}

// wantCheckFails: the check of a broken installation fails.
func wantCheckFails(t *testing.T, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := manager.Check(ctx, envtest.Config(t), manager.CheckOptions{Namespace: "og-system", Out: t.Output()})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("check: %v, want %s", err, want)
	}
}
