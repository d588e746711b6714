// Package apply writes Kubernetes objects by server-side apply, and only when they are not yet as desired; and limits
// how soon a failed pass is retried.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// FieldOwner is the server-side apply field manager of the operator.
const FieldOwner = "ordergrid-operator"

// HashAnnotation carries a hash of what was last applied, so that a field that is no longer desired is detected
// although all desired fields are in place.
const HashAnnotation = "ordergrid.dev/applied"

// Outcome is the result of Apply.
type Outcome int

const (
	// Unchanged: the object was as desired; nothing was sent to the API server.
	Unchanged Outcome = iota
	// Created: the object did not exist.
	Created
	// Updated: the object existed and differed.
	Updated
)

// String is the outcome in metrics and the log.
func (o Outcome) String() string {
	switch o {
	case Created:
		return "created"
	case Updated:
		return "updated"
	}
	return "unchanged"
}

// ForeignError is returned when an object of the desired name exists and has another controller, or none.
// It is never overwritten: it may be a production Service of another owner.
type ForeignError struct {
	Kind, Namespace, Name string
	// Owner is the controlling owner found, as Kind/name; empty if there is none.
	Owner string
	// Leaving is true when the object is being deleted, so that a retry helps.
	Leaving bool
}

func (e *ForeignError) Error() string {
	control := "has no controller"
	if e.Owner != "" {
		control = "is controlled by " + e.Owner
	}
	return fmt.Sprintf("%s %s/%s exists already and %s; delete or rename it, or give this object another name",
		e.Kind, e.Namespace, e.Name, control)
}

// Applier applies objects that one owner controls.
type Applier struct {
	// Client reads (from the cache, in the operator) and writes.
	Client client.Client
	// Live reads from the API server. It is used before an object is created: a cache that is behind, or that omits
	// objects without the operator's labels, must not lead to taking over an object of another owner.
	Live client.Reader
	// OnWrite, if set, is called for every write that was sent.
	OnWrite func(kind string, outcome Outcome)
}

// Apply makes the object as desired. owner becomes its controller; an object that another owner controls is refused
// with a ForeignError. desired is not modified. If it has a resourceVersion, an object of another one is not changed: the
// error is a conflict then.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired client.Object) (Outcome, error) {
	scheme := a.Client.Scheme()
	want, err := toUnstructured(desired, scheme)
	if err != nil {
		return Unchanged, err
	}
	ref, err := controllerRef(owner, scheme)
	if err != nil {
		return Unchanged, err
	}
	want.SetOwnerReferences([]metav1.OwnerReference{ref})
	version := want.GetResourceVersion()
	unstructured.RemoveNestedField(want.Object, "metadata", "resourceVersion")
	if err := setHash(want); err != nil {
		return Unchanged, err
	}

	kind := want.GetKind()
	live := desired.DeepCopyObject().(client.Object)
	err = a.Client.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if apierrors.IsNotFound(err) {
		err = a.Live.Get(ctx, client.ObjectKeyFromObject(desired), live)
	}
	outcome := Updated
	switch {
	case apierrors.IsNotFound(err):
		outcome = Created
	case err != nil:
		return Unchanged, fmt.Errorf("read %s %s: %w", kind, client.ObjectKeyFromObject(desired), err)
	default:
		if err := checkController(live, kind, ref.UID); err != nil {
			return Unchanged, err
		}
		have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
		if err != nil {
			return Unchanged, err
		}
		if covers(have, want.Object) {
			return Unchanged, nil
		}
	}
	if version != "" {
		want.SetResourceVersion(version)
	}
	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if err != nil {
		return Unchanged, fmt.Errorf("apply %s %s: %w", kind, client.ObjectKeyFromObject(desired), err)
	}
	ctrl.LoggerFrom(ctx).Info("wrote", "outcome", outcome.String(), "kind", kind, "name", desired.GetName())
	if a.OnWrite != nil {
		a.OnWrite(kind, outcome)
	}
	return outcome, nil
}

// checkController refuses to take over an object of another controller.
func checkController(live client.Object, kind string, uid types.UID) error {
	foreign := &ForeignError{Kind: kind, Namespace: live.GetNamespace(), Name: live.GetName(), Leaving: live.GetDeletionTimestamp() != nil}
	ref := metav1.GetControllerOf(live)
	if ref == nil {
		return foreign
	}
	if ref.UID != uid {
		foreign.Owner = ref.Kind + "/" + ref.Name
		return foreign
	}
	return nil
}

// toUnstructured is the object as it is applied: with its kind, without status and without fields that are null.
func toUnstructured(obj client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	dropNulls(content)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

func dropNulls(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			dropNulls(v)
		case []any:
			for _, item := range v {
				if nested, ok := item.(map[string]any); ok {
					dropNulls(nested)
				}
			}
		}
	}
}

func controllerRef(owner client.Object, scheme *runtime.Scheme) (metav1.OwnerReference, error) {
	gvk, err := apiutil.GVKForObject(owner, scheme)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return *metav1.NewControllerRef(owner, gvk), nil
}

func setHash(u *unstructured.Unstructured) error {
	data, err := json.Marshal(u.Object) // map keys are sorted, so equal content gives equal bytes
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[HashAnnotation] = hex.EncodeToString(sum[:8])
	u.SetAnnotations(annotations)
	return nil
}
