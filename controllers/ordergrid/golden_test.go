package ordergrid

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGoldenObjects compares every object of three grids with testdata/<grid>/<object>.yaml. Of a grid with several
// shards it is shard 1, so that numbers that should differ between shards do.
func TestGoldenObjects(t *testing.T) {
	for name, grid := range map[string]*api.OrderGrid{"pair": pairGrid(), "bank": bankGrid(), "single": singleGrid()} {
		shard := min(1, grid.Spec.Shards-1)
		template, err := overlay(grid, pod(grid, shard, testDefaults))
		if err != nil {
			t.Fatal(err)
		}
		for object, built := range map[string]client.Object{
			"gridpartition":       partition(grid, shard, grid.Spec.Replicas-1),
			"serviceaccount":      serviceAccount(grid, shard),
			"role":                role(grid, shard),
			"rolebinding":         roleBinding(grid, shard),
			"headless_service":    headlessService(grid, shard),
			"client_service":      clientService(grid),
			"poddisruptionbudget": podDisruptionBudget(grid, shard),
			"statefulset":         statefulSet(grid, shard, template),
		} {
			t.Run(name+"/"+object, func(t *testing.T) {
				golden(t, filepath.Join("testdata", name, object+".yaml"), built)
			})
		}
	}
}

func golden(t *testing.T, file string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test ./controllers/ordergrid -update and review the difference", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test ./controllers/ordergrid -update and review the difference\n%s", file, got)
	}
}
