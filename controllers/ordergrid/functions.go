package ordergrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/gridfunction"
)

const functionsKey = "functions.json"

// functions is what a pass knows of spec.callbacks.
type functions struct {
	given    given
	reason   string   // of the first trouble
	troubles []string // why GridFunctions are not given to the pods as they are
	held     bool     // all is as it was given before, since orders would pass a part of spec.callbacks
}

// bare reports whether orders would pass none of the functions that decide on them, since one cannot be given.
func (f *functions) bare() bool {
	return f.held && !slices.ContainsFunc(f.given.Functions, func(g givenFunction) bool { return g.Kind != api.FunctionCompute })
}

// trouble is why a GridFunction is not given to the pods as it is.
type trouble struct{ reason, text string }

// functionKey names a function in a grid.
type functionKey struct {
	kind api.FunctionKind
	name string
}

// planFunctions decides what the pods are given. A function that cannot be given as its GridFunction is stays as it was
// given before; where it never was, everything stays, since the others may rely on it: an order is never decided by a part
// of spec.callbacks. One of kind Compute decides on no order: where it never was given, it alone is left out. usable has
// the GridFunctions that are Valid and whose files the grid has; wrong has the others.
func planFunctions(before given, c *api.CallbacksSpec, usable map[functionKey]*api.GridFunction, wrong map[functionKey]trouble) functions {
	f := functions{}
	tell := func(t trouble) {
		if f.reason == "" {
			f.reason = t.reason
		}
		f.troubles = append(f.troubles, t.text)
	}
	if c != nil {
		f.given.Stamp = c.StampTag
	}
	for _, kind := range api.FunctionKinds {
		for _, name := range c.Names(kind) {
			key := functionKey{kind, name}
			g, ok := usable[key]
			t := wrong[key]
			if ok && f.given.Stamp != 0 && slices.Contains(g.Spec.SetTags, f.given.Stamp) {
				ok, t = false, trouble{reasonStampGranted, fmt.Sprintf("GridFunction %s may set tag %d, which is spec.callbacks.stampTag: it could forge the stamp. Use another tag", name, f.given.Stamp)}
			}
			switch old := before.find(kind, name); {
			case ok:
				f.given.Functions = append(f.given.Functions, givenOf(g))
				continue
			case old != nil && t.reason != reasonStampGranted:
				f.given.Functions = append(f.given.Functions, *old)
			default:
				f.held = f.held || kind != api.FunctionCompute
			}
			tell(t)
		}
	}
	if f.held {
		f.given = before
	}
	return f
}

func givenOf(g *api.GridFunction) givenFunction {
	f := givenFunction{Kind: g.Spec.Kind, Name: g.Name, Files: gridfunction.FilesDigest(&g.Spec), SHA256: g.Spec.Module.SHA256,
		Fuel: g.Spec.Fuel, MemoryPages: g.Spec.MemoryPages, Tags: g.Spec.SetTags}
	if g.Spec.Config != nil {
		f.ConfigSHA256 = g.Spec.Config.SHA256
	}
	if f.Kind == api.FunctionPre {
		f.OnError = string(api.FunctionReject)
		if g.Spec.OnError != "" {
			f.OnError = string(g.Spec.OnError)
		}
	}
	return f
}

// unguardedError is that pods are neither made nor replaced, because they would take orders without the functions or the
// limits that decide on them.
type unguardedError struct{ trouble string }

func (e *unguardedError) Error() string {
	return e.trouble + ". Pods are neither made nor replaced meanwhile: none takes orders without what decides on them"
}

