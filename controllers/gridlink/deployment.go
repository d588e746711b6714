package gridlink

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

const (
	container = "grid-link"
	portHTTP  = "http"
)

// selector selects the pods of a link. It is part of an object whose selector is immutable: never extend it.
func selector(link *api.GridLink) map[string]string {
	return map[string]string{objects.LabelComponent: objects.Link, api.LabelLink: link.Name}
}

func objectMeta(link *api.GridLink) metav1.ObjectMeta {
	l := objects.Labels(objects.Link, link.Name)
	l[api.LabelLink] = link.Name
	return metav1.ObjectMeta{Name: api.LinkName(link.Name), Namespace: link.Namespace, Labels: l}
}

// serviceAccount is the identity of the link's pods. It has no rights, and its token is not mounted.
func serviceAccount(link *api.GridLink) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: objectMeta(link), AutomountServiceAccountToken: ptr.To(false)}
}

// deployment runs one pod. Two do no harm, an entry is stored once, but both would send it.
func deployment(link *api.GridLink, from, to *end, defaults Defaults) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: objectMeta(link),
		Spec: appsv1.DeploymentSpec{
			Replicas:             ptr.To[int32](1),
			RevisionHistoryLimit: ptr.To[int32](2),
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector:             &metav1.LabelSelector{MatchLabels: selector(link)},
			Template:             pod(link, from, to, defaults),
		},
	}
}

func pod(link *api.GridLink, from, to *end, defaults Defaults) corev1.PodTemplateSpec {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(portHTTP), Scheme: corev1.URISchemeHTTP}}}
	}
	c := corev1.Container{
		Name: container, Image: defaults.Image, ImagePullPolicy: defaults.ImagePullPolicy, Args: args(link, from, to),
		Ports:         []corev1.ContainerPort{{Name: portHTTP, ContainerPort: api.LinkHTTPPort, Protocol: corev1.ProtocolTCP}},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		Resources: resources(link), SecurityContext: objects.RestrictedContainer(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	c.LivenessProbe.PeriodSeconds, c.LivenessProbe.TimeoutSeconds, c.LivenessProbe.FailureThreshold = 20, 10, 6
	c.ReadinessProbe.PeriodSeconds, c.ReadinessProbe.TimeoutSeconds, c.ReadinessProbe.FailureThreshold = 5, 5, 3
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: objectMeta(link).Labels},
		Spec: corev1.PodSpec{
			ServiceAccountName:            api.LinkName(link.Name),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			SecurityContext:               objects.RestrictedPodWithVolumes(), // its group reads the Secrets
			TerminationGracePeriodSeconds: ptr.To[int64](10),                  // it keeps nothing
		},
	}
	for _, e := range []*end{from, to} {
		if v := e.volume(); v != nil {
			t.Spec.Volumes = append(t.Spec.Volumes, *v)
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: e.dir(), ReadOnly: true})
		}
	}
	t.Spec.Containers = []corev1.Container{c}
	return t
}

// args are the command line of grid-link.
func args(link *api.GridLink, from, to *end) []string {
	s := &link.Spec
	list := append([]string{"run"}, from.args()...)
	list = append(list, to.args()...)
	list = append(list, "--reader", s.Reader, "--batch", strconv.Itoa(int(s.Batch)), "--delay", s.Delay.Duration.String())
	if s.MaxBandwidth != nil {
		list = append(list, "--max-bandwidth", strconv.FormatInt(s.MaxBandwidth.Value(), 10))
	}
	return append(list, "--http", fmt.Sprintf(":%d", api.LinkHTTPPort), "--log-format", "json")
}

// volume has the credentials of an end; nil if it needs none. The kubelet replaces the files when the Secret changes, and
// grid-link reads them anew.
func (e *end) volume() *corev1.Volume {
	if e.secret == nil {
		return nil
	}
	source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: e.secret.SecretName}}
	for _, key := range e.keys() {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return &corev1.Volume{Name: e.role, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440), Sources: []corev1.VolumeProjection{{Secret: source}},
	}}}
}

func resources(link *api.GridLink) corev1.ResourceRequirements {
	if link.Spec.Resources != nil {
		return *link.Spec.Resources.DeepCopy()
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}
