package inject

import (
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// chaosGroup is Chaos Mesh's API. Its Go types are not used: they would add its dependencies to the operator, and a
// drill needs a dozen fields that its CRDs validate anyway.
var chaosGroup = schema.GroupVersion{Group: "chaos-mesh.org", Version: "v1alpha1"}

// Kinds of Chaos Mesh that a drill creates.
const (
	kindPod     = "PodChaos"
	kindNetwork = "NetworkChaos"
	kindTime    = "TimeChaos"
	kindStress  = "StressChaos"
	kindIO      = "IOChaos"
)

var chaosKinds = []string{kindPod, kindNetwork, kindTime, kindStress, kindIO}

// gridContainer is the container of a grid's pod that faults go to.
const gridContainer = "grid-node"

// surroundings is what a fault's objects depend on besides the fault.
type surroundings struct {
	planes    map[string]Plane // of pods and peers, by name
	apiServer []string         // "ip" of the Service, "ip:port" of its endpoints
	volume    string           // where the file sink is mounted; empty: there is none
}

// object is a part of a fault: one object of Chaos Mesh.
type object struct {
	kind string
	part string // distinguishes the objects of one fault; empty if there is one only
	spec map[string]any
}

// chaosObjects are the objects of a fault, deterministic for the same fault.
func chaosObjects(f *Fault, s *surroundings) ([]*unstructured.Unstructured, error) {
	parts, err := chaosParts(f, s)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(parts))
	for _, p := range parts {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": p.spec}}
		o.SetGroupVersionKind(chaosGroup.WithKind(p.kind))
		o.SetNamespace(f.Drill.Namespace)
		o.SetName(f.name())
		if p.part != "" {
			o.SetName(f.name() + "-" + p.part)
		}
		o.SetLabels(f.Drill.labels())
		o.SetOwnerReferences(f.Drill.owner())
		out = append(out, o)
	}
	return out, nil
}

func chaosParts(f *Fault, s *surroundings) ([]object, error) {
	if len(f.Pods) == 0 {
		return nil, permanent("%s hits no pod", f.Spec.Type)
	}
	if parts := faultTypes[f.Spec.Type].parts; parts != nil {
		return parts(f, s)
	}
	return nil, permanent("Chaos Mesh has no fault %s", f.Spec.Type)
}

func podParts(f *Fault, _ *surroundings) ([]object, error) {
	spec := map[string]any{"action": faultTypes[f.Spec.Type].chaos.Action}
	switch f.Spec.Type {
	case api.FaultContainerKill:
		return one(kindPod, ofContainer(f.Pods, spec)), nil
	case api.FaultPodKill:
		spec["gracePeriod"] = int64(0)
	default:
		spec["duration"] = lasting(f)
	}
	return one(kindPod, selecting(f.Pods, spec)), nil
}

func one(kind string, spec map[string]any) []object { return []object{{kind: kind, spec: spec}} }

// selecting adds the selection of exactly these pods.
func selecting(pods []corev1.Pod, spec map[string]any) map[string]any {
	for k, v := range selector(pods) {
		spec[k] = v
	}
	return spec
}

// ofContainer adds the selection of the grid node's container in exactly these pods.
func ofContainer(pods []corev1.Pod, spec map[string]any) map[string]any {
	spec["containerNames"] = []any{gridContainer}
	return selecting(pods, spec)
}

// selector names pods one by one: a label would also select a later pod.
func selector(pods []corev1.Pod) map[string]any {
	byNamespace := map[string]any{}
	for i := range pods {
		names, _ := byNamespace[pods[i].Namespace].([]any)
		byNamespace[pods[i].Namespace] = append(names, pods[i].Name)
	}
	return map[string]any{"mode": "all", "selector": map[string]any{"pods": byNamespace}}
}

// lasting is the duration of an object: Chaos Mesh counts from its creation.
func lasting(f *Fault) string { return (f.Duration + Margin).String() }

func clockParts(f *Fault, _ *surroundings) ([]object, error) {
	p := f.Spec.Clock
	if p == nil || p.Offset.Duration == 0 {
		return nil, permanent("ClockSkew: clock.offset is 0s, which shifts nothing; give an offset such as 30s or -5m")
	}
	spec := ofContainer(f.Pods, map[string]any{"timeOffset": p.Offset.Duration.String(), "duration": lasting(f)})
	ids := []any{}
	for _, c := range p.Clocks {
		ids = append(ids, "CLOCK_"+strings.ToUpper(string(c)))
	}
	if len(ids) > 0 {
		spec["clockIds"] = ids
	}
	return one(kindTime, spec), nil
}

func stressParts(f *Fault, _ *surroundings) ([]object, error) {
	p := f.Spec.Stress
	stressors := map[string]any{}
	switch {
	case f.Spec.Type == api.FaultCPUStress && p != nil && p.CPUWorkers != nil:
		load, err := wholePercent("stress.cpuLoad", p.CPULoad)
		if err != nil {
			return nil, err
		}
		stressors["cpu"] = map[string]any{"workers": int64(*p.CPUWorkers), "load": load}
	case f.Spec.Type == api.FaultMemoryStress && p != nil && p.Memory.Value() > 0:
		stressors["memory"] = map[string]any{"workers": int64(1), "size": strconv.FormatInt((p.Memory.Value()+(1<<20)-1)>>20, 10) + "MB"}
	default:
		return nil, permanent("%s: neither stress.cpuWorkers nor stress.memory is set; give cpuWorkers: 2 or memory: 256Mi", f.Spec.Type)
	}
	return one(kindStress, ofContainer(f.Pods, map[string]any{"stressors": stressors, "duration": lasting(f)})), nil
}

func ioParts(f *Fault, s *surroundings) ([]object, error) {
	p := f.Spec.IO
	if s.volume == "" {
		return nil, permanent("%s: the pods of grid %s have no volume for a sink; name a grid with a sink of type File, or leave the fault out", f.Spec.Type, f.Grid.Name)
	}
	if p == nil {
		return nil, permanent("%s: io is not given", f.Spec.Type)
	}
	percent, err := wholePercent("io.percent", p.Percent)
	if err != nil {
		return nil, err
	}
	files := "**/*"
	if p.Path != "" {
		files = p.Path
	}
	spec := ofContainer(f.Pods, map[string]any{
		"action": faultTypes[f.Spec.Type].chaos.Action, "volumePath": s.volume, "path": path.Join(s.volume, files), "percent": percent, "duration": lasting(f),
	})
	switch {
	case f.Spec.Type == api.FaultIOError && p.Errno != nil:
		spec["errno"] = int64(*p.Errno)
	case f.Spec.Type == api.FaultIODelay && p.Delay != nil:
		spec["delay"] = p.Delay.Duration.String()
	default:
		return nil, permanent("%s: neither io.delay nor io.errno is set; give delay: 100ms or errno: 28", f.Spec.Type)
	}
	return one(kindIO, spec), nil
}

// wholePercent is for fields of Chaos Mesh without fractions. The default is 100.
func wholePercent(field string, p api.Percentage) (int64, error) {
	if p == "" {
		return 100, nil
	}
	v, err := strconv.ParseFloat(p.Number(), 64)
	if err != nil || v < 1 || v > 100 {
		return 0, permanent("%s: Chaos Mesh accepts 1%% to 100%% here, not %s", field, p)
	}
	return int64(math.Round(v)), nil
}

// durationText formats a duration for the pattern of some of Chaos Mesh's fields: one number and one unit.
func durationText(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) + "us" }
