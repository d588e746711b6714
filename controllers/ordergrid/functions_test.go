package ordergrid

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/gridfunction"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

func defined(kind api.FunctionKind, name, sha string, tags ...int32) *api.GridFunction {
	return &api.GridFunction{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.GridFunctionSpec{Kind: kind, Module: api.FunctionModule{SHA256: sha}, Fuel: 100_000, MemoryPages: 16, SetTags: tags}}
}

func named(names ...string) (list []api.CallbackReference) {
	for _, n := range names {
		list = append(list, api.CallbackReference{Name: n})
	}
	return list
}

// TestPlanFunctions: what cannot be given as it is stays as it was, and where it never was, everything does.
func TestPlanFunctions(t *testing.T) {
	limit, desk := functionKey{api.FunctionPre, "limit"}, functionKey{api.FunctionPre, "desk"}
	audit := functionKey{api.FunctionPost, "audit"}
	first := given{Functions: []givenFunction{givenOf(defined(api.FunctionPre, "limit", "a1"))}}
	add := functionKey{api.FunctionCompute, "add"}
	missing := trouble{reasonFunctionNotFound, "there is none"}
	for name, c := range map[string]struct {
		before given
		spec   *api.CallbacksSpec
		usable map[functionKey]*api.GridFunction
		wrong  map[functionKey]trouble
		want   string // name, digest
		stamp  int32
		reason string
	}{
		"none":      {first, nil, nil, nil, "", 0, ""},
		"the first": {given{}, &api.CallbacksSpec{Pre: named("limit")}, map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a1")}, nil, "limit a1", 0, ""},
		"in order": {given{}, &api.CallbacksSpec{StampTag: 7000, Post: named("audit"), Pre: named("limit", "desk")},
			map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a1"), desk: defined(api.FunctionPre, "desk", "b1"), audit: defined(api.FunctionPost, "audit", "c1")}, nil, "limit a1, desk b1, audit c1", 7000, ""},
		"all kinds": {given{}, &api.CallbacksSpec{Compute: named("add", "limit"), Pre: named("limit")},
			map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a1"), add: defined(api.FunctionCompute, "add", "d1"), {api.FunctionCompute, "limit"}: defined(api.FunctionCompute, "limit", "d2")}, nil, "limit a1, add d1, limit d2", 0, ""},
		"one to compute that never was": {first, &api.CallbacksSpec{Pre: named("limit"), Compute: named("add")}, map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a2")}, map[functionKey]trouble{add: missing}, "limit a2", 0, reasonFunctionNotFound},
		"one to compute that is gone": {given{Functions: []givenFunction{givenOf(defined(api.FunctionCompute, "add", "d1"))}}, &api.CallbacksSpec{Pre: named("limit"), Compute: named("add")},
			map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a2")}, map[functionKey]trouble{add: missing}, "limit a2, add d1", 0, reasonFunctionNotFound},
		"changed":                {first, &api.CallbacksSpec{Pre: named("limit")}, map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a2")}, nil, "limit a2", 0, ""},
		"gone":                   {first, &api.CallbacksSpec{Pre: named("limit")}, nil, map[functionKey]trouble{limit: missing}, "limit a1", 0, reasonFunctionNotFound},
		"gone, another is added": {first, &api.CallbacksSpec{Pre: named("limit", "desk")}, map[functionKey]*api.GridFunction{desk: defined(api.FunctionPre, "desk", "b1")}, map[functionKey]trouble{limit: missing}, "limit a1, desk b1", 0, reasonFunctionNotFound},
		"one that never was":     {first, &api.CallbacksSpec{StampTag: 7000, Pre: named("limit", "desk")}, map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a2")}, map[functionKey]trouble{desk: missing}, "limit a1", 0, reasonFunctionNotFound},
		"never any":              {given{}, &api.CallbacksSpec{Pre: named("limit")}, nil, map[functionKey]trouble{limit: missing}, "", 0, reasonFunctionNotFound},
		"forges the stamp":       {first, &api.CallbacksSpec{StampTag: 7000, Pre: named("limit")}, map[functionKey]*api.GridFunction{limit: defined(api.FunctionPre, "limit", "a2", 7000)}, nil, "limit a1", 0, reasonStampGranted},
		"of the other kind":      {first, &api.CallbacksSpec{Post: named("limit")}, nil, map[functionKey]trouble{{api.FunctionPost, "limit"}: missing}, "limit a1", 0, reasonFunctionNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			f := planFunctions(c.before, c.spec, c.usable, c.wrong)
			var got []string
			for _, g := range f.given.Functions {
				got = append(got, g.Name+" "+g.SHA256)
			}
			if strings.Join(got, ", ") != c.want || f.given.Stamp != c.stamp || f.reason != c.reason || (len(f.troubles) > 0) != (c.reason != "") {
				t.Errorf("%v, stamp %d, %s %v", got, f.given.Stamp, f.reason, f.troubles)
			}
		})
	}
}

// functionBench is a grid with functions on a real API server; both controllers run.
type functionBench struct {
	*bench
	functions *gridfunction.Reconciler
}

func newFunctionBench(t *testing.T) *functionBench {
	b := newBench(t)
	return &functionBench{b, &gridfunction.Reconciler{Client: b.client, Live: b.client, Recorder: events.NewFakeRecorder(100), Clock: clocktesting.NewFakePassiveClock(time.Unix(1.8e9, 0))}}
}

func (b *functionBench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// define makes, or changes, a GridFunction with its ConfigMap, and has the operator check it.
func (b *functionBench) define(kind api.FunctionKind, name string, module []byte) {
	b.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, BinaryData: map[string][]byte{"f.wasm": module}}
	if err := b.client.Create(b.t.Context(), m); apierrors.IsAlreadyExists(err) {
		b.must(b.client.Update(b.t.Context(), m))
	}
	f := &api.GridFunction{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	spec := api.GridFunctionSpec{Kind: kind, Module: api.FunctionModule{ConfigMap: &api.ConfigMapFile{Name: name, Key: "f.wasm"}, SHA256: fmt.Sprintf("%x", sha256.Sum256(module))}}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(f), f); apierrors.IsNotFound(err) {
		f.Spec = spec
		b.must(b.client.Create(b.t.Context(), f))
	} else {
		f.Spec = spec
		b.must(b.client.Update(b.t.Context(), f))
	}
	_, err := b.functions.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)})
	b.must(err)
}

// copies are the ConfigMaps of the grid's functions.
func (b *functionBench) copies() (all []corev1.ConfigMap) {
	b.t.Helper()
	var list corev1.ConfigMapList
	b.must(b.client.List(b.t.Context(), &list, client.InNamespace(b.namespace)))
	for _, m := range list.Items {
		if strings.HasPrefix(m.Name, "rtd.function") {
			all = append(all, m)
		}
	}
	return all
}

// args of the pods that are made.
func (b *functionBench) args(grid *api.OrderGrid) string {
	b.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: api.ShardName(grid.Name, 0)}}
	b.get(set)
	return strings.Join(functionArgsOf(&set.Spec.Template.Spec), " ")
}

// TestFunctionsReachPods: a new grid waits for its functions; what is changed reaches the pods once it is valid; and what
// was given stays when the definition is invalid or deleted.
func TestFunctionsReachPods(t *testing.T) {
	b := newFunctionBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Callbacks: &api.CallbacksSpec{Pre: []api.CallbackReference{{Name: "list"}}}})
	b.run(grid)
	b.wantCondition(grid, api.ConditionFunctionsLoaded, metav1.ConditionFalse, reasonFunctionNotFound, "there is no GridFunction list")
	var sets appsv1.StatefulSetList
	if b.must(b.client.List(t.Context(), &sets, client.InNamespace(b.namespace))); len(sets.Items) > 0 {
		t.Fatal("a grid has pods without the function that decides on its orders")
	}
	b.define(api.FunctionPre, "list", examples.RestrictedList)
	b.run(grid)
	if args := b.args(grid); !strings.Contains(args, fmt.Sprintf("list=/etc/ordergrid/functions/list.wasm:sha256=%x", sha256.Sum256(examples.RestrictedList))) {
		t.Errorf("pods have %q", args)
	}
	if m := b.copies(); len(m) != 2 || !slices.Equal(m[0].BinaryData[keyModule], examples.RestrictedList) || m[0].Immutable == nil || !*m[0].Immutable || !owned(grid, &m[0]) {
		t.Errorf("the grid has %d ConfigMaps of functions", len(m))
	}
	if again := b.run(grid); len(again) > 0 {
		t.Errorf("a second pass writes %v", again)
	}
	if f := grid.Status.Functions; len(f) != 1 || f[0].Name != "list" || f[0].Kind != api.FunctionPre || f[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256(examples.RestrictedList)) {
		t.Errorf("status.functions %+v", f)
	}

	before := b.args(grid)
	b.define(api.FunctionPre, "list", []byte("no module"))
	b.run(grid)
	b.wantCondition(grid, api.ConditionFunctionsLoaded, metav1.ConditionFalse, reasonFunctionInvalid, "The pods are given: list")
	if now := b.args(grid); now != before {
		t.Errorf("pods have %q, had %q", now, before)
	}
	f := &api.GridFunction{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "list"}}
	b.must(b.client.Delete(t.Context(), f))
	b.must(b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "list"}}))
	b.run(grid)
	b.wantCondition(grid, api.ConditionFunctionsLoaded, metav1.ConditionFalse, reasonFunctionNotFound, "The pods are given: list")
	if now := b.args(grid); now != before || len(b.copies()) != 2 {
		t.Errorf("pods have %q, had %q; %d ConfigMaps", now, before, len(b.copies()))
	}
	if reqs := b.reconcile.gridsOfFunction(t.Context(), f); len(reqs) != 1 || reqs[0].Name != "rtd" {
		t.Errorf("a change of the function is for %v", reqs)
	}
}

