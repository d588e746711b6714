package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// AttachNetwork puts pods that submit orders on the network of the grid, where it has one of its own: its grid nodes
// use addresses there. The device, if the network has devices, is given to the first container.
func AttachNetwork(template *corev1.PodTemplateSpec, grid *api.OrderGrid) {
	if grid == nil || grid.Spec.Fabric == nil {
		return
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[api.AnnotationNetworks] = NetworkOf(grid).Annotation()
	name := corev1.ResourceName(grid.Spec.Fabric.ResourceName)
	if name == "" {
		return
	}
	r := &template.Spec.Containers[0].Resources
	for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
		mine := maps.Clone(*list) // it may belong to an object in the cache
		if mine == nil {
			mine = corev1.ResourceList{}
		}
		mine[name] = resource.MustParse("1")
		*list = mine
	}
}
