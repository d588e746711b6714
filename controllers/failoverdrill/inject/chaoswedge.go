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

// stuckAfter is how long Chaos Mesh may take to recover an object before it is unblocked.
const stuckAfter = 10 * time.Second

// workKinds are the objects with the work lists of Chaos Mesh's daemon per pod, and the lists in them. Each entry of a
// list names in "source" the object that requested it.
var workKinds = map[string]struct {
	kind  string
	lists []string
}{
	kindNetwork: {"PodNetworkChaos", []string{"ipsets", "iptables", "tcs"}},
	kindIO:      {"PodIOChaos", []string{"actions"}},
}

// remove deletes objects, and unblocks those that are not deleted.
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

// unwedge unblocks an object that cannot be recovered because it could not be injected: on a node whose kernel does not
// support it Chaos Mesh retries the injection for ever, and every later fault of the pod fails with it. Without the
// object's entries in the work list nothing is left to fail: the daemon sets up the rest, which also removes leftovers
// of the partial injection, and Chaos Mesh finishes by itself.
func (c *ChaosMesh) unwedge(ctx context.Context, o *unstructured.Unstructured) error {
	s, err := statusOf(o)
	work, has := workKinds[o.GetKind()]
	if err != nil || !has {
		return err
	}
	for i := range s.Experiment.Records {
		if r := &s.Experiment.Records[i]; r.stuck() {
			namespace, pod, _ := strings.Cut(r.ID, "/")
			pod, _, _ = strings.Cut(pod, "/") // a container name may follow
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
		return nil // it was deleted with its pod
	}
	if err != nil {
		return err
	}
	if !withoutSource(work, lists, source) {
		return nil
	}
	// The resource version of the read is sent: an entry added meanwhile is not lost.
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