// TestCopiesOfFunctions: the copy of a module is removed once all pods have the next one, and all of them when none is
// named any more.
func TestCopiesOfFunctions(t *testing.T) {
	b := newFunctionBench(t)
	b.define(api.FunctionPost, "audit", examples.AuditTrail)
	grid := b.create("rtd", api.OrderGridSpec{Callbacks: &api.CallbacksSpec{Post: []api.CallbackReference{{Name: "audit"}}}})
	b.run(grid)
	b.play(grid)
	b.run(grid)
	b.define(api.FunctionPost, "audit", examples.CountAccounts)
	b.run(grid)
	if n := len(b.copies()); n != 3 {
		t.Errorf("%d ConfigMaps while pods have the former module, want 3", n)
	}
	b.withArgs(grid)
	b.run(grid)
	if m := b.copies(); len(m) != 2 || !slices.Equal(m[0].BinaryData[keyModule], examples.CountAccounts) {
		t.Errorf("%d ConfigMaps once all pods have the next module, want 2", len(m))
	}
	grid.Spec.Callbacks = nil
	b.must(b.client.Update(t.Context(), grid))
	b.run(grid)
	if n := len(b.copies()); n != 2 {
		t.Errorf("%d ConfigMaps while pods have a function, want 2", n)
	}
	b.withArgs(grid)
	b.run(grid)
	if n := len(b.copies()); n != 0 || len(grid.Status.Functions) != 0 {
		t.Errorf("%d ConfigMaps without functions, want 0; status %+v", n, grid.Status.Functions)
	}
}

