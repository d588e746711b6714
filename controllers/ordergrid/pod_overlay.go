package ordergrid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// nodeOverhead is what a grid node needs in addition to its orders, as in the validation of spec.resources.
var nodeOverhead = resource.MustParse("256Mi")

// OverlayError names the part of spec.podTemplate that cannot be applied to the pod, and the remedy.
type OverlayError struct {
	Field, Problem, Remedy string
}

func (e *OverlayError) Error() string {
	return fmt.Sprintf("spec.podTemplate%s: %s; %s", e.Field, e.Problem, e.Remedy)
}

// overlay applies spec.podTemplate to the pod the operator built, as a strategic merge patch, and refuses what would
// break the grid. The error is an *OverlayError.
func overlay(grid *api.OrderGrid, built corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	patch := grid.Spec.PodTemplate
	if patch == nil || len(bytes.TrimSpace(patch.Raw)) == 0 {
		return built, nil
	}
	if err := strict(patch); err != nil {
		return built, err
	}
	original, err := json.Marshal(built)
	if err != nil {
		return built, err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch.Raw, corev1.PodTemplateSpec{})
	if err != nil {
		return built, &OverlayError{"", err.Error(), "write it in the form of a v1 PodTemplateSpec: metadata and spec"}
	}
	var result corev1.PodTemplateSpec
	if err := json.Unmarshal(merged, &result); err != nil {
		return built, &OverlayError{"", err.Error(), "write it in the form of a v1 PodTemplateSpec: metadata and spec"}
	}
	for _, rule := range overlayRules {
		if err := rule(grid, &built, &result); err != nil {
			return built, err
		}
	}
	return result, nil
}

// strict refuses unknown fields, which a merge would drop silently.
func strict(patch *runtime.RawExtension) error {
	var content any
	if err := json.Unmarshal(patch.Raw, &content); err != nil {
		return &OverlayError{"", err.Error(), "write it as a YAML or JSON object"}
	}
	data, err := json.Marshal(withoutDirectives(content))
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&corev1.PodTemplateSpec{}); err != nil {
		return &OverlayError{"", strings.TrimPrefix(err.Error(), "json: "),
			"compare it with `kubectl explain pod.spec`; podTemplate has metadata and spec"}
	}
	return nil
}

// withoutDirectives drops the $patch and $setElementOrder keys of a strategic merge patch, which are not fields.
func withoutDirectives(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			if !strings.HasPrefix(k, "$") {
				out[k] = withoutDirectives(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutDirectives(item)
		}
		return out
	}
	return v
}

type overlayRule func(grid *api.OrderGrid, built, result *corev1.PodTemplateSpec) error

// overlayRules are what a grid node depends on. The first violation is reported.
var overlayRules = []overlayRule{keepLabels, keepIdentity, keepContainer, keepArgs, keepEnv, keepPorts, keepProbes, keepMounts, keepMemory, keepGuaranteed, keepFabric, keepStopTime}

func keepLabels(_ *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	for key, want := range built.Labels {
		if got := result.Labels[key]; got != want {
			return &OverlayError{".metadata.labels[" + key + "]", fmt.Sprintf("%q would replace %q, by which Services and the operator find the pod", got, want),
				"remove it, or use another label"}
		}
	}
	return nil
}

func keepIdentity(_ *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	if got, want := result.Spec.ServiceAccountName, built.Spec.ServiceAccountName; got != want {
		return &OverlayError{".spec.serviceAccountName", fmt.Sprintf("%q would replace %q, which alone may change this shard's partitions", got, want),
			"remove it; bind further roles to " + want}
	}
	if mount := result.Spec.AutomountServiceAccountToken; mount == nil || !*mount {
		return &OverlayError{".spec.automountServiceAccountToken", "false would leave the grid node without access to its partitions", "remove it"}
	}
	return nil
}

func keepContainer(_ *api.OrderGrid, _, result *corev1.PodTemplateSpec) error {
	if gridNode(result) == nil {
		return &OverlayError{".spec.containers", "the container " + containerName + " is removed", "remove the $patch directive that deletes or replaces it"}
	}
	return nil
}

