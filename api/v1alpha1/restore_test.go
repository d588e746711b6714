package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// restored creates an unclaimed partition with a recovery point.
func restored(t *testing.T) *api.GridPartition {
	t.Helper()
	cl := newClient(t)
	gp := &api.GridPartition{
		ObjectMeta: metav1.ObjectMeta{Name: "rtd-p0", Namespace: envtest.Namespace(t, cl, "restored-")},
		Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "rtd"}, Replicas: 2, MinInSync: 1, PreferredPod: "rtd-s0-0",
			Restore: &api.PartitionRestore{Seq: 9, Hash: "00000000000000ff", Epoch: 6, Lineage: 2}},
	}
	if err := cl.Create(t.Context(), gp); err != nil {
		t.Fatal(err)
	}
	return gp
}

// TestFirstClaimOfRestored: a record with a recovery point is claimed behind it, and at no other epoch: a node of a
// version that does not know spec.restore proposes epoch 1, and is refused.
func TestFirstClaimOfRestored(t *testing.T) {
	cl := newClient(t)
	for name, c := range map[string]struct {
		before  *api.GridPartitionStatus
		claim   api.GridPartitionStatus
		refused string
	}{
		"behind the recovery point":      {nil, config(7, 3, &a, a), ""},
		"behind it, after a status of 0": {&api.GridPartitionStatus{}, config(7, 3, &a, a), ""},
		"by a node that does not know":   {nil, config(1, 1, &a, a), "epoch 1 at the first claim: the partition is restored from an archive of epoch 6; propose epoch 7"},
		"by one, after a status of 0":    {&api.GridPartitionStatus{}, config(1, 1, &a, a), "restored from an archive of epoch 6; propose epoch 7"},
		"at the lineage of the archive":  {nil, config(7, 2, &a, a), "lineage 2 at the first claim: the partition is restored from an archive of lineage 2, and what that grid did behind it is given up; set lineage to 3"},
		"with a backup":                  {nil, config(7, 3, &a, a, b), "inSync has 2 members at the first claim"},
	} {
		t.Run(name, func(t *testing.T) {
			gp := restored(t)
			if c.before != nil {
				if err := put(t, cl, gp, *c.before); err != nil {
					t.Fatal(err)
				}
			}
			err := put(t, cl, gp, c.claim)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%v, want %q", err, c.refused)
			}
			if c.refused == "" {
				if err := put(t, cl, gp, config(8, 3, &a, a, b)); err != nil {
					t.Errorf("an admission after the claim: %v", err)
				}
			}
		})
	}
}

// TestRestoreStays: the recovery point of a record, and the archive of a grid, never change. The archive is removed once
// the grid is restored.
func TestRestoreStays(t *testing.T) {
	cl := newClient(t)
	for name, change := range map[string]func(*api.GridPartitionSpec){
		"another": func(s *api.GridPartitionSpec) { s.Restore.Seq = 8 },
		"none":    func(s *api.GridPartitionSpec) { s.Restore = nil },
	} {
		gp := restored(t)
		change(&gp.Spec)
		if err := cl.Update(t.Context(), gp); err == nil || !strings.Contains(err.Error(), "it is what the first claim of the record begins with and never changes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	namespace := envtest.Namespace(t, cl, "restored-")
	create := func(name string, from *api.RestoreSpec) *api.OrderGrid {
		g := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: api.OrderGridSpec{RestoreFrom: from, Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
		if err := cl.Create(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	bucket := func(name, prefix string) *api.RestoreSpec {
		return &api.RestoreSpec{Bucket: &api.ArchiveBucketSpec{Name: name, Prefix: prefix, CredentialsSecretName: "store"}}
	}
	refused := func(g *api.OrderGrid, want string) {
		t.Helper()
		if err := cl.Update(t.Context(), g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	g := create("late", nil)
	g.Spec.RestoreFrom = bucket("orders", "")
	refused(g, "a grid is restored when it is created, and this one runs; create another OrderGrid with restoreFrom")
	g = create("bucket", bucket("orders", "a"))
	g.Spec.RestoreFrom.Bucket.Prefix = "b"
	refused(g, "the archive is changed, and partitions may have begun with it")
	g = create("place", bucket("orders", "a"))
	g.Spec.RestoreFrom = &api.RestoreSpec{ClaimName: "archive"}
	refused(g, "the archive is changed, and partitions may have begun with it")
	g = create("secret", bucket("orders", "a"))
	g.Spec.RestoreFrom.Bucket.CredentialsSecretName = "rotated"
	if err := cl.Update(t.Context(), g); err != nil {
		t.Errorf("other credentials: %v", err)
	}
	g.Spec.RestoreFrom = nil
	refused(g, "removed, and not every partition is restored: those that are not would begin empty")
	g = create("done", bucket("orders", "a"))
	now := metav1.Now()
	g.Status.Restore = &api.RestoreStatus{CompletionTime: &now}
	if err := cl.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if g.Spec.RestoreFrom = nil; cl.Update(t.Context(), g) != nil {
		t.Error("the archive of a restored grid cannot be removed")
	}
}
