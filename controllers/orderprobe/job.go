package orderprobe

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/controllers/workload"
	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// startupTime bounds the time of the pods of a run to be scheduled, to pull their image and to connect.
const startupTime = 15 * time.Minute

// job runs one pod per probe. One that fails is not replaced: what the others measured meanwhile would not be the
// scenario any more.
func job(probe *api.OrderProbe, plan scenario.Plan, defaults Defaults) *batchv1.Job {
	job := workload.Job(probeMeta(probe, probe.Name), int32(plan.Processes()), podSpec(probe, plan, defaults))
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	job.Spec.ActiveDeadlineSeconds = ptr.To(int64(deadline(probe, plan) / time.Second))
	job.Spec.TTLSecondsAfterFinished = ttl(probe)
	return job
}

// deadline ends a run that hangs: twice what its steps take, and the time to start.
func deadline(probe *api.OrderProbe, plan scenario.Plan) time.Duration {
	if probe.Spec.Scenario.OwnGrids() {
		return ownLimit(probe)
	}
	return (2*plan.Scheduled() + startupTime).Round(time.Second)
}

func ttl(probe *api.OrderProbe) *int32 {
	if probe.Spec.TTL == nil {
		return nil
	}
	return ptr.To(int32(probe.Spec.TTL.Duration / time.Second))
}

func podSpec(probe *api.OrderProbe, plan scenario.Plan, defaults Defaults) corev1.PodSpec {
	spec := workload.Pod(container(probe, plan, defaults), probe.Spec.Placement)
	spec.ServiceAccountName = probe.Name
	spec.AutomountServiceAccountToken = ptr.To(true) // it writes its result
	// Away from the machines it measures, and from other probes.
	spec.Affinity = workload.Preferring(workload.AwayFromGrid(probe.Spec.GridRef.Name),
		workload.AwayFrom(10, map[string]string{objects.LabelComponent: objects.Probe, api.LabelProbe: probe.Name}))
	if probe.Spec.Scenario.OwnGrids() {
		// Away from every grid and every other probe: it is a machine's load by itself.
		spec.Affinity = workload.Preferring(workload.AwayFrom(100, map[string]string{objects.LabelComponent: objects.GridNode}),
			workload.AwayFrom(100, map[string]string{objects.LabelComponent: objects.Probe}))
		addRoom(probe, &spec)
	}
	addGateway(probe, plan, &spec)
	addRecording(probe, &spec)
	return spec
}

func container(probe *api.OrderProbe, plan scenario.Plan, defaults Defaults) corev1.Container {
	c := workload.Container(args(probe, plan), pod.HTTPPort)
	c.Image, c.ImagePullPolicy = cmp.Or(probe.Spec.Image, defaults.Image), cmp.Or(probe.Spec.ImagePullPolicy, defaults.ImagePullPolicy)
	c.Env = []corev1.EnvVar{{Name: "PROBE_INDEX", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		APIVersion: "v1", FieldPath: "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']",
	}}}}
	c.Resources = workload.Resources(probe.Spec.Resources, memory(plan))
	return c
}

// memory of a pod: 64 bytes per order of its probes' longest step, whose times it keeps, and 128 MiB for the rest.
// Orders that do not arrive steadily also have a schedule of up to 64 bytes; a recording needs 256 per message while it
// is read.
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
	if probe.Spec.Scenario.OwnGrids() {
		return ownArgs(probe)
	}
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
	if probe.Spec.Through == api.ThroughFIX {
		list = append(list, "--through", "fix")
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