// withArgs plays the roll: every pod is made anew from the present template.
func (b *functionBench) withArgs(grid *api.OrderGrid) {
	b.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: api.ShardName(grid.Name, 0)}}
	b.get(set)
	var pods corev1.PodList
	b.must(b.client.List(b.t.Context(), &pods, client.InNamespace(b.namespace), client.MatchingLabels{api.LabelGrid: grid.Name}))
	for i := range pods.Items {
		b.must(b.client.Delete(b.t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)))
	}
	for ordinal := range grid.Spec.Replicas {
		b.startPod(grid, 0, ordinal)
	}
}

// TestFunctionStatus: status has in how many logs a function is in force, and from which entry on.
func TestFunctionStatus(t *testing.T) {
	o := calling()
	list := o.functionStatus(nil)
	if len(list) != 5 || list[4].Kind != api.FunctionCompute || list[4].Partitions != nil || list[0].Partitions != nil || list[2].Partitions == nil || int(*list[2].Partitions) != o.wantPartitions() {
		t.Errorf("%+v", list)
	}
	o.room = roomOf([]*nodestatus.Memory{
		{Pod: "rtd-s0-0", Posts: &nodestatus.Posts{InForce: []nodestatus.PostInForce{{Name: "audit-trail", SHA256: "e", Partitions: 1}}, Since: []nodestatus.PostsSince{{Partition: "p0", Entry: 7}}}},
		{Pod: "rtd-s0-1", Posts: &nodestatus.Posts{InForce: []nodestatus.PostInForce{{Name: "audit-trail", SHA256: "e", Partitions: 2}}, Waiting: []string{"p1"}}},
		{Pod: "rtd-s0-2"},
	}, 3)
	if p := o.room.posts; len(p.InForce) != 1 || p.InForce[0].Partitions != 3 || !o.room.unsettled() {
		t.Errorf("%+v", p)
	}
	partitions := []api.PartitionSummary{{Name: "rtd-p0"}, {Name: "rtd-p1", FunctionsEntry: 3}}
	o.tellFunctions(partitions)
	if partitions[0].FunctionsEntry != 7 || partitions[1].FunctionsEntry != 0 {
		t.Errorf("%+v", partitions)
	}
}

