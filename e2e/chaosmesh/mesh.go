package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/cluster/local"
	"github.com/ordergrid/ordergrid/e2e/kube"
)

const (
	// Namespace Chaos Mesh is in.
	Namespace = "chaos-mesh"
	// Group of its kinds.
	Group = "chaos-mesh.org"

	release    = "chaos-mesh"
	deployment = "chaos-controller-manager"
	daemonSet  = "chaos-daemon"
	owner      = "ordergrid-chaosmesh"
	// ours marks the namespace of a Chaos Mesh that Install has made.
	ours = "ordergrid.dev/made-by"

	readyTimeout  = 3 * time.Minute
	removeTimeout = time.Minute
)

// ErrNotOurs means that the cluster has a foreign Chaos Mesh.
var ErrNotOurs = errors.New("this cluster has a Chaos Mesh that was not installed from here")

// Mesh is Chaos Mesh on one cluster.
type Mesh struct {
	root    string
	kind    cluster.Kind
	cluster cluster.Cluster
	kube    kube.Cluster
	helm    string
	api     client.Client
	crds    []*apiextensionsv1.CustomResourceDefinition
	report  func(format string, args ...any)
}

// Open finds the cluster of the checkout at root, which must be up; nothing is
// changed. report is given lines of progress.
func Open(ctx context.Context, o cluster.Options, report func(format string, args ...any)) (*Mesh, error) {
	cl, kind, err := cluster.FromEnvironment(ctx, o)
	if err != nil {
		return nil, err
	}
	config, err := cl.Kubeconfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; bring the cluster up: make cluster-up", err)
	}
	m := &Mesh{root: o.Root, kind: kind, cluster: cl, kube: kube.Cluster{Kubeconfig: config}, helm: "helm", report: report}
	if kind == cluster.Local {
		bin, err := local.ProgramsDir(ctx, o.Root)
		if err != nil {
			return nil, err
		}
		m.kube.Kubectl, m.helm = filepath.Join(bin, "kubectl"), filepath.Join(bin, "helm")
	}
	if m.crds, err = crds.Objects(ctx, o.Root); err != nil {
		return nil, err
	}
	rc, err := clientcmd.BuildConfigFromFlags("", config)
	if err != nil {
		return nil, err
	}
	rc.Timeout, rc.QPS = 30*time.Second, -1
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	m.api, err = client.New(rc, client.Options{Scheme: scheme})
	return m, err
}

// owned reports whether Chaos Mesh is there, and whether Install has made it.
func (m *Mesh) owned(ctx context.Context) (there, made bool, err error) {
	var crd apiextensionsv1.CustomResourceDefinition
	err = m.api.Get(ctx, client.ObjectKey{Name: "networkchaos." + Group}, &crd)
	if client.IgnoreNotFound(err) != nil {
		return false, false, err
	}
	there = err == nil
	var ns corev1.Namespace
	switch err := m.api.Get(ctx, client.ObjectKey{Name: Namespace}, &ns); {
	case apierrors.IsNotFound(err):
		return there, false, nil
	case err != nil:
		return false, false, err
	}
	return there, ns.Labels[ours] == owner, nil
}

// State is what Status finds.
type State struct {
	// Installed and Ours report whether there is a Chaos Mesh and whether Install made it.
	Installed, Ours bool
	// Manager and Daemons are ready of wanted.
	Manager, ManagerWanted, Daemons, DaemonsWanted int32
	// Images run, of the controller manager and the daemon.
	ManagerImage, DaemonImage string
	// current is false while the workload controllers have not seen the newest spec.
	current bool
}

// Ready reports whether faults can be injected on every node.
func (s State) Ready() bool {
	return s.Installed && s.current && s.ManagerWanted > 0 && s.Manager == s.ManagerWanted && s.DaemonsWanted > 0 && s.Daemons == s.DaemonsWanted
}

func (s State) String() string {
	switch {
	case !s.Installed:
		return "Chaos Mesh is not installed"
	case s.ManagerWanted == 0 && s.DaemonsWanted == 0:
		return "Chaos Mesh's CRDs are there, but nothing in namespace " + Namespace
	}
	return fmt.Sprintf("controller manager %d/%d ready (%s), daemon %d/%d ready (%s)",
		s.Manager, s.ManagerWanted, s.ManagerImage, s.Daemons, s.DaemonsWanted, s.DaemonImage)
}

// Status looks at what there is.
func (m *Mesh) Status(ctx context.Context) (State, error) {
	var s State
	var err error
	if s.Installed, s.Ours, err = m.owned(ctx); err != nil || !s.Installed {
		return s, err
	}
	var d appsv1.Deployment
	if err := client.IgnoreNotFound(m.api.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: deployment}, &d)); err != nil {
		return s, err
	}
	var ds appsv1.DaemonSet
	if err := client.IgnoreNotFound(m.api.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: daemonSet}, &ds)); err != nil {
		return s, err
	}
	if d.Spec.Replicas != nil {
		s.ManagerWanted, s.ManagerImage = *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image
	}
	if ds.UID != "" {
		s.DaemonImage = ds.Spec.Template.Spec.Containers[0].Image
	}
	s.Manager, s.Daemons, s.DaemonsWanted = min(d.Status.ReadyReplicas, d.Status.UpdatedReplicas), min(ds.Status.NumberReady, ds.Status.UpdatedNumberScheduled), ds.Status.DesiredNumberScheduled
	s.current = d.Generation == d.Status.ObservedGeneration && ds.Generation == ds.Status.ObservedGeneration
	return s, nil
}
