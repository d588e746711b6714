package ordergateway

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

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
	// settle is how long a new pod has been ready before the next one is replaced: longer than sessions take to log on
	// again, so that one that cannot serve stops the update.
	settle = 10
	// graceSeconds is what a pod gets to end: longer than order-gateway needs to log its sessions out.
	graceSeconds = 20
	// unknownConns is how many connections without a logon a pod takes beside those of its sessions.
	unknownConns = 1024
)

// deployment replaces pods one at a time: a new one has to be ready before an old one logs its sessions out, and an old
// one that is ending is not waited for longer than it takes the new one to settle.
func deployment(g *api.OrderGateway, grid *gridEnd, defaults Defaults) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: objectMeta(g),
		Spec: appsv1.DeploymentSpec{
			Replicas:             ptr.To(g.Spec.Pods()),
			RevisionHistoryLimit: ptr.To[int32](2),
			MinReadySeconds:      settle,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
			}},
			Selector: &metav1.LabelSelector{MatchLabels: selector(g)},
			Template: pod(g, grid, defaults),
		},
	}
}

func pod(g *api.OrderGateway, grid *gridEnd, defaults Defaults) corev1.PodTemplateSpec {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(portHTTP), Scheme: corev1.URISchemeHTTP}}}
	}
	c := corev1.Container{
		Name: container, Image: defaults.Image, ImagePullPolicy: defaults.ImagePullPolicy, Args: args(g, grid),
		Ports:         []corev1.ContainerPort{{Name: portHTTP, ContainerPort: api.GatewayHTTPPort, Protocol: corev1.ProtocolTCP}},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		Resources: resources(g), SecurityContext: objects.RestrictedContainer(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	c.LivenessProbe.PeriodSeconds, c.LivenessProbe.TimeoutSeconds, c.LivenessProbe.FailureThreshold = 20, 10, 6
	c.ReadinessProbe.PeriodSeconds, c.ReadinessProbe.TimeoutSeconds, c.ReadinessProbe.FailureThreshold = 5, 5, 3
	for i := range g.Spec.Listeners {
		l := &g.Spec.Listeners[i]
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: l.Name, ContainerPort: l.Port, Protocol: corev1.ProtocolTCP})
	}
	meta := objectMeta(g)
	meta.Labels[api.LabelGrid] = grid.name // for the series of its metrics
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
		Spec: corev1.PodSpec{
			ServiceAccountName:            meta.Name,
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			SecurityContext:               objects.RestrictedPodWithVolumes(), // its group reads the Secrets
			TerminationGracePeriodSeconds: ptr.To[int64](graceSeconds),
			NodeSelector:                  g.Spec.NodeSelector,
			Tolerations:                   g.Spec.Tolerations,
			TopologySpreadConstraints:     spread(g),
		},
	}
	for _, m := range mounts(g, grid) {
		t.Spec.Volumes = append(t.Spec.Volumes, m.volume)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: m.volume.Name, MountPath: m.dir(), ReadOnly: true})
	}
	t.Spec.Containers = []corev1.Container{c}
	return t
}

// args are the command line of order-gateway.
func args(g *api.OrderGateway, grid *gridEnd) []string {
	list := []string{"--grid", grid.name, "--endpoint", grid.endpoint, "--http", fmt.Sprintf(":%d", api.GatewayHTTPPort), "--log-format", "json"}
	if grid.secret != "" {
		list = append(list, "--tls-cert", path.Join(dirOf(volumeGrid), keyCert), "--tls-key", path.Join(dirOf(volumeGrid), keyKey), "--tls-ca", path.Join(dirOf(volumeGrid), keyCA), "--tls-name", grid.tlsName)
	}
	for i := range g.Spec.Listeners {
		switch l := &g.Spec.Listeners[i]; l.Protocol {
		case api.GatewayFIX:
			list = append(list, fixArgs(g, l, grid)...)
		case api.GatewayWebSocket:
			list = append(list, streamArgs(g, l, grid)...)
		case api.GatewayPostgreSQL:
			list = append(list, sqlArgs(g, l, grid)...)
		}
	}
	return list
}

// fixArgs are those of the listener for FIX.
func fixArgs(g *api.OrderGateway, l *api.GatewayListener, grid *gridEnd) []string {
	list := []string{
		"--listen", ":" + strconv.Itoa(int(l.Port)), "--sessions", path.Join(dirOf(volumeSessions), sessionsFile), "--passwords", dirOf(volumePasswords),
		"--fix-auth", strings.ToLower(string(g.Spec.Auth)),
		"--max-sessions", strconv.Itoa(int(g.Spec.MaxSessions)), "--max-connections", strconv.Itoa(int(g.Spec.MaxSessions) + unknownConns),
	}
	if c := g.Spec.CancelOnDisconnect; c != nil && c.Mode != api.GatewayCancelNone {
		list = append(list, "--cancel-on-disconnect", string(c.Mode))
		if c.Grace != nil {
			list = append(list, "--cancel-grace", c.Grace.Duration.String())
		}
	}
	for i := range g.Spec.DropCopies {
		list = append(list, "--drop-copy", dropCopy(&g.Spec.DropCopies[i]))
	}
	if l.TLS == nil {
		return append(list, "--fix-insecure-plain")
	}
	if grid.tokens {
		list = append(list, "--fix-grid-tokens")
	}
	asked := "none" // a certificate is taken, and not demanded
	if g.Spec.Auth == api.GatewayAuthCertificate || g.Spec.Auth == api.GatewayAuthBoth {
		asked = "require"
	}
	dir := dirOf(volumeOf(l))
	return append(list, "--fix-tls-cert", path.Join(dir, keyCert), "--fix-tls-key", path.Join(dir, keyKey), "--fix-tls-ca", path.Join(dir, keyCA), "--fix-tls-client-auth", asked)
}

// spread is the user's, or keeps pods apart where that is possible.
func spread(g *api.OrderGateway) []corev1.TopologySpreadConstraint {
	ours := &metav1.LabelSelector{MatchLabels: selector(g)}
	var list []corev1.TopologySpreadConstraint
	for _, c := range g.Spec.TopologySpreadConstraints {
		c = *c.DeepCopy()
		if c.LabelSelector == nil {
			c.LabelSelector = ours
		}
		list = append(list, c)
	}
	if len(list) > 0 {
		return list
	}
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		list = append(list, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: ours})
	}
	return list
}

func resources(g *api.OrderGateway) corev1.ResourceRequirements {
	if g.Spec.Resources != nil {
		return *g.Spec.Resources.DeepCopy()
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// dropCopy is the JSON that order-gateway takes.
func dropCopy(d *api.GatewayDropCopy) string {
	c := struct {
		Name      string   `json:"name"`
		Session   string   `json:"session"`
		Partition *int32   `json:"partition,omitempty"`
		Sessions  []string `json:"sessions,omitempty"`
	}{d.Name, d.Session, d.Partition, d.Sessions}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(c) // strings and a number
	return strings.TrimSpace(text.String())
}
