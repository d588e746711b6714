package ordergrid

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// The volume with the pod's Multus annotations for the grid node. An environment variable would work only if Multus
// wrote before the kubelet read.
const (
	fabricVolume     = "fabric"
	fabricDir        = "/etc/ordergrid/fabric"
	fabricStatusFile = "network-status"
)

func networkStatusVolume() corev1.Volume {
	return corev1.Volume{Name: fabricVolume, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{
			Path:     fabricStatusFile,
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + api.AnnotationNetworkStatus + "']"},
		}},
	}}}
}

// fabricArgs make a grid node find its address on the fabric before it registers anywhere.
func fabricArgs(grid *api.OrderGrid) []string {
	f := grid.Spec.Fabric
	fallback := "refuse"
	if f.Fallback == api.FallbackPodNetwork {
		fallback = "pod-network"
	}
	return []string{
		"--fabric-network", objects.NetworkName(grid),
		"--fabric-interface", f.Interface,
		"--fabric-network-status", path.Join(fabricDir, fabricStatusFile),
		"--fabric-fallback", fallback,
		"--fabric-transport", strings.ToLower(string(f.Transport)),
	}
}

// keepFabric: further networks may be added, the fabric must stay as in spec.fabric.
func keepFabric(grid *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	want, got := built.Annotations[api.AnnotationNetworks], result.Annotations[api.AnnotationNetworks]
	switch {
	case grid.Spec.Fabric == nil:
		return nil
	case result.Spec.HostNetwork:
		return &OverlayError{".spec.hostNetwork", "true leaves the pod on its host's network, where Multus adds none", "remove it, or spec.fabric"}
	case got == want:
		return nil
	}
	field := ".metadata.annotations[" + api.AnnotationNetworks + "]"
	element := strings.TrimSuffix(strings.TrimPrefix(want, "["), "]")
	var asked []objects.NetworkRequest
	if err := json.Unmarshal([]byte(got), &asked); err != nil {
		return &OverlayError{field, fmt.Sprintf("%q is not a JSON list, in which the fabric could stand beside other networks", got), "write it as [" + element + `, {"name":"another"}]`}
	}
	for _, r := range asked {
		if r == objects.NetworkOf(grid) {
			return nil
		}
	}
	return &OverlayError{field, fmt.Sprintf("%s is without the network of spec.fabric", got), "add " + element + " to it"}
}

// keepGuaranteed: one container whose requests differ from its limits costs the whole pod its exclusive processors.
func keepGuaranteed(grid *api.OrderGrid, _, result *corev1.PodTemplateSpec) error {
	if grid.Spec.Placement.CPU.Policy != api.CPUExclusive {
		return nil
	}
	lists := [][]corev1.Container{result.Spec.InitContainers, result.Spec.Containers}
	names := []string{"initContainers", "containers"}
	for i, list := range lists {
		for _, c := range list {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, limited := c.Resources.Limits[name]
				request, asked := c.Resources.Requests[name]
				if !limited || asked && request.Cmp(limit) != 0 {
					return &OverlayError{fmt.Sprintf(".spec.%s[%s].resources.%s", names[i], c.Name, name),
						"without a limit that is its request the pod is not Guaranteed, and none of its containers gets processors of its own (spec.placement.cpu.policy Exclusive)",
						"give limits for cpu and memory, and the same requests or none"}
				}
			}
		}
	}
	return nil
}
