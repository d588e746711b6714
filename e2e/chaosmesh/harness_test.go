//go:build e2e

package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/cluster/image"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

const (
	patients = "chaos-patients"
	// patience is longer than a pod waits for another.
	patience = 5 * time.Second
)

// ward is the cluster with two pods to be made ill.
type ward struct {
	*testing.T
	mesh   *Mesh
	client http.Client
	faults map[string]struct {
		Kind string
		Spec map[string]any
	}
}

// admit installs Chaos Mesh and the pods; both go when the test ends, Chaos Mesh
// only if the test has brought it.
func admit(ctx context.Context, t *testing.T) *ward {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(ctx, cluster.Options{Root: root, Out: io.Discard, Progress: os.Stderr}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	before, err := m.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := &ward{T: t, mesh: m, client: http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}}
	t.Cleanup(func() { w.discharge(before.Installed) })
	if err := m.Install(ctx); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("testdata/faults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, &w.faults); err != nil {
		t.Fatal(err)
	}
	w.deploy(ctx)
	return w
}

func (w *ward) deploy(ctx context.Context) {
	const echo = "../cluster/local/testdata/echo"
	work := w.TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", filepath.Join(work, "echo"), "./"+echo)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
	d := &image.Dockerfile{Copies: []image.Copy{{Source: "echo", Target: "/echo"}}, User: "65532:65532", Entrypoint: []string{"/echo"}}
	archive := filepath.Join(work, "echo.tar")
	if _, err := image.WriteFile(archive, d, work, "ordergrid.dev/echo:patient", runtime.GOARCH); err != nil {
		w.Fatal(err)
	}
	if err := w.mesh.cluster.Load(ctx, archive); err != nil {
		w.Fatal(err)
	}
	manifest, err := os.ReadFile("testdata/patients.yaml")
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.mesh.kube.Apply(ctx, manifest); err != nil {
		w.Fatal(err)
	}
	w.eventually("the patients are well", func() error { return w.well(ctx) })
}

// discharge removes the suite's objects and checks that nothing is left.
func (w *ward) discharge(keep bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if faults, err := w.mesh.Faults(ctx); err == nil && len(faults) > 0 && keep {
		for _, f := range faults {
			if f.GetNamespace() == patients {
				_ = w.mesh.api.Delete(ctx, f)
			}
		}
	}
	if !keep {
		w.uninstall(ctx)
	}
	if _, err := w.mesh.kube.Run(ctx, "delete", "namespace", patients, "--ignore-not-found", "--wait", "--timeout=60s"); err != nil {
		w.Error(err)
	}
}

// uninstall must leave no CRD, namespace, cluster role or webhook.
func (w *ward) uninstall(ctx context.Context) {
	if err := w.mesh.Uninstall(ctx); err != nil {
		w.Error(err)
		return
	}
	for _, kind := range []string{"crd", "namespace", "clusterrole", "clusterrolebinding", "mutatingwebhookconfiguration", "validatingwebhookconfiguration"} {
		out, err := w.mesh.kube.Run(ctx, "get", kind, "-o", "name")
		if err != nil || strings.Contains(strings.ReplaceAll(out, patients, ""), "chaos") {
			w.Errorf("after uninstall: %v %s", err, out)
		}
	}
	if state, err := w.mesh.Status(ctx); err != nil || state.Installed || state.Ours {
		w.Errorf("after uninstall: %+v, %v", state, err)
	}
	if err := w.mesh.Uninstall(ctx); err != nil {
		w.Errorf("a second uninstall: %v", err)
	}
}

func (w *ward) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, w.mesh.api.Get(ctx, client.ObjectKey{Namespace: patients, Name: name}, pod)
}

// well means that both pods are ready and reach each other.
func (w *ward) well(ctx context.Context) error {
	for _, name := range []string{"patient-0", "patient-1"} {
		pod, err := w.pod(ctx, name)
		if err != nil {
			return err
		}
		if pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) == 0 || !pod.Status.ContainerStatuses[0].Ready {
			return fmt.Errorf("%s is not ready", name)
		}
	}
	return errors.Join(w.reaches(ctx, "patient-0", "patient-1"), w.reaches(ctx, "patient-1", "patient-0"))
}

// get asks a pod, from this machine.
func (w *ward) get(ctx context.Context, pod, path string) (string, error) {
	p, err := w.pod(ctx, pod)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Status.PodIP+":8080"+path, nil)
	if err != nil {
		return "", err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// reaches requests one pod's name from the other.
func (w *ward) reaches(ctx context.Context, from, to string) error {
	p, err := w.pod(ctx, to)
	if err != nil {
		return err
	}
	name, err := w.get(ctx, from, "/fetch?url=http://"+p.Status.PodIP+":8080/name")
	if err == nil && name != to {
		err = fmt.Errorf("%s answers for %s", name, to)
	}
	if err != nil {
		return fmt.Errorf("%s does not reach %s: %w", from, to, err)
	}
	return nil
}

func (w *ward) eventually(what string, check func() error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	start := time.Now()
	err := kube.WaitFor(ctx, what, nil, func(context.Context) (bool, string, error) {
		err := check()
		return err == nil, "", err
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("%s after %s", what, time.Since(start).Round(100*time.Millisecond))
}

// inject creates a fault of testdata/faults.yaml on patient-0 and waits until
// Chaos Mesh reports it as injected; the returned function reverts it.
func (w *ward) inject(ctx context.Context, name string) (end func()) {
	w.Helper()
	fault := &unstructured.Unstructured{Object: map[string]any{"spec": w.faults[name].Spec}}
	fault.SetAPIVersion(Group + "/v1alpha1")
	fault.SetKind(w.faults[name].Kind)
	fault.SetNamespace(patients)
	fault.SetName(name)
	fields := []string{"spec", "selector"}
	selector := map[string]any{"namespaces": []any{patients}, "labelSelectors": map[string]any{"statefulset.kubernetes.io/pod-name": "patient-0"}}
	if err := unstructured.SetNestedMap(fault.Object, selector, fields...); err != nil {
		w.Fatal(err)
	}
	if err := w.mesh.api.Create(ctx, fault); err != nil {
		w.Fatal(err)
	}
	key := client.ObjectKeyFromObject(fault)
	w.eventually(name+" is injected", func() error {
		if err := w.mesh.api.Get(ctx, key, fault); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(fault.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "AllInjected" && c["status"] == "True" {
				return err
			}
		}
		records, _, _ := unstructured.NestedSlice(fault.Object, "status", "experiment", "containerRecords")
		return errors.Join(fmt.Errorf("conditions %v, records %v", conditions, records), err)
	})
	return func() {
		w.Helper()
		if err := w.mesh.api.Delete(ctx, fault); err != nil {
			w.Fatal(err)
		}
		w.eventually(name+" is taken back", func() error {
			if err := w.mesh.api.Get(ctx, key, fault); err != nil {
				return client.IgnoreNotFound(err)
			}
			return errors.New("the object is still there")
		})
		w.eventually("the patients are well again", func() error { return w.well(ctx) })
	}
}
