package ordergrid

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

const (
	sinkContainer = "grid-sink"
	// sinkGrace is how long a sink finishes its batches at its end, and a little more.
	sinkGrace = 20
	// maxJobName is the length of a label's value, which Kubernetes makes of a Job's name.
	maxJobName = 63
)

// sinkSelector selects the pods of a sink. It is part of an object whose selector is immutable: never extend it.
func sinkSelector(grid *api.OrderGrid, s *api.SinkSpec) map[string]string {
	return map[string]string{objects.LabelComponent: objects.Sink, api.LabelGrid: grid.Name, api.LabelSink: s.Name}
}

func sinkMeta(grid *api.OrderGrid, s *api.SinkSpec, name string) metav1.ObjectMeta {
	l := objects.Labels(objects.Sink, grid.Name)
	maps.Copy(l, sinkSelector(grid, s))
	return metav1.ObjectMeta{Name: name, Namespace: grid.Namespace, Labels: l}
}

// sinkServiceAccount is the identity of a sink's pods. It has no rights, and its token is not mounted.
func sinkServiceAccount(grid *api.OrderGrid, s *api.SinkSpec) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: sinkMeta(grid, s, api.SinkName(grid.Name, s.Name)), AutomountServiceAccountToken: ptr.To(false)}
}

// sinkDeployment runs one pod. Two would fence each other, so the old one ends before the next one starts.
func sinkDeployment(grid *api.OrderGrid, s *api.SinkSpec, defaults Defaults, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: sinkMeta(grid, s, api.SinkName(grid.Name, s.Name)),
		Spec: appsv1.DeploymentSpec{
			Replicas:             &replicas,
			RevisionHistoryLimit: ptr.To[int32](2),
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector:             &metav1.LabelSelector{MatchLabels: sinkSelector(grid, s)},
			Template:             sinkPod(grid, s, defaults),
		},
	}
}

func sinkPod(grid *api.OrderGrid, s *api.SinkSpec, defaults Defaults) corev1.PodTemplateSpec {
	args := append(sinkPrograms[s.Type].args(grid, s), "--endpoint", endpoint(grid), "--grid", grid.Name, "--sink", s.Name,
		"--http", fmt.Sprintf(":%d", api.SinkHTTPPort), "--log-format", "json")
	t := sinkTemplate(grid, s, defaults, args)
	c := &t.Spec.Containers[0]
	c.Ports = []corev1.ContainerPort{{Name: portHTTP, ContainerPort: api.SinkHTTPPort, Protocol: corev1.ProtocolTCP}}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(portHTTP), Scheme: corev1.URISchemeHTTP}}}
	}
	c.LivenessProbe, c.ReadinessProbe = probe("/healthz"), probe("/readyz")
	c.LivenessProbe.PeriodSeconds, c.LivenessProbe.TimeoutSeconds, c.LivenessProbe.FailureThreshold = 20, 10, 6
	c.ReadinessProbe.PeriodSeconds, c.ReadinessProbe.TimeoutSeconds, c.ReadinessProbe.FailureThreshold = 5, 5, 3
	t.Spec.TerminationGracePeriodSeconds = ptr.To[int64](sinkGrace)
	certificates.AttachSink(&t, grid, s.Name)
	return t
}