// planCallbacks decides what the pods are given, and keeps it with a copy of the files.
func (r *run) planCallbacks(ctx context.Context) error {
	name := client.ObjectKey{Namespace: r.grid.Namespace, Name: api.FunctionsConfigMap(r.grid.Name)}
	var record corev1.ConfigMap
	from := client.Reader(r.Client)
	if r.grid.Spec.Callbacks != nil {
		from = r.Live // pods are never built from what was given two changes ago
	}
	err := from.Get(ctx, name, &record)
	switch {
	case apierrors.IsNotFound(err) && r.grid.Spec.Callbacks == nil:
		r.functions = &functions{}
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
	}
	var before given
	if text := record.Data[functionsKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return fmt.Errorf("ConfigMap %s, key %s: %w; it was edited: put back what the operator wrote, or delete it", name.Name, functionsKey, err)
		}
	}
	usable, wrong, err := r.findFunctions(ctx)
	if err != nil {
		return err
	}
	plan := planFunctions(before, r.grid.Spec.Callbacks, usable, wrong)
	r.functions = &plan
	if plan.bare() && len(r.statefulSets) == 0 {
		return &unguardedError{strings.Join(plan.troubles, ". ")}
	}
	text, err := json.MarshalIndent(plan.given, "", "  ")
	if err != nil {
		return err
	}
	_, err = r.applier.Apply(ctx, r.grid, &corev1.ConfigMap{ObjectMeta: gridMeta(r.grid, name.Name), Data: map[string]string{functionsKey: string(text)}})
	return err
}

// findFunctions reads the GridFunctions of spec.callbacks. The files of those that are Valid are copied first.
func (r *run) findFunctions(ctx context.Context) (usable map[functionKey]*api.GridFunction, wrong map[functionKey]trouble, err error) {
	usable, wrong = map[functionKey]*api.GridFunction{}, map[functionKey]trouble{}
	for _, kind := range api.FunctionKinds {
		for _, name := range r.grid.Spec.Callbacks.Names(kind) {
			key := functionKey{kind, name}
			f := &api.GridFunction{}
			switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.grid.Namespace, Name: name}, f); {
			case apierrors.IsNotFound(err):
				wrong[key] = trouble{reasonFunctionNotFound, fmt.Sprintf("there is no GridFunction %s in namespace %s; create it, or correct spec.callbacks", name, r.grid.Namespace)}
				continue
			case err != nil:
				return nil, nil, fmt.Errorf("read GridFunction %s: %w", name, err)
			}
			t, err := r.usable(ctx, kind, f)
			switch {
			case err != nil:
				return nil, nil, err
			case t != nil:
				wrong[key] = *t
			default:
				usable[key] = f
			}
		}
	}
	return usable, wrong, nil
}

// usable returns why a function cannot be given to the pods as it is.
func (r *run) usable(ctx context.Context, kind api.FunctionKind, f *api.GridFunction) (*trouble, error) {
	valid := meta.FindStatusCondition(f.Status.Conditions, api.ConditionValid)
	switch {
	case f.Spec.Kind != kind:
		return &trouble{reasonFunctionOtherKind, fmt.Sprintf("GridFunction %s is of kind %s, and is named among those of kind %s; name it there, or another one here", f.Name, f.Spec.Kind, kind)}, nil
	case f.DeletionTimestamp != nil:
		return &trouble{reasonFunctionNotFound, fmt.Sprintf("GridFunction %s is being deleted; create it anew, or correct spec.callbacks", f.Name)}, nil
	case valid == nil || valid.ObservedGeneration != f.Generation:
		return &trouble{reasonFunctionUnchecked, fmt.Sprintf("GridFunction %s is not checked yet", f.Name)}, nil
	case !gridfunction.Checked(f):
		return &trouble{reasonFunctionInvalid, fmt.Sprintf("GridFunction %s is not Valid: %s", f.Name, valid.Message)}, nil
	}
	var problem *gridfunction.Problem
	err := r.copyFiles(ctx, f)
	if errors.As(err, &problem) {
		r.lookWithin(leavingRetry * 5)
		return &trouble{reasonFunctionInvalid, fmt.Sprintf("GridFunction %s: %s", f.Name, problem.Text)}, nil
	}
	return nil, err
}

