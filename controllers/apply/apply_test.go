package apply_test

import (
	"errors"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

func TestApply(t *testing.T) {
	cl := envtest.Client(t, envtest.Config(t))
	ctx := t.Context()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: "default"}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default"}}
	for _, o := range []client.Object{owner, other} {
		if err := cl.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	var writes []string
	applier := &apply.Applier{Client: cl, Live: cl, OnWrite: func(kind string, _ apply.Outcome) { writes = append(writes, kind) }}
	desired := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child", Namespace: "default", Labels: map[string]string{"l": "1"}}, Data: data}
	}
	step := func(data map[string]string, want apply.Outcome) {
		t.Helper()
		got, err := applier.Apply(ctx, owner, desired(data))
		if err != nil || got != want {
			t.Fatalf("outcome %v, error %v; want %v", got, err, want)
		}
	}
	live := &corev1.ConfigMap{}
	read := func() *corev1.ConfigMap {
		t.Helper()
		if err := cl.Get(ctx, client.ObjectKey{Namespace: "default", Name: "child"}, live); err != nil {
			t.Fatal(err)
		}
		return live
	}

	step(map[string]string{"a": "1", "b": "2"}, apply.Created)
	if ref := metav1.GetControllerOf(read()); ref == nil || ref.UID != owner.UID || ref.Kind != "ConfigMap" {
		t.Errorf("owner %+v", ref)
	}
	step(map[string]string{"a": "1", "b": "2"}, apply.Unchanged)
	// A field that is no longer desired is removed, although all desired fields are in place.
	step(map[string]string{"a": "1"}, apply.Updated)
	if _, there := read().Data["b"]; there {
		t.Error("b is still there")
	}
	// Fields added by others stay, and cost no write.
	read().Data["theirs"] = "x"
	if err := cl.Update(ctx, live); err != nil {
		t.Fatal(err)
	}
	step(map[string]string{"a": "1"}, apply.Unchanged)
	// Changes of our fields by others are reverted.
	read().Data["a"] = "wrong"
	if err := cl.Update(ctx, live); err != nil {
		t.Fatal(err)
	}
	step(map[string]string{"a": "1"}, apply.Updated)
	if d := read().Data; d["a"] != "1" || d["theirs"] != "x" {
		t.Errorf("data %v", d)
	}
	if len(writes) != 3 {
		t.Errorf("%d writes, want 3", len(writes))
	}

	// An object of another owner, or of none, is not changed.
	var foreign *apply.ForeignError
	if _, err := applier.Apply(ctx, other, desired(nil)); !errors.As(err, &foreign) || foreign.Owner != "ConfigMap/owner" {
		t.Errorf("applied over another owner's object: %v", err)
	}
	if _, err := applier.Apply(ctx, owner, other); !errors.As(err, &foreign) || foreign.Owner != "" {
		t.Errorf("applied over an object without owner: %v", err)
	}
	t.Log(foreign)
}
