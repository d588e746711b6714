package ordergrid

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
)

// TestGoldenObjects compares every object of fourteen grids with testdata/<grid>/<object>.yaml. For a grid with several
// shards it uses shard 1, so that numbers that should differ between shards do.
func TestGoldenObjects(t *testing.T) {
	for name, grid := range map[string]*api.OrderGrid{"pair": pairGrid(), "bank": bankGrid(), "single": singleGrid(), "fabric": fabricGrid(), "secured": securedGrid(), "external": externalGrid(), "sinks": sinkGrid(), "restored": restoredGrid(), "standby": standbyGrid(), "callbacks": callbackGrid(), "matching": matchingGrid(), "limited": limitedGrid(), "regions": regionGrid(), "journal": journalGrid()} {
		shard := min(1, grid.Spec.Shards-1)
		base := pod(grid, shard, testDefaults)
		if grid.Spec.Callbacks != nil {
			g := callbacksGiven()
			g.addTo(grid.Name, &base)
		}
		template, err := overlay(grid, base)
		if err != nil {
			t.Fatal(err)
		}
		objects := map[string]client.Object{
			"gridpartition":       recordOf(grid, shard, grid.Spec.Replicas-1),
			"serviceaccount":      serviceAccount(grid, shard),
			"role":                role(grid, shard),
			"rolebinding":         roleBinding(grid, shard),
			"headless_service":    headlessService(grid, shard),
			"client_service":      clientService(grid),
			"poddisruptionbudget": podDisruptionBudget(grid, shard, 0),
			"statefulset":         statefulSet(grid, shard, grid.Spec.Replicas, template),
		}
		sinks := grid.SinksWithPods()
		for i := range sinks {
			s := &sinks[i]
			objects["sink_"+s.Name+"_deployment"] = sinkDeployment(grid, s, testDefaults, 1)
			objects["sink_"+s.Name+"_serviceaccount"] = sinkServiceAccount(grid, s)
			objects["sink_"+s.Name+"_networkpolicy"] = sinkPolicy(grid, s)
			if job := sinkJob(grid, s, testDefaults); job != nil {
				objects["sink_"+s.Name+"_job"] = job
			}
		}
		if grid.Spec.RestoreFrom != nil {
			objects["restore_job"] = restoreJob(grid, testDefaults)
			objects["networkpolicy"] = networkPolicy(grid, policyDefaults)
		}
		if grid.Spec.ExternalAccess != nil {
			objects["external_service"] = externalService(grid, shard, api.PodName(grid.Name, shard, 1))
			objects["networkpolicy"] = networkPolicy(grid, policyDefaults)
		}
		for object, built := range objects {
			t.Run(name+"/"+object, func(t *testing.T) {
				golden.YAML(t, filepath.Join("testdata", name, object+".yaml"), built)
			})
		}
	}
}
