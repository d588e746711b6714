package memory_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
)

// TestRestoreStays: what a record is restored from is set when it is made.
func TestRestoreStays(t *testing.T) {
	s := memory.NewStore(map[string]arbiter.Spec{name: {Grid: "g", Replicas: 1, MinInSync: 1, Restore: &arbiter.Restore{Seq: 9, Hash: "00000000000000ff", Epoch: 6, Lineage: 2}}})
	for what, change := range map[string]func(*arbiter.Spec) error{
		"another":    func(sp *arbiter.Spec) error { sp.Restore = &arbiter.Restore{Seq: 8}; return nil },
		"in place":   func(sp *arbiter.Spec) error { sp.Restore.Seq = 8; return nil },
		"none":       func(sp *arbiter.Spec) error { sp.Restore = nil; return nil },
		"none after": func(sp *arbiter.Spec) error { sp.MinInSync, sp.Restore = 1, nil; return nil },
	} {
		if _, err := s.SetSpec(name, change); err == nil || !strings.Contains(err.Error(), "restore") {
			t.Errorf("%s: %v, want a refusal that names restore", what, err)
		}
		if r, err := s.Get(t.Context(), name); err != nil || r.Spec.Restore == nil || r.Spec.Restore.Seq != 9 {
			t.Fatalf("%s: the record has %+v, %v", what, r.Spec.Restore, err)
		}
	}
	if _, err := s.SetSpec(name, func(sp *arbiter.Spec) error { sp.PreferredPod = "g-s0-1"; return nil }); err != nil {
		t.Errorf("another field: %v", err)
	}
	_, _, url := serve(t)
	if code, text := send(t, http.MethodPut, url+"/v1/partitions/"+name+"/spec", `{"restore":{"seq":1,"hash":"00000000000000ff","epoch":1,"lineage":1}}`); code == http.StatusOK {
		t.Errorf("an existing record was given one: %d %s", code, text)
	}
}
