package chaosmesh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/kube"
)

// Install puts Chaos Mesh on the cluster, or corrects what is there of it, and
// returns when every node can be given faults. On a local cluster the images are
// built here (minutes the first time); elsewhere they are the published ones.
// A foreign Chaos Mesh is left as it is and must be ready.
func (m *Mesh) Install(ctx context.Context) error {
	there, made, err := m.owned(ctx)
	if err != nil {
		return err
	}
	if there && !made {
		m.report("%v; using it as it is", ErrNotOurs)
		return m.wait(ctx)
	}
	s, archives, err := m.settings(ctx)
	if err != nil {
		return err
	}
	if state, err := m.Status(ctx); err != nil {
		return err
	} else if state.Ready() && s.runs(state) {
		m.report("%s: nothing to do", state)
		return nil
	}
	if len(archives) > 0 {
		if err := m.cluster.Load(ctx, archives...); err != nil {
			return err
		}
	}
	if err := m.applyCRDs(ctx); err != nil {
		return err
	}
	if err := m.helmInstall(ctx, s); err != nil {
		return err
	}
	return m.wait(ctx)
}

// settings returns what to install, and builds it on a local cluster.
func (m *Mesh) settings(ctx context.Context) (settings, []string, error) {
	s := settings{tag: crds.Release, pause: "registry.k8s.io/pause:3.10"}
	var nodes corev1.NodeList
	if err := m.api.List(ctx, &nodes); err != nil {
		return s, nil, err
	}
	var versions []string
	for i := range nodes.Items {
		versions = append(versions, nodes.Items[i].Status.NodeInfo.ContainerRuntimeVersion)
	}
	if err := s.useRuntime(versions); err != nil || m.kind != cluster.Local {
		return s, nil, err
	}
	bin, err := Ensure(ctx, m.root, m.report)
	if err != nil {
		return s, nil, err
	}
	built, err := buildImages(ctx, bin, m.report)
	if err != nil {
		return s, nil, err
	}
	s.manager, s.daemon, s.tag = managerImage, daemonImage, built.tag
	s.pause, err = m.pauseImage(nodes.Items)
	return s, built.archives, err
}

// pauseImage is the one the local cluster has brought with it: there is no
// registry to take another from.
func (m *Mesh) pauseImage(nodes []corev1.Node) (string, error) {
	for i := range nodes {
		for _, image := range nodes[i].Status.Images {
			for _, name := range image.Names {
				if ok, _ := filepath.Match("ordergrid.dev/pause:*", name); ok {
					return name, nil
				}
			}
		}
	}
	return "", fmt.Errorf("no node has the image ordergrid.dev/pause; bring the cluster up again: make cluster-up")
}

// runs reports whether the images that run are the ones wanted.
func (s settings) runs(state State) bool {
	if s.manager == "" {
		return slices.Contains([]string{"ghcr.io/chaos-mesh/chaos-mesh:" + s.tag}, state.ManagerImage)
	}
	return state.ManagerImage == s.manager+":"+s.tag && state.DaemonImage == s.daemon+":"+s.tag
}

// applyCRDs applies the chart's CRDs, corrected (package crds), and the namespace,
// which shows that the rest is ours.
func (m *Mesh) applyCRDs(ctx context.Context) error {
	objects := []client.Object{&corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: Namespace, Labels: map[string]string{
			ours: owner, "pod-security.kubernetes.io/enforce": "privileged",
		}},
	}}
	for _, crd := range m.crds {
		crd = crd.DeepCopy()
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		objects = append(objects, crd)
	}
	m.report("applying %d CRDs of Chaos Mesh", len(m.crds))
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		delete(content, "status")
		applied := client.ApplyConfigurationFromUnstructured(asUnstructured(content))
		if err := m.api.Apply(ctx, applied, client.FieldOwner(owner), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", o.GetName(), err)
		}
	}
	return nil
}

// helmInstall installs the chart out of the module cache, which Helm only reads.
func (m *Mesh) helmInstall(ctx context.Context, s settings) error {
	module, err := crds.Dir(ctx, m.root)
	if err != nil {
		return err
	}
	values, err := s.values()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "ordergrid-chaosmesh-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	chart := m.chart()
	chart.Path, chart.Values = filepath.Join(module, filepath.Dir(crds.InModule)), filepath.Join(work, "values.yaml")
	if err := os.WriteFile(chart.Values, values, 0o600); err != nil {
		return err
	}
	m.report("helm upgrade --install %s (controller manager and daemon, %s)", release, s.tag)
	_, err = m.kube.Install(ctx, chart)
	return err
}

func (m *Mesh) chart() kube.Chart {
	return kube.Chart{Helm: m.helm, Release: release, Namespace: Namespace, Foreign: true}
}

// wait returns when the controller manager and a daemon on every node are ready
// and the API server reaches the webhooks, which the manager serves a moment later.
func (m *Mesh) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	start := time.Now()
	say := func(s string) {
		if s != "" {
			m.report("%s", s)
		}
	}
	err := kube.WaitFor(ctx, "a ready Chaos Mesh", say, func(ctx context.Context) (bool, string, error) {
		state, err := m.Status(ctx)
		if err != nil || !state.Ready() {
			return false, state.String(), err
		}
		return true, "", m.tryWebhooks(ctx)
	})
	if err == nil {
		m.report("Chaos Mesh is ready after %s", time.Since(start).Round(100*time.Millisecond))
	}
	return err
}

// tryWebhooks sends the API server a fault as a dry run.
func (m *Mesh) tryWebhooks(ctx context.Context) error {
	fault := asUnstructured(map[string]any{
		"apiVersion": Group + "/v1alpha1", "kind": "PodChaos",
		"metadata": map[string]any{"namespace": Namespace, "generateName": "trial-"},
		"spec": map[string]any{
			"action": "pod-kill", "mode": "one",
			"selector": map[string]any{"namespaces": []any{Namespace}, "labelSelectors": map[string]any{"no": "pod"}},
		},
	})
	if err := m.api.Create(ctx, fault, client.DryRunAll); err != nil {
		return fmt.Errorf("a dry run of a fault: %w", err)
	}
	return nil
}