func keepArgs(_ *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	got, want := gridNode(result), gridNode(built)
	const field = ".spec.containers[" + containerName + "]"
	if len(got.Command) > 0 {
		return &OverlayError{field + ".command", fmt.Sprintf("%q would run instead of the grid node", got.Command), "remove it; use spec.image for another build"}
	}
	if !reflect.DeepEqual(got.Args, want.Args) {
		return &OverlayError{field + ".args", "would replace the arguments the operator derives from spec", "remove it; set the fields of spec instead"}
	}
	if got.Image != want.Image {
		return &OverlayError{field + ".image", fmt.Sprintf("%q would replace %q", got.Image, want.Image), "remove it; set spec.image"}
	}
	return nil
}

func keepEnv(_ *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	for _, want := range gridNode(built).Env {
		if !containsEqual(gridNode(result).Env, want) {
			return &OverlayError{".spec.containers[" + containerName + "].env[" + want.Name + "]", "would replace the value the arguments refer to",
				"remove it, or use another name"}
		}
	}
	return nil
}

func keepPorts(_ *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	for _, want := range gridNode(built).Ports {
		// A host port may be added to a port, its number and name may not change.
		found := false
		for _, got := range gridNode(result).Ports {
			found = found || got.Name == want.Name && got.ContainerPort == want.ContainerPort && got.Protocol == want.Protocol
		}
		if !found {
			return &OverlayError{".spec.containers[" + containerName + "].ports", fmt.Sprintf("port %s (%d) is missing or renamed", want.Name, want.ContainerPort),
				"leave it as it is; other ports may be added"}
		}
	}
	return nil
}

func keepProbes(_ *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	got, want := gridNode(result), gridNode(built)
	for _, probe := range []struct {
		name      string
		got, want *corev1.Probe
	}{
		{"livenessProbe", got.LivenessProbe, want.LivenessProbe},
		{"readinessProbe", got.ReadinessProbe, want.ReadinessProbe},
	} {
		if probe.got == nil || !reflect.DeepEqual(probe.got.ProbeHandler, probe.want.ProbeHandler) {
			return &OverlayError{".spec.containers[" + containerName + "]." + probe.name,
				"would no longer ask " + probe.want.HTTPGet.Path + ", by which the operator and the PodDisruptionBudget see whether the pod is in sync",
				"change periods and thresholds only"}
		}
	}
	return nil
}

func keepMounts(_ *api.OrderGrid, built, result *corev1.PodTemplateSpec) error {
	for _, want := range gridNode(built).VolumeMounts {
		if !containsEqual(gridNode(result).VolumeMounts, want) {
			return &OverlayError{".spec.containers[" + containerName + "].volumeMounts[" + want.MountPath + "]", "would replace a volume that the grid node depends on",
				"remove it; spec.sinks and spec.fabric configure the volumes"}
		}
	}
	return nil
}

func keepMemory(grid *api.OrderGrid, _, result *corev1.PodTemplateSpec) error {
	limit, ok := gridNode(result).Resources.Limits[corev1.ResourceMemory]
	least := grid.Spec.Memory.DeepCopy()
	least.Add(nodeOverhead)
	if ok && limit.Cmp(least) < 0 {
		return &OverlayError{".spec.containers[" + containerName + "].resources.limits.memory",
			fmt.Sprintf("%s leaves less than %s beside the %s of spec.memory, and the node would be killed when it is full", limit.String(), nodeOverhead.String(), grid.Spec.Memory.String()),
			"give at least " + least.String() + ", or lower spec.memory"}
	}
	return nil
}

func keepStopTime(grid *api.OrderGrid, _, result *corev1.PodTemplateSpec) error {
	drain := grid.Spec.Timing.DrainTimeout.Duration
	seconds := result.Spec.TerminationGracePeriodSeconds
	if seconds == nil || time.Duration(*seconds)*time.Second <= drain {
		var given int64
		if seconds != nil {
			given = *seconds
		}
		return &OverlayError{".spec.terminationGracePeriodSeconds", fmt.Sprintf("%d is not more than spec.timing.drainTimeout %s, so the pod would be killed while it drains", given, drain),
			fmt.Sprintf("set at least %d, or remove it", int64((drain+time.Second)/time.Second))}
	}
	return nil
}

func gridNode(template *corev1.PodTemplateSpec) *corev1.Container {
	for i := range template.Spec.Containers {
		if template.Spec.Containers[i].Name == containerName {
			return &template.Spec.Containers[i]
		}
	}
	return nil
}

func containsEqual[T any](list []T, want T) bool {
	for _, got := range list {
		if reflect.DeepEqual(got, want) {
			return true
		}
	}
	return false
}