// copyFiles makes the grid's own copy of the files of a function, where there is none. It never changes: it is named by
// their digests. So one that the cache has is not looked for at the API server.
func (r *run) copyFiles(ctx context.Context, f *api.GridFunction) error {
	m := &corev1.ConfigMap{ObjectMeta: gridMeta(r.grid, api.FunctionConfigMap(r.grid.Name, gridfunction.FilesDigest(&f.Spec))), Immutable: ptr.To(true)}
	name := client.ObjectKeyFromObject(m)
	var cached corev1.ConfigMap
	if err := r.Client.Get(ctx, name, &cached); err == nil && owned(r.grid, &cached) && cached.DeletionTimestamp == nil {
		return nil
	}
	have := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	switch err := r.Live.Get(ctx, name, have); {
	case err == nil && !owned(r.grid, have):
		return &apply.ForeignError{Kind: "ConfigMap", Namespace: name.Namespace, Name: name.Name, Leaving: have.DeletionTimestamp != nil}
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
	}
	files, err := gridfunction.Read(ctx, r.Live, f)
	if err != nil {
		return err
	}
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r.grid, api.GroupVersion.WithKind("OrderGrid"))}
	m.BinaryData = map[string][]byte{keyModule: files.Module}
	if f.Spec.Config != nil {
		m.BinaryData[keyConfig] = files.Config
	}
	if err := r.Client.Create(ctx, m, client.FieldOwner(apply.FieldOwner)); err != nil {
		return fmt.Errorf("create ConfigMap %s: %w", name.Name, err)
	}
	countWrite("ConfigMap", apply.Created)
	return nil
}

// removeFiles removes the copies that no pod is given any more: once every pod has the arguments of the present ones.
func (r *run) removeFiles(ctx context.Context) error {
	want := r.functions.given.args()
	if len(r.pods) < r.wantPods() || slices.ContainsFunc(r.pods, func(p corev1.Pod) bool { return !hasArgs(&p, want) }) {
		return nil
	}
	record := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.grid.Namespace, Name: api.FunctionsConfigMap(r.grid.Name)}, record); err != nil {
		return client.IgnoreNotFound(err)
	}
	var all corev1.ConfigMapList
	if err := r.Client.List(ctx, &all, client.InNamespace(r.grid.Namespace), client.MatchingLabels(gridLabels(r.grid))); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	used := map[string]bool{}
	for i := range r.functions.given.Functions {
		used[api.FunctionConfigMap(r.grid.Name, r.functions.given.Functions[i].Files)] = true
	}
	prefix := api.FunctionConfigMap(r.grid.Name, "")
	gone := []*corev1.ConfigMap{}
	for i := range all.Items {
		if m := &all.Items[i]; strings.HasPrefix(m.Name, prefix) && !used[m.Name] && owned(r.grid, m) && m.DeletionTimestamp == nil {
			gone = append(gone, m)
		}
	}
	if r.grid.Spec.Callbacks == nil && owned(r.grid, record) {
		gone = append(gone, record) // the last: without it nothing is looked for
	}
	for _, m := range gone {
		if err := r.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ConfigMap %s: %w", m.Name, err)
		}
	}
	return nil
}

// gridsOfFunction maps a GridFunction to the grids that name it.
func (r *Reconciler) gridsOfFunction(ctx context.Context, f client.Object) (requests []reconcile.Request) {
	var grids api.OrderGridList
	if err := r.Client.List(ctx, &grids, client.InNamespace(f.GetNamespace())); err != nil {
		return nil // from the cache: it does not fail
	}
	for i := range grids.Items {
		g := &grids.Items[i]
		if slices.Contains(g.Spec.Callbacks.AllNames(), f.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Name}})
		}
	}
	return requests
}

// StripConfigMap keeps copies of modules out of the cache: only that they are there is read from it.
func StripConfigMap(object any) (any, error) {
	if m, is := object.(*corev1.ConfigMap); is {
		m.BinaryData, m.ManagedFields = nil, nil
	}
	return object, nil
}