// TestComputeReachesPods: a function that clients call reaches the pods with the file of regions; one that is missing or of
// another kind is told, and keeps neither pods nor the other functions back.
func TestComputeReachesPods(t *testing.T) {
	b := newFunctionBench(t)
	b.define(api.FunctionPost, "audit", examples.AuditTrail)
	grid := b.create("rtd", api.OrderGridSpec{Regions: regionGrid().Spec.Regions, Callbacks: &api.CallbacksSpec{Compute: named("add", "audit")}})
	b.run(grid)
	b.wantCondition(grid, api.ConditionFunctionsLoaded, metav1.ConditionFalse, reasonFunctionNotFound, "there is no GridFunction add in namespace")
	b.wantCondition(grid, api.ConditionFunctionsLoaded, metav1.ConditionFalse, reasonFunctionNotFound, "GridFunction audit is of kind Post, and is named among those of kind Compute")
	if args := b.args(grid); args != "" || len(grid.Status.Functions) != 0 {
		t.Errorf("pods are given %q, status has %+v", args, grid.Status.Functions)
	}
	b.define(api.FunctionCompute, "add", examples.Add)
	b.run(grid)
	digest := fmt.Sprintf("%x", sha256.Sum256(examples.Add))
	if args, want := b.args(grid), "--function-compute add=/etc/ordergrid/functions/add.compute.wasm:sha256="+digest+",fuel=100000,memory=1024Ki"; args != want {
		t.Errorf("pods are given %q, want %q", args, want)
	}
	grid.Spec.Callbacks.Compute = named("add")
	b.must(b.client.Update(t.Context(), grid))
	b.run(grid)
	b.wantCondition(grid, api.ConditionFunctionsLoaded, metav1.ConditionFalse, reasonNotLoaded, "pods do not run with the functions of spec.callbacks")
	b.play(grid)
	b.run(grid)
	if f := grid.Status.Functions; len(f) != 1 || f[0].Name != "add" || f[0].Kind != api.FunctionCompute || f[0].SHA256 != digest {
		t.Errorf("status.functions %+v", f)
	}
	f := &api.GridFunction{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "add"}}
	_, err := b.functions.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)})
	b.must(err)
	if b.get(f); len(f.Status.Grids) != 1 || f.Status.Grids[0].Name != "rtd" || f.Status.Grids[0].SHA256 != digest || f.Status.Module == nil || f.Status.Module.Asks != "" {
		t.Errorf("the function's status is %+v", f.Status)
	}
	if reqs := b.reconcile.gridsOfFunction(t.Context(), f); len(reqs) != 1 || reqs[0].Name != "rtd" {
		t.Errorf("a change of the function is for %v", reqs)
	}
}
