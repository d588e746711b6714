package ordergrid

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

const (
	containerName = "grid-node"
	sinkVolume    = "sink"

	// nonRoot is the user and group of every container, as in images/.
	nonRoot int64 = 65532

	// stopMargin is what the kubelet gives a pod beyond its drain timeout before it kills it.
	stopMargin = 10 * time.Second
)

// pod is the pod of a shard before spec.podTemplate is laid over it. It passes the Restricted Pod Security Standard.
func pod(grid *api.OrderGrid, shard int32, defaults Defaults) corev1.PodTemplateSpec {
	spec := &grid.Spec
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      shardLabels(grid, shard),
			Annotations: map[string]string{"kubectl.kubernetes.io/default-container": containerName},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: api.ShardName(grid.Name, shard),
			// The node reads and changes its partitions' records.
			AutomountServiceAccountToken: ptr.To(true),
			// Environment variables for every Service of the namespace serve nobody here.
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64((spec.Timing.DrainTimeout.Duration + stopMargin) / time.Second)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   ptr.To(true),
				RunAsUser:      ptr.To(nonRoot),
				RunAsGroup:     ptr.To(nonRoot),
				FSGroup:        ptr.To(nonRoot),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			NodeSelector:              spec.Placement.NodeSelector,
			Tolerations:               spec.Placement.Tolerations,
			Affinity:                  spread(grid, shard),
			TopologySpreadConstraints: topologySpread(grid),
			Containers:                []corev1.Container{container(grid, shard, defaults)},
			Volumes:                   volumes(grid),
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
		// Liveness asks the local loop only. A pod that is slow, alone or not in sync must not be restarted: its memory
		// may hold the last copy.
		LivenessProbe:  probe("/healthz", 10, 6),
		ReadinessProbe: probe("/readyz", 2, 2),
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
	if grid.Spec.WriteBehind.Sink == api.SinkFile {
		c.VolumeMounts = []corev1.VolumeMount{{Name: sinkVolume, MountPath: sinkDir}}
	}
	return c
}

// startSeconds is after how long a node that has not begun to answer never will: a minute, and the time that prefault
// takes, 2 s a GiB on a slow host, twice.
func startSeconds(grid *api.OrderGrid) int32 {
	const gib = 1 << 30
	return int32(min(60+4*((prefault(grid).Value()+gib-1)/gib), math.MaxInt32))
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

// resources are the user's, with memory filled in: orders, plus a quarter and at least 256Mi for everything else.
func resources(grid *api.OrderGrid) corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	if grid.Spec.Resources != nil {
		r = *grid.Spec.Resources.DeepCopy()
	}
	orders := grid.Spec.Memory.Value()
	memory := *resource.NewQuantity(orders+max(orders/4, 256<<20), resource.BinarySI)
	if limit, ok := r.Limits[corev1.ResourceMemory]; ok {
		memory = limit
	} else {
		r.Limits = with(r.Limits, corev1.ResourceMemory, memory)
	}
	if _, ok := r.Requests[corev1.ResourceMemory]; !ok {
		r.Requests = with(r.Requests, corev1.ResourceMemory, memory)
	}
	if _, ok := r.Requests[corev1.ResourceCPU]; !ok {
		cpu := resource.MustParse("100m")
		if limit, ok := r.Limits[corev1.ResourceCPU]; ok {
			cpu = limit
		}
		r.Requests = with(r.Requests, corev1.ResourceCPU, cpu)
	}
	return r
}

func with(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[name] = q
	return list
}

// volumes of the pod; a PersistentVolumeClaim comes from the StatefulSet's claim templates instead.
func volumes(grid *api.OrderGrid) []corev1.Volume {
	sink := grid.Spec.WriteBehind
	if sink.Sink != api.SinkFile || fileSink(grid).Volume != api.SinkVolumeEmptyDir {
		return nil
	}
	size := fileSink(grid).Size
	return []corev1.Volume{{Name: sinkVolume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size},
	}}}
}

// fileSink is spec.writeBehind.file with its defaults, which the API server fills in only where file is written out.
func fileSink(grid *api.OrderGrid) api.FileSinkSpec {
	if grid.Spec.WriteBehind.File != nil {
		return *grid.Spec.WriteBehind.File
	}
	return api.FileSinkSpec{Volume: api.SinkVolumeEmptyDir, Size: resource.MustParse("1Gi")}
}

// spread keeps the copies of a shard on different Kubernetes nodes.
func spread(grid *api.OrderGrid, shard int32) *corev1.Affinity {
	term := corev1.PodAffinityTerm{
		TopologyKey:   corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchLabels: shardSelector(grid, shard)},
	}
	anti := &corev1.PodAntiAffinity{}
	if grid.Spec.Placement.Spread == api.SpreadPreferred {
		anti.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: term}}
	} else {
		anti.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	}
	return &corev1.Affinity{PodAntiAffinity: anti}
}

// topologySpread evens the pods of all shards out over the Kubernetes nodes, where that is possible.
func topologySpread(grid *api.OrderGrid) []corev1.TopologySpreadConstraint {
	if grid.Spec.Shards == 1 {
		return nil
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: gridSelector(grid)},
	}}
}
