package ordergrid

import (
	"fmt"
	"net/url"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// What spec.restoreFrom needs in pods: the Job that fixes the recovery points, and the grid nodes that load the archive.
const (
	restoreSecrets = "/etc/ordergrid/restore"
	restoreDir     = "/var/lib/ordergrid/restore"
	restoreVolume  = "restore"
	// restoreRefused is the exit code of grid-sink archive restore-point where no retry helps.
	restoreRefused = 3
	// restoreAtOnce bounds the partitions that are replayed at a time.
	restoreAtOnce = 4
)

// restoreJobName names the Job, and with an index the host of each of its pods.
func restoreJobName(grid *api.OrderGrid) string { return grid.Name + "-restore" }

// restoreURL is the archive as programs take it.
func restoreURL(from *api.RestoreSpec) string {
	b := from.Bucket
	if b == nil {
		return restoreDir
	}
	return bucketURL(b, restoreSecrets)
}

// restoreArgs let a grid node load its partitions.
func restoreArgs(grid *api.OrderGrid) []string {
	from := grid.Spec.RestoreFrom
	if from == nil {
		return nil
	}
	args := []string{"--restore-from", restoreURL(from)}
	if from.Bucket != nil {
		args = append(args, "--restore-credentials-dir", restoreSecrets)
	}
	return args
}

// restoreVolumes are the Secrets of a bucket, or the claim, and where they are mounted.
func restoreVolumes(from *api.RestoreSpec, readOnly bool) (corev1.Volume, corev1.VolumeMount) {
	if b := from.Bucket; b != nil {
		v := sinkSecretVolume(bucketSecrets(b))
		v.Name = restoreVolume
		return *v, corev1.VolumeMount{Name: restoreVolume, MountPath: restoreSecrets, ReadOnly: true}
	}
	return corev1.Volume{Name: restoreVolume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: from.ClaimName}}},
		corev1.VolumeMount{Name: restoreVolume, MountPath: restoreDir, ReadOnly: readOnly}
}

// restoreJob replays the archive of each partition and fixes its recovery point: a pod for each, by index. What it
// does may be repeated: the archive remembers the grid.
func restoreJob(grid *api.OrderGrid, defaults Defaults) *batchv1.Job {
	from := grid.Spec.RestoreFrom
	// Kubernetes gives each pod of such a Job its index in JOB_COMPLETION_INDEX.
	args := []string{"archive", "restore-point", "--url", restoreURL(from), "--grid", grid.Name, "--owner", string(grid.UID),
		"--partition", "$(JOB_COMPLETION_INDEX)", "--partitions", fmt.Sprint(grid.Spec.Partitions), "--result-file", corev1.TerminationMessagePathDefault}
	if from.Bucket != nil {
		args = append(args, "--credentials-dir", restoreSecrets)
	}
	if from.Mode == api.RestoreCopy {
		args = append(args, "--read-only")
	}
	if from.EarlierRestore == api.EarlierRestoreSupersede {
		args = append(args, "--supersede")
	}
	if from.MissingPartitions == api.MissingPartitionsEmpty {
		args = append(args, "--empty-if-missing")
	}
	volume, mount := restoreVolumes(from, from.Mode == api.RestoreCopy)
	l := objects.Labels(objects.RestoreJob, grid.Name)
	l[api.LabelGrid] = grid.Name
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: restoreJobName(grid), Namespace: grid.Namespace, Labels: l},
		Spec: batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Completions:    ptr.To(grid.Spec.Partitions),
			Parallelism:    ptr.To(min(grid.Spec.Partitions, restoreAtOnce)),
			BackoffLimit:   ptr.To(6 + grid.Spec.Partitions),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:      batchv1.PodFailurePolicyActionFailJob,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: ptr.To(sinkContainer), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{restoreRefused}},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: l},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: ptr.To(false),
					EnableServiceLinks:           ptr.To(false),
					RestartPolicy:                corev1.RestartPolicyNever,
					SecurityContext:              objects.RestrictedPodWithVolumes(),
					Containers: []corev1.Container{{
						Name: sinkContainer, Image: defaults.SinkImage, ImagePullPolicy: defaults.ImagePullPolicy, Args: args,
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
							Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
						},
						SecurityContext: objects.RestrictedContainer(), VolumeMounts: []corev1.VolumeMount{mount},
						TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
					}},
					Volumes: []corev1.Volume{volume},
				},
			},
		},
	}
}

// bucketURL is a bucket as programs take it; dir has its Secrets.
func bucketURL(b *api.ArchiveBucketSpec, dir string) string {
	q := url.Values{}
	for name, value := range map[string]string{"endpoint": b.Endpoint, "region": b.Region} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if b.CASecret != nil {
		q.Set("caFile", strings.TrimSuffix(dir, "/")+"/ca.crt")
	}
	u := url.URL{Scheme: "s3", Host: b.Name, RawQuery: q.Encode()}
	if b.Prefix != "" {
		u.Path = "/" + b.Prefix
	}
	return u.String()
}

func bucketSecrets(b *api.ArchiveBucketSpec) []secretFile {
	list := []secretFile{{b.CredentialsSecretName, "access-key-id", "access-key-id"}, {b.CredentialsSecretName, "secret-access-key", "secret-access-key"}}
	if c := b.CASecret; c != nil {
		list = append(list, secretFile{c.Name, c.Key, "ca.crt"})
	}
	return list
}