// sinkTemplate is what the pods of a sink have in common, whatever they run.
func sinkTemplate(grid *api.OrderGrid, s *api.SinkSpec, defaults Defaults, args []string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: sinkMeta(grid, s, "").Labels},
		Spec: corev1.PodSpec{
			ServiceAccountName:           api.SinkName(grid.Name, s.Name),
			AutomountServiceAccountToken: ptr.To(false),
			EnableServiceLinks:           ptr.To(false),
			SecurityContext:              objects.RestrictedPodWithVolumes(), // its group reads the Secrets
			Containers: []corev1.Container{{
				Name: sinkContainer, Image: defaults.SinkImage, ImagePullPolicy: defaults.ImagePullPolicy, Args: args,
				Resources: sinkResources(s), SecurityContext: objects.RestrictedContainer(),
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
	if v := sinkSecretVolume(sinkPrograms[s.Type].secrets(s)); v != nil {
		t.Spec.Volumes = append(t.Spec.Volumes, *v)
		t.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: v.Name, MountPath: sinkSecrets, ReadOnly: true}}
	}
	if of := sinkPrograms[s.Type].volume; of != nil {
		if v := of(s); v != nil {
			t.Spec.Volumes = append(t.Spec.Volumes, *v)
			t.Spec.Containers[0].VolumeMounts = append(t.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: archiveDir})
		}
	}
	return t
}

func sinkResources(s *api.SinkSpec) corev1.ResourceRequirements {
	if s.Resources != nil {
		return *s.Resources.DeepCopy()
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// sinkJob prepares the target; nil if there is nothing to prepare. Its name follows from its template, which a Job cannot
// change: another image or another Secret is another Job. What it does is idempotent.
func sinkJob(grid *api.OrderGrid, s *api.SinkSpec, defaults Defaults) *batchv1.Job {
	prepare := sinkPrograms[s.Type].prepare
	if prepare == nil {
		return nil
	}
	args := prepare(grid, s)
	if args == nil {
		return nil
	}
	t := sinkTemplate(grid, s, defaults, args)
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	// Not among the pods of the Deployment.
	t.Labels[objects.LabelComponent] = objects.SinkJob
	text, _ := json.Marshal(t.Spec) // a struct of Kubernetes
	sum := sha256.Sum256(text)
	name, id := api.SinkName(grid.Name, s.Name)+"-prepare", hex.EncodeToString(sum[:4])
	if limit := maxJobName - 1 - len(id); len(name) > limit {
		whole := sha256.Sum256([]byte(name))
		name = name[:limit-9] + "-" + hex.EncodeToString(whole[:4])
	}
	return &batchv1.Job{
		ObjectMeta: sinkMeta(grid, s, name+"-"+id),
		Spec:       batchv1.JobSpec{BackoffLimit: ptr.To[int32](6), Template: t},
	}
}

// sinkPolicy is the NetworkPolicy of a sink's pods. In: requests for metrics. Out: grid nodes, DNS servers and the ports
// of the target, whose address is in spec or in a Secret and cannot be a selector.
func sinkPolicy(grid *api.OrderGrid, s *api.SinkSpec) *networkingv1.NetworkPolicy {
	monitoring := peersOf(grid.Spec.Security.NetworkPolicy.Monitoring)
	if len(monitoring) == 0 {
		monitoring = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}
	}
	selector := sinkSelector(grid, s)
	delete(selector, objects.LabelComponent) // the Job's pods, too
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: sinkMeta(grid, s, api.SinkName(grid.Name, s.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: monitoring, Ports: ports(corev1.ProtocolTCP, api.SinkHTTPPort)}},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: gridSelector(grid)}}}, Ports: ports(corev1.ProtocolTCP, api.DataPort)},
				{Ports: append(ports(corev1.ProtocolUDP, 53), ports(corev1.ProtocolTCP, 53)...)},
			},
		},
	}
	if target := targetPorts(s); target != nil {
		policy.Spec.Egress = append(policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{Ports: target})
	}
	return policy
}

// targetPorts are those of a sink's target: any TCP port where spec does not tell, nil where it is a volume.
func targetPorts(s *api.SinkSpec) []networkingv1.NetworkPolicyPort {
	program := sinkPrograms[s.Type]
	if program.volume != nil && program.volume(s) != nil {
		return nil
	}
	if program.ports != nil {
		if numbers := program.ports(s); len(numbers) > 0 {
			return ports(corev1.ProtocolTCP, numbers...)
		}
	}
	return []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP)}}
}
