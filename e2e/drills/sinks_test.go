//go:build e2e

package drills

import (
	"context"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/kube"
)

// mostCopies of a grid here.
const mostCopies = 3

func sinks() kube.SharedVolumes {
	v := kube.SharedVolumes{Namespace: namespace, Class: "ordergrid-drills", Folder: kube.BesideState("drill-sinks")}
	for i := range int32(mostCopies) {
		v.Pods = append(v.Pods, api.PodName(grid, 0, i))
	}
	return v
}

// layVolumes makes empty volumes for the pods of the grid.
func (f *field) layVolumes(ctx context.Context) {
	f.Helper()
	if err := f.Kube.LayVolumes(ctx, sinks()); err != nil {
		f.Fatal(err)
	}
}

func (f *field) removeVolumes(ctx context.Context) {
	f.Helper()
	if err := f.Kube.RemoveVolumes(ctx, sinks()); err != nil {
		f.Fatal(err)
	}
}
