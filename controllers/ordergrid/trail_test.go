package ordergrid

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestEveryWriteIsALogLine: every write of the operator to the cluster is logged, one line each, and nothing else is.
func TestEveryWriteIsALogLine(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	var lines []string
	log := funcr.New(func(_, args string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, args) }, funcr.Options{})
	ctx := ctrl.LoggerInto(t.Context(), log)
	grid := b.create("rtd", api.OrderGridSpec{})
	pass := func(what string) (writes []string) {
		b.writes.Forget()
		lines = nil
		if _, err := b.reconcile.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(grid)}); err != nil {
			t.Fatal(err)
		}
		var wrote []string
		for _, l := range lines {
			if strings.Contains(l, `"msg"="wrote"`) {
				wrote = append(wrote, l)
			}
		}
		writes = b.writes.All()
		if len(wrote) != len(writes) {
			t.Errorf("%s: %d lines about %d writes\n%s\n%s", what, len(wrote), len(writes), strings.Join(wrote, "\n"), strings.Join(writes, "\n"))
		}
		b.get(grid)
		return writes
	}
	if n := len(pass("a new grid")); n < 8 {
		t.Errorf("a new grid took %d writes: this test no longer sees them", n)
	}
	b.play(grid)
	pass("it serves")
	if n := len(pass("nothing to do")); n != 0 {
		t.Errorf("nothing to do took %d writes", n)
	}
	p := b.partition(grid, 0, 0)
	b.annotate(p, api.AnnotationPreferredPod, "absent")
	if n := len(pass("a request that is refused")); n == 0 {
		t.Error("a refused request took no write")
	}
	b.run(grid)
	b.wantHistory(grid, "PreferredPodRefused rtd-p0")
}

// wantHistory checks the decisions in status, without those of the grid's creation; each has a time, and requested ones
// the author.
func (b *bench) wantHistory(grid *api.OrderGrid, want ...string) {
	b.t.Helper()
	var got []string
	for _, e := range grid.Status.History {
		if e.Reason == eventShardCreated {
			continue
		}
		got = append(got, e.Reason+" "+e.About)
		if e.Time.IsZero() || e.Message == "" || e.Reason != eventNewLineage && !strings.Contains(e.By, " at 20") {
			b.t.Errorf("%+v", e)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		b.t.Errorf("history %q, want %q", got, want)
	}
}

// TestHistoryIsBounded: decisions about data survive routine ones.
func TestHistoryIsBounded(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	list := history(nil, []api.HistoryEntry{{Reason: eventShardRemoved, Message: "first"}, {Reason: eventAcceptingLoss, By: "kubectl-annotate"}}, now)
	for i := range 3 * api.MaxHistory {
		list = history(list, []api.HistoryEntry{{Reason: eventCopyAdded, Message: fmt.Sprint(i)}}, now)
	}
	if len(list) != api.MaxHistory || list[0].Reason != eventAcceptingLoss || list[len(list)-1].Message != fmt.Sprint(3*api.MaxHistory-1) {
		t.Errorf("%d entries, first %+v, last %+v", len(list), list[0], list[len(list)-1])
	}
}

// TestSetBy: the managed fields have who set an annotation.
func TestSetBy(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	fields := []metav1.ManagedFieldsEntry{
		{Manager: "ordergrid-operator", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}},
		{Manager: "kubectl-annotate", Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:annotations":{"f:ordergrid.dev/accept-data-loss":{}}}}`)}},
	}
	if got := setBy(fields, api.AnnotationAcceptDataLoss); got != "kubectl-annotate at 2026-01-02T03:04:05Z" {
		t.Error(got)
	}
	if got := setBy(fields, api.AnnotationReassert); got != "unknown" {
		t.Error(got)
	}
}
