package ordergrid

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/gridregion"
	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/internal/regionfile"
)

// Path of the regions in a grid node. The kubelet replaces the file when the ConfigMap changes, and the node reads it again:
// the primary of each partition puts a region, or its bounds, in an entry of its log.
const (
	regionsVolume = "regions"
	regionsDir    = "/etc/ordergrid/regions"
	regionsKey    = "regions.json"
	// regionsSourcedKey has the sources, which nodes of releases before refuse.
	regionsSourcedKey = regionsKey + limits.SourcedFile
)

// regionArgs are the flags of a grid node with regions. Their memory is one of them: it is planned when a node begins.
func regionArgs(grid *api.OrderGrid) []string {
	if grid.Spec.Regions == nil {
		return nil
	}
	return []string{"--regions", path.Join(regionsDir, regionsKey), "--regions-memory", grid.Spec.Regions.Memory.String()}
}

// regionsVolumeOf is the volume of a grid node.
func regionsVolumeOf(grid *api.OrderGrid) corev1.Volume {
	return corev1.Volume{Name: regionsVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: api.RegionsConfigMap(grid.Name)},
		DefaultMode:          ptr.To[int32](0o444),
	}}}
}

// regions is what a pass knows of spec.regions.
type regions struct {
	sha256  fileDigests       // of the files that the nodes are given
	n       int               // regions in it
	missing []string          // GridRegions that are named and do not exist
	invalid []string          // why GridRegions are not in the file
	begins  []*api.GridRegion // whose regions are of another GridRegion than before, or of none
}

// planRegions decides what the nodes are given: the regions that they take. found has those of spec.regions that exist, in the
// order of their names there. One that is not in the file keeps its entries and the bounds that the logs have. before is the file
// with sources that they have been given, "" for none.
func planRegions(before string, grid *api.OrderGrid, found []*api.GridRegion, now time.Time) (f *regionfile.File, s regions) {
	given, err := regionfile.Parse([]byte(before))
	if err != nil { // it was edited
		given = &regionfile.File{}
	}
	f = &regionfile.File{}
	of := map[string]string{} // GridRegion by region
	for _, name := range grid.Spec.Regions.Names() {
		at := slices.IndexFunc(found, func(g *api.GridRegion) bool { return g.Name == name })
		if at < 0 {
			s.missing = append(s.missing, name)
			continue
		}
		x := gridregion.Of(found[at])
		switch err := region.CheckSpecs([]region.Spec{{Name: x.Name, MaxBytes: x.MaxBytes, LifeNs: int64(x.Life)}}); {
		case err != nil:
			s.invalid = append(s.invalid, fmt.Sprintf("GridRegion %s: %v", name, err))
		case of[x.Name] != "":
			s.invalid = append(s.invalid, fmt.Sprintf("GridRegion %s: it is region %s, as GridRegion %s is: take one of them out of spec.regions.gridRegions", name, x.Name, of[x.Name]))
		default:
			of[x.Name] = name
			x, begins := sourcedRegion(given, grid, found[at], x, now)
			if f.Regions = append(f.Regions, x); begins {
				s.begins = append(s.begins, found[at])
			}
		}
	}
	s.n = len(f.Regions)
	s.sha256 = (&sourcedFiles{sourced: f.Text(), plain: f.Plain().Text()}).digests()
	return f, s
}

// sourcedRegion is a region with its source, and whether that is the beginning of one. given is what the nodes have.
func sourcedRegion(given *regionfile.File, grid *api.OrderGrid, g *api.GridRegion, x regionfile.Region, now time.Time) (_ regionfile.Region, begins bool) {
	before := regionfile.Region{}
	if at := slices.IndexFunc(given.Regions, func(r regionfile.Region) bool { return r.Name == x.Name }); at >= 0 {
		before = given.Regions[at]
	}
	if isOlder(g, before.Source) {
		return before, false
	}
	x.Source = before.Source
	x.Source = sourceAfter(before.Source, grid, g, now, x == before)
	return x, before.Source == nil || x.Source.SinceMs != before.Source.SinceMs
}

// applyRegions keeps the ConfigMap that the nodes mount.
func (r *run) applyRegions(ctx context.Context) error {
	if r.grid.Spec.Regions == nil {
		return nil
	}
	var given corev1.ConfigMap
	key := client.ObjectKey{Namespace: r.grid.Namespace, Name: api.RegionsConfigMap(r.grid.Name)}
	if err := r.Live.Get(ctx, key, &given); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read ConfigMap %s: %w", key.Name, err)
	}
	var found []*api.GridRegion
	for _, name := range r.grid.Spec.Regions.Names() {
		g := &api.GridRegion{}
		switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.grid.Namespace, Name: name}, g); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read GridRegion %s: %w", name, err)
		default:
			found = append(found, g)
		}
	}
	before := given.Data[regionsSourcedKey]
	file, plan := planRegions(before, r.grid, found, r.Clock.Now())
	for _, g := range plan.begins {
		if err := r.reread(ctx, g, func(grid *api.OrderGrid) bool { return slices.Contains(grid.Spec.Regions.Names(), g.Name) }); err != nil {
			return err
		}
	}
	if len(plan.begins) > 0 {
		file, plan = planRegions(before, r.grid, found, r.Clock.Now())
	}
	r.regions = &plan
	objectMeta := gridMeta(r.grid, key.Name)
	objectMeta.ResourceVersion = given.ResourceVersion // what an earlier leader writes does not take the place of it
	_, err := r.applier.Apply(ctx, r.grid, &corev1.ConfigMap{ObjectMeta: objectMeta, Data: map[string]string{regionsKey: file.Plain().Text(), regionsSourcedKey: file.Text()}})
	return err
}

// gridsOfRegion maps a GridRegion to the grids that name it.
func (r *Reconciler) gridsOfRegion(ctx context.Context, g client.Object) (all []reconcile.Request) {
	var grids api.OrderGridList
	if err := r.Client.List(ctx, &grids, client.InNamespace(g.GetNamespace())); err != nil {
		return nil // from the cache: it does not fail
	}
	for i := range grids.Items {
		if grid := &grids.Items[i]; slices.Contains(grid.Spec.Regions.Names(), g.GetName()) {
			all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: grid.Namespace, Name: grid.Name}})
		}
	}
	return all
}
