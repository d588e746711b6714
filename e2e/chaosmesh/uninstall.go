package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/e2e/kube"
)

func asUnstructured(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// Uninstall ends every fault, waits until Chaos Mesh has taken them back, and
// removes it with its CRDs and its namespace. A foreign one is refused.
func (m *Mesh) Uninstall(ctx context.Context) error {
	there, made, err := m.owned(ctx)
	switch {
	case err != nil:
		return err
	case there && !made:
		return fmt.Errorf("%w: its namespace %s has no label %s=%s; remove it the way it was installed", ErrNotOurs, Namespace, ours, owner)
	case !there && !made:
		m.report("Chaos Mesh is not installed: nothing to do")
		return nil
	}
	if there {
		if err := m.endFaults(ctx); err != nil {
			return err
		}
	}
	m.report("helm uninstall %s", release)
	if _, err := m.kube.Uninstall(ctx, m.chart()); err != nil {
		return err
	}
	return m.removeRest(ctx)
}

// Faults lists every object of Chaos Mesh there is, as kind namespace/name.
func (m *Mesh) Faults(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, crd := range m.crds {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(Group + "/" + crd.Spec.Versions[0].Name)
		list.SetKind(crd.Spec.Names.ListKind)
		err := m.api.List(ctx, list)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", crd.Name, err)
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

// endFaults deletes all faults and waits until none is left. What is left after
// that is named: its finalizer stands for something still broken in a pod.
func (m *Mesh) endFaults(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return kube.WaitFor(ctx, "the end of all faults", func(s string) {
		if s != "" {
			m.report("%s", s)
		}
	}, func(ctx context.Context) (bool, string, error) {
		faults, err := m.Faults(ctx)
		if err != nil {
			return false, "", err
		}
		var names []string
		for _, f := range faults {
			names = append(names, f.GetKind()+" "+f.GetNamespace()+"/"+f.GetName())
			if f.GetDeletionTimestamp() == nil {
				err = errors.Join(err, client.IgnoreNotFound(m.api.Delete(ctx, f)))
			}
		}
		return len(names) == 0, "ending " + strings.Join(names, ", "), err
	})
}

// removeRest removes what Helm leaves: CRDs and the namespace.
func (m *Mesh) removeRest(ctx context.Context) error {
	var left []client.Object
	for _, crd := range m.crds {
		left = append(left, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}})
	}
	left = append(left, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	m.report("removing %d CRDs and namespace %s", len(m.crds), Namespace)
	for _, o := range left {
		if err := client.IgnoreNotFound(m.api.Delete(ctx, o)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return kube.WaitFor(ctx, "the removal of Chaos Mesh", nil, func(ctx context.Context) (bool, string, error) {
		for _, o := range left {
			err := m.api.Get(ctx, client.ObjectKeyFromObject(o), o)
			if client.IgnoreNotFound(err) != nil || err == nil {
				return false, o.GetName() + " is still there", client.IgnoreNotFound(err)
			}
		}
		return true, "", nil
	})
}
