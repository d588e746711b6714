package orderprobe

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	recordingVolume = "recording"
	recordingMount  = "/recording"
)

// arrivalOf is spec.arrival for the plan; nil leaves it to the scenario.
func arrivalOf(probe *api.OrderProbe) *flow.Arrival {
	a := probe.Spec.Arrival
	if a == nil {
		return nil
	}
	out := &flow.Arrival{Type: flow.Type(strings.ToLower(string(a.Type)))}
	if a.Seed != nil {
		out.Seed = uint64(*a.Seed)
	}
	if a.Hawkes != nil {
		out.Branching = number(a.Hawkes.BranchingPercent)
	}
	if a.Replay != nil {
		out.MaxMessages = number(a.Replay.MaxMessages)
	}
	return out
}

func speedsOf(probe *api.OrderProbe) (speeds []int) {
	if r := replayOf(probe); r != nil {
		for _, s := range r.Speeds {
			speeds = append(speeds, int(s))
		}
	}
	return speeds
}

func ordersOf(probe *api.OrderProbe) scenario.Orders {
	return scenario.Orders(strings.ToLower(string(probe.Spec.Orders)))
}

// replayOf is the recording of a probe that plays one; else nil.
func replayOf(probe *api.OrderProbe) *api.ReplayArrival {
	if probe.Spec.Arrival == nil {
		return nil
	}
	return probe.Spec.Arrival.Replay
}

// arrivalArgs are the flags of order-probe pod for spec.arrival and spec.orders.
func arrivalArgs(probe *api.OrderProbe) (list []string) {
	if o := ordersOf(probe); o != "" {
		list = append(list, "--orders", string(o))
	}
	a := arrivalOf(probe)
	if a == nil {
		return list
	}
	list = append(list, "--arrival", string(a.Type))
	if a.Branching != 0 {
		list = append(list, "--branching", strconv.Itoa(a.Branching))
	}
	if a.Seed != 0 {
		list = append(list, "--seed", strconv.FormatUint(a.Seed, 10))
	}
	r := replayOf(probe)
	if r == nil {
		return list
	}
	list = append(list, "--replay", recordingPath(r), "--replay-format", strings.ToLower(string(r.Format)))
	if speeds := speedsOf(probe); len(speeds) > 0 {
		words := make([]string, len(speeds))
		for i, s := range speeds {
			words[i] = strconv.Itoa(s)
		}
		list = append(list, "--speeds", strings.Join(words, ","))
	}
	if a.MaxMessages != 0 {
		list = append(list, "--max-messages", strconv.Itoa(a.MaxMessages))
	}
	return list
}

// recordingPath is the recording's path in a pod.
func recordingPath(r *api.ReplayArrival) string {
	if m := r.Source.ConfigMap; m != nil {
		return path.Join(recordingMount, m.Key)
	}
	return path.Join(recordingMount, r.Source.VolumeClaim.Path)
}

// addRecording mounts the recording read-only.
func addRecording(probe *api.OrderProbe, spec *corev1.PodSpec) {
	r := replayOf(probe)
	if r == nil {
		return
	}
	v := corev1.Volume{Name: recordingVolume}
	if m := r.Source.ConfigMap; m != nil {
		v.ConfigMap = &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Name},
			Items:                []corev1.KeyToPath{{Key: m.Key, Path: m.Key}},
		}
	} else {
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.Source.VolumeClaim.ClaimName, ReadOnly: true}
	}
	spec.Volumes = append(spec.Volumes, v)
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: recordingVolume, MountPath: recordingMount, ReadOnly: true})
}

// recordingMissing reports that the ConfigMap with the recording does not exist, or lacks the key; empty if it does.
// Pods would wait for it silently. The content of a volume is visible only to the pods.
func (r *Reconciler) recordingMissing(ctx context.Context, probe *api.OrderProbe) (string, error) {
	replay := replayOf(probe)
	if replay == nil || replay.Source.ConfigMap == nil {
		return "", nil
	}
	source := replay.Source.ConfigMap
	var m corev1.ConfigMap
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: probe.Namespace, Name: source.Name}, &m)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("there is no ConfigMap %s in namespace %s, which spec.arrival.replay.source names; create it, or delete this OrderProbe", source.Name, probe.Namespace), nil
	case err != nil:
		return "", err
	}
	if _, text := m.Data[source.Key]; text {
		return "", nil
	}
	if _, binary := m.BinaryData[source.Key]; binary {
		return "", nil
	}
	return fmt.Sprintf("ConfigMap %s has no key %s, which spec.arrival.replay.source names; add it, or delete this OrderProbe", source.Name, source.Key), nil
}
