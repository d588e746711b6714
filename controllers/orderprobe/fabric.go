package orderprobe

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/networks"
)

// onFabric puts the probes on the network of the grid they submit orders to, where it has one of its own: its grid nodes
// are reached by their addresses there.
func onFabric(job *batchv1.Job, grid *api.OrderGrid) *batchv1.Job {
	if grid == nil || grid.Spec.Fabric == nil {
		return job
	}
	template := &job.Spec.Template
	template.Annotations[api.AnnotationNetworks] = networks.Of(grid).Annotation()
	if name := corev1.ResourceName(grid.Spec.Fabric.ResourceName); name != "" {
		r := &template.Spec.Containers[0].Resources
		one := resource.MustParse("1")
		for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = one
		}
	}
	return job
}
