package failoverdrill

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/labels"
	"github.com/ordergrid/ordergrid/controllers/networks"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

const (
	containerName = "order-probe"
	portMetrics   = "metrics"
	dataVolume    = "history"
	dataMount     = "/history"

	// nonRoot is the user and group of every container, as in images/.
	nonRoot int64 = 65532

	// patience with one copy or sink that does not answer at the end; finishLimit bounds all of them.
	patience = 2 * time.Minute

	// recorderMemory is what a recorder asks for that does not say otherwise: its ledger has 64 bytes and more an order.
	recorderMemory = "512Mi"
)

// recorderJob runs the recorder: one pod that is never replaced, because its ledger is in its memory.
func recorderJob(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step, taken []string, defaults Defaults) *batchv1.Job {
	one := ptr.To[int32](1)
	job := &batchv1.Job{
		ObjectMeta: drillMeta(d, recorderName(d)),
		Spec: batchv1.JobSpec{
			Completions:  one,
			Parallelism:  one,
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      drillLabels(d),
					Annotations: map[string]string{"kubectl.kubernetes.io/default-container": containerName},
				},
				Spec: recorderPod(d, grid, steps, taken, defaults),
			},
		},
	}
	networks.Attach(&job.Spec.Template, grid)
	certificates.Attach(&job.Spec.Template, grid)
	return job
}

func recorderPod(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step, taken []string, defaults Defaults) corev1.PodSpec {
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), // it never talks to the API server
		EnableServiceLinks:           ptr.To(false),
		RestartPolicy:                corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To(nonRoot),
			RunAsGroup:     ptr.To(nonRoot),
			FSGroup:        ptr.To(nonRoot),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Affinity:   awayFromGrid(d, steps, taken),
		Containers: []corev1.Container{recorderContainer(d, grid, steps, defaults)},
		Volumes:    []corev1.Volume{{Name: dataVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	if p := d.Spec.Traffic.Placement; p != nil {
		spec.NodeSelector, spec.Tolerations = p.NodeSelector, p.Tolerations
	}
	return spec
}

// awayFromGrid keeps the recorder from the machines of the grid where there is room; always, when the drill breaks
// machines: the ledger has to outlive them. Then it is by the names of the machines that are taken when it starts: a rule
// about pods would hold in both directions, and keep the grid's replacements from the recorder's machine.
func awayFromGrid(d *api.FailoverDrill, steps []plan.Step, taken []string) *corev1.Affinity {
	if len(taken) > 0 && slices.ContainsFunc(steps, func(p plan.Step) bool { return breaksMachine(p.Fault.Type) }) {
		var elsewhere []corev1.NodeSelectorRequirement // a requirement about a field takes one value
		for _, node := range taken {
			elsewhere = append(elsewhere, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}})
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: elsewhere}},
		}}}
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labels.Component: labels.GridNode, api.LabelGrid: d.Spec.GridRef.Name}},
		}}},
	}}
}

func breaksMachine(t api.DrillFaultType) bool {
	return t == api.FaultNodePowerOff || t == api.FaultNodeLinkDown
}

func recorderContainer(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step, defaults Defaults) corev1.Container {
	t := &d.Spec.Traffic
	c := corev1.Container{
		Name:            containerName,
		Image:           t.Image,
		ImagePullPolicy: t.ImagePullPolicy,
		Args:            recorderArgs(d, grid, steps),
		Ports:           []corev1.ContainerPort{{Name: portMetrics, ContainerPort: recorder.Port, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{{Name: recorder.TokenVariable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: recorderName(d)}, Key: tokenKey,
		}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMount}},
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
	if t.Resources != nil {
		c.Resources = *t.Resources.DeepCopy()
	} else {
		c.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse(recorderMemory)},
		}
	}
	return c
}

// recorderArgs is the command line of the recorder.
func recorderArgs(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step) []string {
	t := &d.Spec.Traffic
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	args := []string{
		"drill",
		"--endpoint", fmt.Sprintf("%s.%s.svc:%d", api.ClientServiceName(grid.Name), d.Namespace, api.DataPort),
		"--grid", grid.Name,
		"--replicas", number(grid.Spec.Replicas),
		"--probes", number(t.Probes),
		"--rate", number(ptr.Deref(t.RatePerProbe, 0)),
		"--sessions", number(t.Sessions),
		"--reads", number(ptr.Deref(t.Reads, 0)),
		"--timeout", t.RequestTimeout.Duration.String(),
		"--seed", strconv.FormatInt(d.Status.Seed, 10),
		"--patience", patience.String(),
		"--http", ":" + strconv.Itoa(recorder.Port),
		"--node-port", strconv.Itoa(api.HTTPPort),
		"--dir", dataMount,
		"--ttl", d.Spec.TTL.Duration.String(),
	}
	if reason := noSink(grid, steps); reason != "" {
		args = append(args, "--no-sink", reason)
	}
	return args
}

// noSink says why nothing downstream can be compared: an EmptyDir goes with its pod, and the pod that comes after it does
// not write again what was in it.
func noSink(grid *api.OrderGrid, steps []plan.Step) string {
	w := grid.Spec.WriteBehind
	if w.Sink != api.SinkFile || w.File == nil || w.File.Volume != api.SinkVolumeEmptyDir {
		return ""
	}
	if i := slices.IndexFunc(steps, func(p plan.Step) bool { return replacesPods(p.Fault.Type) }); i >= 0 {
		return fmt.Sprintf("its files are on EmptyDir volumes, which go with the pods that %s replaces; use a PersistentVolumeClaim", steps[i].Fault.Name)
	}
	return ""
}

// replacesPods are the faults after which another pod is there, not only another process.
func replacesPods(t api.DrillFaultType) bool {
	return t == api.FaultPodKill || t == api.FaultPodDelete || t == api.FaultRollingUpdate || t == api.FaultNodePowerOff || t == api.FaultNodeLinkDown
}
