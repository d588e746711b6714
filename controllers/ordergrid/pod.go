package ordergrid

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

const (
	containerName = "grid-node"

	// stopMargin is the pod's grace period beyond its drain timeout.
	stopMargin = 10 * time.Second
)

// pod is the pod of a shard before spec.podTemplate is applied to it. It passes the Restricted Pod Security Standard.
func pod(grid *api.OrderGrid, shard int32, defaults Defaults) corev1.PodTemplateSpec {
	spec := &grid.Spec
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      shardLabels(grid, shard),
			Annotations: annotations(grid),
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: api.ShardName(grid.Name, shard),
			// The node reads and changes its partitions' records.
			AutomountServiceAccountToken: ptr.To(true),
			// Environment variables for every Service of the namespace are not used.
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64((spec.Timing.DrainTimeout.Duration + stopMargin) / time.Second)),
			SecurityContext:               objects.RestrictedPodWithVolumes(),
			NodeSelector:                  nodeSelector(grid),
			Tolerations:                   spec.Placement.Tolerations,
			Affinity:                      affinity(grid, shard),
			TopologySpreadConstraints:     topologySpread(grid),
			Containers:                    []corev1.Container{container(grid, shard, defaults)},
			Volumes:                       volumes(grid),
		},
	}
}

func container(grid *api.OrderGrid, shard int32, defaults Defaults) corev1.Container {
	c := corev1.Container{
		Name:            containerName,
		Image:           grid.Spec.Image,
		ImagePullPolicy: grid.Spec.ImagePullPolicy,
		Args:            nodeArgs(grid, shard),
		Env:             []corev1.EnvVar{fieldEnv("POD_NAME", "metadata.name"), fieldEnv("POD_IP", "status.podIP")},
		Ports: []corev1.ContainerPort{
			{Name: portData, ContainerPort: api.DataPort, Protocol: corev1.ProtocolTCP},
			{Name: portHTTP, ContainerPort: api.HTTPPort, Protocol: corev1.ProtocolTCP},
		},
		Resources:    resources(grid),
		StartupProbe: probe("/healthz", 1, startSeconds(grid)),
		// Liveness checks the local loop only. A pod that is slow, isolated or not in sync must not be restarted: its
		// memory may hold the last copy.
		LivenessProbe:  probe("/healthz", 10, int32(min(6+journalSeconds(grid)/10, math.MaxInt32))),
		ReadinessProbe: probe("/readyz", 2, 2),
		// The last log lines of a process that cannot start are quoted in conditions.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          objects.RestrictedContainer(),
	}
	if c.Image == "" {
		c.Image = defaults.Image
	}
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = defaults.ImagePullPolicy
	}
	if grid.Spec.ExternalAccess != nil {
		c.Ports = append(c.Ports, externalPort(grid, shard))
	}
	c.VolumeMounts = append(c.VolumeMounts, sinkMounts(grid)...)
	c.VolumeMounts = append(c.VolumeMounts, journalMounts(grid)...)
	if from := grid.Spec.RestoreFrom; from != nil {
		_, mount := restoreVolumes(from, true)
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	if grid.Spec.Matches() {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: instrumentsVolume, MountPath: instrumentsDir, ReadOnly: true})
	}
	if grid.Spec.RiskProfile != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: limitsVolume, MountPath: limitsDir, ReadOnly: true})
	}
	if grid.Spec.Regions != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: regionsVolume, MountPath: regionsDir, ReadOnly: true})
	}
	if grid.Spec.Fabric != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: fabricVolume, MountPath: fabricDir, ReadOnly: true})
	}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: peerKeyVolume, MountPath: peerKeyDir, ReadOnly: true})
	if grid.Spec.Security.TLS != nil {
		c.VolumeMounts = append(c.VolumeMounts, certificates.Mount())
	}
	if enforced(grid) != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: rulesVolume, MountPath: rulesDir, ReadOnly: true})
	}
	return c
}

// annotations of the pod.
func annotations(grid *api.OrderGrid) map[string]string {
	list := map[string]string{"kubectl.kubernetes.io/default-container": containerName}
	if grid.Spec.Fabric != nil {
		list[api.AnnotationNetworks] = objects.NetworkOf(grid).Annotation()
	}
	return list
}

// startSeconds is the time limit for a node's start: a minute, in which it also waits for its fabric, and twice the
// time of prefault, 2 s a GiB on a slow host; and the time in which it reads its journal.
func startSeconds(grid *api.OrderGrid) int32 {
	const gib = 1 << 30
	return int32(min(60+4*((prefault(grid).Value()+gib-1)/gib)+journalSeconds(grid), math.MaxInt32))
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

func probe(path string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString(portHTTP), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds:    period,
		FailureThreshold: failures,
		TimeoutSeconds:   5,
		SuccessThreshold: 1,
	}
}

// volumes of the pod.
func volumes(grid *api.OrderGrid) []corev1.Volume {
	list := sinkVolumes(grid)
	if from := grid.Spec.RestoreFrom; from != nil {
		v, _ := restoreVolumes(from, true)
		list = append(list, v)
	}
	if grid.Spec.Matches() {
		list = append(list, instrumentsVolumeOf(grid))
	}
	if grid.Spec.RiskProfile != nil {
		list = append(list, limitsVolumeOf(grid))
	}
	if grid.Spec.Regions != nil {
		list = append(list, regionsVolumeOf(grid))
	}
	if grid.Spec.Fabric != nil {
		list = append(list, networkStatusVolume())
	}
	list = append(list, peerKeyVolumeOf(grid))
	if v := certificates.NodeVolume(grid); v != nil {
		list = append(list, *v)
	}
	if enforced(grid) != nil {
		list = append(list, rulesVolumeOf(grid))
	}
	return list
}
