package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestJournalIsFixed: a grid has its journal from the beginning, as it is, or none.
func TestJournalIsFixed(t *testing.T) {
	cl := newClient(t)
	of := func(size string) *api.JournalSpec { return &api.JournalSpec{Size: resource.MustParse(size)} }
	const changed = "spec.journal: Invalid value: changed; the PersistentVolumeClaims belong to the running pods, and either all copies have a journal or none; keep it as it was, or create a second OrderGrid and move the traffic"
	for name, c := range map[string]struct {
		before, after *api.JournalSpec
		want          string
	}{
		"added":         {nil, of("2Gi"), changed},
		"removed":       {of("2Gi"), nil, changed},
		"larger":        {of("2Gi"), of("4Gi"), changed},
		"another class": {of("2Gi"), &api.JournalSpec{Size: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}, changed},
		"the same":      {of("2Gi"), of("2Gi"), ""},
		"none":          {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			grid := createGrid(t, cl, api.OrderGridSpec{Journal: c.before})
			grid.Spec.Journal, grid.Spec.MinInSync = c.after, 2
			checkRefusal(t, cl.Update(t.Context(), grid), c.want)
		})
	}
}

func TestJournalMaxBytes(t *testing.T) {
	j := &api.JournalSpec{Size: resource.MustParse("512Mi")}
	if n := j.MaxBytes(); n != 480<<20 {
		t.Errorf("%d bytes of 512Mi, want 15/16", n)
	}
}
