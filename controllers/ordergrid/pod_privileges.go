package ordergrid

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// privileges collects the fields of a pod template beyond a restricted pod. TestEveryPodFieldIsClassified compares it
// with the fields of Kubernetes' API.
type privileges struct {
	list []privilege
}

func (c *privileges) add(field, feature, value string) {
	c.list = append(c.list, privilege{field, feature, value})
}

func (c *privileges) addIf(is bool, field, feature string) {
	if is {
		c.add(field, feature, "true")
	}
}

// privilegesOf lists the fields of a template beyond a restricted pod, in field order.
func privilegesOf(template *corev1.PodTemplateSpec) []privilege {
	c, spec := &privileges{}, &template.Spec
	for _, key := range slices.Sorted(maps.Keys(template.Annotations)) {
		value := template.Annotations[key]
		if strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) && value == corev1.DeprecatedAppArmorBetaProfileNameUnconfined {
			c.add(".metadata.annotations["+key+"]", "SecurityProfile", value)
		}
	}
	c.addIf(spec.HostNetwork, ".spec.hostNetwork", "HostNetwork")
	c.addIf(spec.HostPID, ".spec.hostPID", "HostPID")
	c.addIf(spec.HostIPC, ".spec.hostIPC", "HostIPC")
	if spec.PriorityClassName != "" {
		c.add(".spec.priorityClassName", "PriorityClass", spec.PriorityClassName)
	}
	if spec.Priority != nil {
		c.add(".spec.priority", "PriorityClass", strconv.Itoa(int(*spec.Priority)))
	}
	if spec.NodeName != "" {
		c.add(".spec.nodeName", "NodeName", spec.NodeName)
	}
	for i := range spec.Volumes {
		c.volume(&spec.Volumes[i])
	}
	pod := ptr.Deref(spec.SecurityContext, corev1.PodSecurityContext{})
	for _, s := range pod.Sysctls {
		c.add(".spec.securityContext.sysctls["+s.Name+"]", "Sysctl", s.Name)
	}
	c.profiles(".spec.securityContext", pod.SeccompProfile, pod.AppArmorProfile, pod.SELinuxOptions, pod.WindowsOptions)
	if pod.RunAsUser != nil && *pod.RunAsUser == 0 {
		c.add(".spec.securityContext.runAsUser", "Root", "0")
	}
	for i := range spec.InitContainers {
		c.container("initContainers", &spec.InitContainers[i], &pod)
	}
	for i := range spec.Containers {
		c.container("containers", &spec.Containers[i], &pod)
	}
	for i := range spec.EphemeralContainers {
		e := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		c.container("ephemeralContainers", &e, &pod)
	}
	return c.list
}

// container is one container of any kind; omitted fields are the pod's.
func (c *privileges) container(list string, container *corev1.Container, pod *corev1.PodSecurityContext) {
	field := fmt.Sprintf(".spec.%s[%s]", list, container.Name)
	for _, p := range container.Ports {
		if p.HostPort != 0 {
			port := strconv.Itoa(int(p.HostPort))
			c.add(field+".ports["+port+"].hostPort", "HostPort", port)
		}
	}
	for _, e := range container.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			c.add(field+".env["+e.Name+"].valueFrom.secretKeyRef", "Secret", e.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, e := range container.EnvFrom {
		if e.SecretRef != nil {
			c.add(field+".envFrom.secretRef", "Secret", e.SecretRef.Name)
		}
	}
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", container.LivenessProbe}, {"readinessProbe", container.ReadinessProbe}, {"startupProbe", container.StartupProbe}} {
		if p.probe != nil {
			c.host(field+"."+p.name, p.probe.HTTPGet, p.probe.TCPSocket)
		}
	}
	if l := container.Lifecycle; l != nil {
		for i, h := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil {
				c.host(field+".lifecycle."+[]string{"postStart", "preStop"}[i], h.HTTPGet, h.TCPSocket)
			}
		}
	}
	c.security(field+".securityContext", ptr.Deref(container.SecurityContext, corev1.SecurityContext{}), pod)
}

// host is a kubelet's request to another address than the pod's.
func (c *privileges) host(field string, get *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction) {
	if get != nil && get.Host != "" {
		c.add(field+".httpGet.host", "HostProbe", get.Host)
	}
	if tcp != nil && tcp.Host != "" {
		c.add(field+".tcpSocket.host", "HostProbe", tcp.Host)
	}
}

// security checks a container against the Restricted Pod Security Standard.
func (c *privileges) security(field string, s corev1.SecurityContext, pod *corev1.PodSecurityContext) {
	c.addIf(ptr.Deref(s.Privileged, false), field+".privileged", "Privileged")
	if m := ptr.Deref(s.ProcMount, corev1.DefaultProcMount); m != corev1.DefaultProcMount {
		c.add(field+".procMount", "Privileged", string(m))
	}
	if ptr.Deref(s.AllowPrivilegeEscalation, true) {
		c.add(field+".allowPrivilegeEscalation", "PrivilegeEscalation", orUnset(s.AllowPrivilegeEscalation))
	}
	capabilities := ptr.Deref(s.Capabilities, corev1.Capabilities{})
	if !slices.Contains(capabilities.Drop, "ALL") {
		c.add(field+".capabilities.drop", "Capability", "without ALL")
	}
	for _, name := range capabilities.Add {
		if name != "NET_BIND_SERVICE" {
			c.add(field+".capabilities.add", "Capability", string(name))
		}
	}
	nonRoot, user := s.RunAsNonRoot, s.RunAsUser
	if nonRoot == nil {
		nonRoot = pod.RunAsNonRoot
	}
	if !ptr.Deref(nonRoot, false) {
		c.add(field+".runAsNonRoot", "Root", orUnset(nonRoot))
	}
	if user != nil && *user == 0 {
		c.add(field+".runAsUser", "Root", "0")
	}
	if s.SeccompProfile == nil && pod.SeccompProfile == nil {
		c.add(field+".seccompProfile", "SecurityProfile", "unset")
	}
	c.profiles(field, s.SeccompProfile, s.AppArmorProfile, s.SELinuxOptions, s.WindowsOptions)
}

func orUnset(b *bool) string {
	if b == nil {
		return "unset"
	}
	return strconv.FormatBool(*b)
}

// profiles are the common fields of a pod and a container.
func (c *privileges) profiles(field string, seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile, selinux *corev1.SELinuxOptions, windows *corev1.WindowsSecurityContextOptions) {
	if seccomp != nil && seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault && seccomp.Type != corev1.SeccompProfileTypeLocalhost {
		c.add(field+".seccompProfile.type", "SecurityProfile", string(seccomp.Type))
	}
	if appArmor != nil && appArmor.Type != corev1.AppArmorProfileTypeRuntimeDefault && appArmor.Type != corev1.AppArmorProfileTypeLocalhost {
		c.add(field+".appArmorProfile.type", "SecurityProfile", string(appArmor.Type))
	}
	if selinux != nil {
		contained := []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
		if !slices.Contains(contained, selinux.Type) || selinux.User != "" || selinux.Role != "" {
			c.add(field+".seLinuxOptions", "SecurityProfile", strings.Join([]string{selinux.User, selinux.Role, selinux.Type}, ":"))
		}
	}
	if windows != nil {
		c.addIf(ptr.Deref(windows.HostProcess, false), field+".windowsOptions.hostProcess", "Privileged")
	}
}
