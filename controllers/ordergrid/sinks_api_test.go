package ordergrid

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestSinksOfARunningGrid: a grid with writeBehind changes to spec.sinks without another template of its pods; a sink
// is added to it and removed again, which a restarted operator still knows.
func TestSinksOfARunningGrid(t *testing.T) {
	b := newBench(t)
	file := &api.FileSinkSpec{Volume: api.SinkVolumeClaim}
	grid := b.create("rtd", api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindFile, File: file}})
	b.run(grid)
	b.play(grid)
	b.run(grid)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: api.ShardName("rtd", 0), Namespace: b.namespace}}
	sinks := func() string {
		b.get(set)
		args := set.Spec.Template.Spec.Containers[0].Args
		at := slices.Index(args, "--sink")
		return strings.Join(args[at:], " ")
	}
	update := func(change func(*api.OrderGridSpec)) {
		t.Helper()
		change(&grid.Spec)
		if err := b.client.Update(t.Context(), grid); err != nil {
			t.Fatal(err)
		}
		b.run(grid)
	}
	want := func(args, names string, removed ...string) {
		t.Helper()
		if got := sinks(); got != args {
			t.Errorf("arguments %s, want %s", got, args)
		}
		if grid.Status.SinkNames != names || !slices.Equal(grid.Status.RemovedSinks, removed) {
			t.Errorf("status has sinks %q, removed %v; want %q, %v", grid.Status.SinkNames, grid.Status.RemovedSinks, names, removed)
		}
	}
	const before = "--sink file --sink-dir /var/lib/ordergrid/sink"
	want(before, "file")
	generation := set.Generation

	update(func(s *api.OrderGridSpec) {
		s.WriteBehind, s.Sinks = api.WriteBehindSpec{}, []api.SinkSpec{{Name: "file", Type: api.SinkFile, File: file}}
	})
	want(before, "file")
	if set.Generation != generation {
		t.Errorf("the StatefulSet was changed: generation %d, was %d", set.Generation, generation)
	}

	update(func(s *api.OrderGridSpec) { s.Sinks = append(s.Sinks, api.SinkSpec{Name: "audit", Type: api.SinkFile}) })
	want(before+" --file-sink audit=/var/lib/ordergrid/sinks/audit", "audit,file")
	update(func(s *api.OrderGridSpec) { s.Sinks = s.Sinks[:1] })
	want(before+" --removed-sink audit", "file", "audit")
	b.run(grid)
	want(before+" --removed-sink audit", "file", "audit")
}
