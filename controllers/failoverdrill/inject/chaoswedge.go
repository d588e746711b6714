package inject

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stuckAfter is how long Chaos Mesh may need to take an object back before it is helped.
const stuckAfter = 10 * time.Second

// workKinds are the objects in which Chaos Mesh's controllers keep, for every pod, what its daemon is to set up there, and
// the lists in them. Each entry of a list names in "source" the object that asked for it.
var workKinds = map[string]struct {
	kind  string
	lists []string
}{
	kindNetwork: {"PodNetworkChaos", []string{"ipsets", "iptables", "tcs"}},
	kindIO:      {"PodIOChaos", []string{"actions"}},
}

// remove deletes objects, and helps those that do not go.
func (c *ChaosMesh) remove(ctx context.Context, objects []unstructured.Unstructured) (err error) {
	for i := range objects {
		o := &objects[i]
		if o.GetDeletionTimestamp() == nil {
			if e := c.Client.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())}); client.IgnoreNotFound(e) != nil && !apierrors.IsConflict(e) {
				err = errors.Join(err, fmt.Errorf("delete %s %s: %w", o.GetKind(), o.GetName(), e))
			}
			continue
		}
		if c.now().Sub(o.GetDeletionTimestamp().Time) >= stuckAfter {
			err = errors.Join(err, c.unwedge(ctx, o))
		}
	}
	return err
}

// unwedge helps an object that cannot be taken back because it could not be injected: Chaos Mesh goes on trying to inject
// it first, for ever, on a node whose kernel cannot do it, and every later fault of the pod fails with it. Without the
// object's entries in the list of work there is nothing left to fail: the daemon sets up the rest, which also removes what
// the first half of the injection left, and Chaos Mesh finishes by itself.
func (c *ChaosMesh) unwedge(ctx context.Context, o *unstructured.Unstructured) error {
	s, err := statusOf(o)
	work, has := workKinds[o.GetKind()]
	if err != nil || !has {
		return err
	}
	for i := range s.Experiment.Records {
		if r := &s.Experiment.Records[i]; r.stuck() {
			namespace, pod, _ := strings.Cut(r.ID, "/")
			pod, _, _ = strings.Cut(pod, "/") // a container of it may follow
			err = errors.Join(err, c.dropWork(ctx, work.kind, work.lists, client.ObjectKey{Namespace: namespace, Name: pod}, o.GetNamespace()+"/"+o.GetName()))
		}
	}
	return err
}

func (c *ChaosMesh) dropWork(ctx context.Context, kind string, lists []string, pod client.ObjectKey, source string) error {
	work := &unstructured.Unstructured{}
	work.SetGroupVersionKind(chaosGroup.WithKind(kind))
	err := c.Client.Get(ctx, pod, work)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil // it went with its pod
	}
	if err != nil {
		return err
	}
	if !withoutSource(work, lists, source) {
		return nil
	}
	// The resource version of what was read goes along: an entry that comes meanwhile is not lost.
	if err := c.Client.Update(ctx, work); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("free pod %s from what could not be injected: %w", pod.Name, err)
	}
	return nil
}

// withoutSource drops the entries of one source, and reports whether there were any.
func withoutSource(work *unstructured.Unstructured, lists []string, source string) (dropped bool) {
	for _, list := range lists {
		entries, found, err := unstructured.NestedSlice(work.Object, "spec", list)
		if !found || err != nil {
			continue
		}
		kept := []any{}
		for _, e := range entries {
			if m, _ := e.(map[string]any); m == nil || m["source"] != source {
				kept = append(kept, e)
			}
		}
		if len(kept) < len(entries) {
			dropped = true
			_ = unstructured.SetNestedSlice(work.Object, kept, "spec", list) // it was just read from there
		}
	}
	return dropped
}
