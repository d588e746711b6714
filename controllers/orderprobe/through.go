package orderprobe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// gatewayMiB is the memory of an order-gateway in the pod of a probe, with up to 64 sessions.
const gatewayMiB = 128

// addGateway gives a pod whose orders go through FIX sessions what the order-gateway in it takes: memory, and a place for
// the file of the sessions. The sandbox of the pod reaps it, as processes of grids of its own.
func addGateway(probe *api.OrderProbe, plan scenario.Plan, spec *corev1.PodSpec) {
	if probe.Spec.Through != api.ThroughFIX {
		return
	}
	spec.ShareProcessNamespace = ptr.To(true)
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: scratchVolume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(16<<20, resource.BinarySI)}}})
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: scratchVolume, MountPath: scratchMount})
	if probe.Spec.Resources == nil {
		c.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(memory(plan)+gatewayMiB<<20, resource.BinarySI)
	}
}

// notThrough is why orders cannot go through FIX sessions; empty if they can, or need not.
func notThrough(probe *api.OrderProbe, grid *api.OrderGrid) string {
	if probe.Spec.Through != api.ThroughFIX || !grid.Spec.Security.Enforced() {
		return ""
	}
	return fmt.Sprintf("through FIX needs the permission Gateway, which probes do not have, and OrderGrid %s enforces spec.security.authorization; set spec.through to Native, "+
		"or run order-probe --through fix before an OrderGateway of the grid", grid.Name)
}
