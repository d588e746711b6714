package ordergrid

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// resources are the user's, with defaults: memory for the orders and views, plus a quarter and at least 256Mi for everything
// else; whole processors if they are exclusive; the device of the fabric.
func resources(grid *api.OrderGrid) corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	if grid.Spec.Resources != nil {
		r = *grid.Spec.Resources.DeepCopy()
	}
	needed := nodeMemory(grid)
	orders := needed.Value()
	memory := *resource.NewQuantity(orders+max(orders/4, 256<<20), resource.BinarySI)
	exclusive := grid.Spec.Placement.CPU.Policy == api.CPUExclusive
	if limit, ok := r.Limits[corev1.ResourceMemory]; ok {
		memory = limit
	} else {
		if request, ok := r.Requests[corev1.ResourceMemory]; ok && exclusive {
			memory = request
		}
		r.Limits = with(r.Limits, corev1.ResourceMemory, memory)
	}
	if _, ok := r.Requests[corev1.ResourceMemory]; !ok {
		r.Requests = with(r.Requests, corev1.ResourceMemory, memory)
	}
	if exclusive {
		// The only form of a pod that the kubelet's CPU manager gives exclusive processors.
		cores := *resource.NewQuantity(int64(grid.Spec.Placement.CPU.Cores), resource.DecimalSI)
		r.Requests, r.Limits = with(r.Requests, corev1.ResourceCPU, cores), with(r.Limits, corev1.ResourceCPU, cores)
	}
	if _, ok := r.Requests[corev1.ResourceCPU]; !ok {
		cpu := resource.MustParse("100m")
		if limit, ok := r.Limits[corev1.ResourceCPU]; ok {
			cpu = limit
		}
		r.Requests = with(r.Requests, corev1.ResourceCPU, cpu)
	}
	if f := grid.Spec.Fabric; f != nil && f.ResourceName != "" {
		// One for the fabric, in addition to what the user requests from the same device plugin.
		name := corev1.ResourceName(f.ResourceName)
		devices := resource.MustParse("1")
		devices.Add(r.Limits[name])
		r.Requests, r.Limits = with(r.Requests, name, devices), with(r.Limits, name, devices)
	}
	return r
}

func with(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[name] = q
	return list
}
