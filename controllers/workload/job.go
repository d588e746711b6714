package workload

import (
	"context"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// ContainerName is the one container of every pod of a run.
const ContainerName = "order-probe"

const portMetrics = "metrics"

// Job runs a number of pods at once. A pod that fails is not replaced: its state is lost with it.
func Job(meta metav1.ObjectMeta, pods int32, pod corev1.PodSpec) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			Completions:  &pods,
			Parallelism:  &pods,
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      maps.Clone(meta.Labels),
					Annotations: map[string]string{"kubectl.kubernetes.io/default-container": ContainerName},
				},
				Spec: pod,
			},
		},
	}
}

// Pod is one of a run, with the user's placement.
func Pod(container corev1.Container, where *api.ProbePlacement) corev1.PodSpec {
	spec := corev1.PodSpec{
		EnableServiceLinks: ptr.To(false),
		RestartPolicy:      corev1.RestartPolicyNever,
		SecurityContext:    objects.RestrictedPod(),
		Containers:         []corev1.Container{container},
	}
	if where != nil {
		spec.NodeSelector, spec.Tolerations = where.NodeSelector, where.Tolerations
	}
	return spec
}

// Container is order-probe with a command line; it serves its metrics on port.
func Container(args []string, port int32) corev1.Container {
	return corev1.Container{
		Name:  ContainerName,
		Args:  args,
		Ports: []corev1.ContainerPort{{Name: portMetrics, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		// The end of the log of a failed pod is quoted in status.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          objects.RestrictedContainer(),
	}
}

// Resources are the user's, else a small CPU request and a number of bytes of memory.
func Resources(wanted *corev1.ResourceRequirements, memory int64) corev1.ResourceRequirements {
	if wanted != nil {
		return *wanted.DeepCopy()
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}}
}

// AwayFromGrid keeps a pod off the machines of the grid where possible.
func AwayFromGrid(grid string) corev1.WeightedPodAffinityTerm {
	return AwayFrom(100, map[string]string{objects.LabelComponent: objects.GridNode, api.LabelGrid: grid})
}

// AwayFrom keeps a pod off the machines of pods with labels where possible.
func AwayFrom(weight int32, labels map[string]string) corev1.WeightedPodAffinityTerm {
	return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
	}}
}

// Preferring is the affinity of a pod that is kept away from others where possible.
func Preferring(away ...corev1.WeightedPodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: away}}
}

// Failed reports whether a Job has failed; nil has not.
func Failed(job *batchv1.Job) bool { return messages.JobFailure(job) != "" }

// Stop suspends the Job of a run that will have no result, which ends its pods but keeps the Job for inspection. A Job
// that has ended, or does not exist, is not changed.
func Stop(ctx context.Context, c client.Client, job *batchv1.Job) error {
	if job == nil || job.Status.CompletionTime != nil || Failed(job) || ptr.Deref(job.Spec.Suspend, false) {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))
	only := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}} // the answer is not merged into the observation
	return client.IgnoreNotFound(c.Patch(ctx, only, patch, client.FieldOwner(apply.FieldOwner)))
}
