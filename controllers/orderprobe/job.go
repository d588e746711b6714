package orderprobe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/labels"
	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	containerName = "order-probe"
	portMetrics   = "metrics"

	// nonRoot is the user and group of every container, as in images/.
	nonRoot int64 = 65532

	// startupTime is what the pods of a run may take to be scheduled, to pull their image and to connect.
	startupTime = 15 * time.Minute
)

// job runs one pod per probe, all at once. A pod that fails is not replaced: what the others measured meanwhile would
// not be the scenario any more.
func job(probe *api.OrderProbe, plan scenario.Plan, defaults Defaults) *batchv1.Job {
	pods := int32(plan.Processes())
	return &batchv1.Job{
		ObjectMeta: probeMeta(probe, probe.Name),
		Spec: batchv1.JobSpec{
			CompletionMode:          ptr.To(batchv1.IndexedCompletion),
			Completions:             &pods,
			Parallelism:             &pods,
			BackoffLimit:            ptr.To[int32](0),
			ActiveDeadlineSeconds:   ptr.To(int64(deadline(plan) / time.Second)),
			TTLSecondsAfterFinished: ttl(probe),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      probeLabels(probe),
					Annotations: map[string]string{"kubectl.kubernetes.io/default-container": containerName},
				},
				Spec: podSpec(probe, plan, defaults),
			},
		},
	}
}

// deadline ends a run that hangs: twice what its steps take, and the time to start.
func deadline(plan scenario.Plan) time.Duration {
	length := plan.Length()
	if n := len(plan.Steps); n > 0 {
		last := time.Duration(plan.Steps[n-1].OffsetMs)*time.Millisecond + plan.WarmupTime() + plan.MeasureTime()
		length = max(length, last)
	}
	return (2*length + startupTime).Round(time.Second)
}

func ttl(probe *api.OrderProbe) *int32 {
	if probe.Spec.TTL == nil {
		return nil
	}
	return ptr.To(int32(probe.Spec.TTL.Duration / time.Second))
}

func podSpec(probe *api.OrderProbe, plan scenario.Plan, defaults Defaults) corev1.PodSpec {
	spec := corev1.PodSpec{
		ServiceAccountName:           probe.Name,
		AutomountServiceAccountToken: ptr.To(true), // it writes its result
		EnableServiceLinks:           ptr.To(false),
		RestartPolicy:                corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To(nonRoot),
			RunAsGroup:     ptr.To(nonRoot),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Affinity:   awayFromGrid(probe),
		Containers: []corev1.Container{container(probe, plan, defaults)},
	}
	addRecording(probe, &spec)
	if p := probe.Spec.Placement; p != nil {
		spec.NodeSelector, spec.Tolerations = p.NodeSelector, p.Tolerations
	}
	return spec
}

// awayFromGrid keeps probes from the machines they measure, and from each other, where there is room.
func awayFromGrid(probe *api.OrderProbe) *corev1.Affinity {
	near := func(weight int32, labels map[string]string) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}}
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			near(100, map[string]string{labels.Component: labels.GridNode, api.LabelGrid: probe.Spec.GridRef.Name}),
			near(10, map[string]string{labels.Component: labels.Probe, api.LabelProbe: probe.Name}),
		},
	}}
}

func container(probe *api.OrderProbe, plan scenario.Plan, defaults Defaults) corev1.Container {
	c := corev1.Container{
		Name:            containerName,
		Image:           probe.Spec.Image,
		ImagePullPolicy: probe.Spec.ImagePullPolicy,
		Args:            args(probe, plan),
		Ports:           []corev1.ContainerPort{{Name: portMetrics, ContainerPort: pod.HTTPPort, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{{Name: "PROBE_INDEX", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']",
		}}}},
		// The end of the log of a pod that failed is what status quotes.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if c.Image == "" {
		c.Image = defaults.Image
	}
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = defaults.ImagePullPolicy
	}
	if probe.Spec.Resources != nil {
		c.Resources = *probe.Spec.Resources
	} else {
		c.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: *resource.NewQuantity(memory(plan), resource.BinarySI),
		}}
	}
	return c
}

// memory a pod asks for: 64 bytes per order of its probes' longest step, whose times it keeps, and 128 MiB for the rest. Orders
// that do not arrive steadily have a schedule of up to 64 bytes besides; a recording takes 256 a message while it is read.
func memory(plan scenario.Plan) int64 {
	most := plan.MostOrders() * int64(len(plan.ProbesOf(0)))
	each := int64(64)
	switch {
	case plan.Arrival == nil:
	case plan.Arrival.Type == flow.Replay:
		each = 64 + 64 + 256
	default:
		each = 64 + 64
	}
	const mib = 1 << 20
	return (each*most/mib + 128) * mib
}

// args is the command line of a probe pod. $(PROBE_INDEX) is expanded by the kubelet.
func args(probe *api.OrderProbe, plan scenario.Plan) []string {
	grid := probe.Spec.GridRef.Name
	list := []string{
		"pod",
		"--probe", probe.Name,
		"--index", "$(PROBE_INDEX)",
		"--namespace", probe.Namespace,
		"--grid", grid,
		"--endpoint", fmt.Sprintf("%s.%s.svc:%d", api.ClientServiceName(grid), probe.Namespace, api.DataPort),
		"--scenario", string(probe.Spec.Scenario),
		"--" + strings.ToLower(string(probe.Spec.Parameters)),
	}
	if probe.Spec.Scenario == api.ScenarioWrite {
		list = append(list, "--replicas", strconv.Itoa(plan.Replicas))
	}
	list = append(list, arrivalArgs(probe)...)
	o := probe.Spec.Overrides
	if o == nil {
		return list
	}
	if len(o.RatesPerProbe) > 0 {
		rates := make([]string, len(o.RatesPerProbe))
		for i, r := range o.RatesPerProbe {
			rates[i] = strconv.Itoa(int(r))
		}
		list = append(list, "--rates", strings.Join(rates, ","))
	}
	if o.Warmup != nil {
		list = append(list, "--warmup", o.Warmup.Duration.String())
	}
	if o.Measure != nil {
		list = append(list, "--measure", o.Measure.Duration.String())
	}
	if s := plan.Search; s != nil && o.Search != nil {
		list = append(list, "--objective", s.Objective.Flag(), "--from", strconv.Itoa(s.From), "--to", strconv.Itoa(s.To), "--goal", strconv.Itoa(s.Goal))
	}
	for _, n := range []struct {
		flag  string
		value *int32
	}{{"--repeats", o.Repeats}, {"--threads", o.Threads}, {"--probes", o.Probes}} {
		if n.value != nil {
			list = append(list, n.flag, strconv.Itoa(int(*n.value)))
		}
	}
	return list
}
