package certificates

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Where the certificates are in a container. The kubelet replaces all files of the volume at once when a Secret changes.
const (
	volumeName   = "tls"
	mountDir     = "/etc/ordergrid/tls"
	clientCAFile = "client-ca.crt"
)

// NodesSecret names the Secret that the grid's nodes mount; the grid has spec.security.tls.
func NodesSecret(grid *api.OrderGrid) string {
	if s := grid.Spec.Security.TLS.Secrets; s != nil {
		return s.Nodes
	}
	return api.TLSNodesSecret(grid.Name)
}

// ToolsSecret names the Secret with which probes and drills authenticate; the grid has spec.security.tls.
func ToolsSecret(grid *api.OrderGrid) string {
	if s := grid.Spec.Security.TLS.Secrets; s != nil {
		return s.Tools
	}
	return api.TLSToolsSecret(grid.Name)
}

// NodeArgs are the flags of a grid node; none without spec.security.tls.
func NodeArgs(grid *api.OrderGrid) []string {
	if grid.Spec.Security.TLS == nil {
		return nil
	}
	args := commonArgs(grid)
	if grid.Spec.Security.TLS.ClientAuthorities != nil {
		args = append(args, "--tls-client-ca", path.Join(mountDir, clientCAFile))
	}
	if grid.Spec.Security.TLS.ClientAuth == api.ClientAuthNone {
		args = append(args, "--tls-client-auth", "none")
	}
	return args
}

func commonArgs(grid *api.OrderGrid) []string {
	return []string{
		"--tls-cert", path.Join(mountDir, KeyCert),
		"--tls-key", path.Join(mountDir, KeyKey),
		"--tls-ca", path.Join(mountDir, KeyCA),
		"--tls-name", api.TLSName(grid.Name, grid.Namespace),
	}
}

// NodeVolume is what a grid node mounts; nil without spec.security.tls.
func NodeVolume(grid *api.OrderGrid) *corev1.Volume {
	if grid.Spec.Security.TLS == nil {
		return nil
	}
	v := Volume(volumeName, NodesSecret(grid))
	if c := grid.Spec.Security.TLS.ClientAuthorities; c != nil {
		v.Projected.Sources = append(v.Projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: c.Name},
			Items:                []corev1.KeyToPath{{Key: KeyCA, Path: clientCAFile}},
		}})
	}
	return v
}

// Mount is the volume mount of a container.
func Mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumeName, MountPath: mountDir, ReadOnly: true}
}

// Volume has certificate, key and authority of a Secret.
func Volume(name, secret string) *corev1.Volume {
	source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}
	for _, key := range []string{KeyCert, KeyKey, KeyCA} {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return &corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440), // the container's group reads it
		Sources:     []corev1.VolumeProjection{{Secret: source}},
	}}}
}

// Attach adds the certificate of the grid's tools to pods that connect to the grid, and the flags for it to their first
// container.
func Attach(template *corev1.PodTemplateSpec, grid *api.OrderGrid) {
	if grid == nil || !grid.TakesTLS() {
		return
	}
	attach(template, grid, ToolsSecret(grid))
}

// AttachSink is Attach with the certificate of a sink that the operator runs a pod for.
func AttachSink(template *corev1.PodTemplateSpec, grid *api.OrderGrid, sink string) {
	if !grid.TakesTLS() {
		return
	}
	secret := api.TLSSinkSecret(grid.Name, sink)
	if grid.Spec.Security.TLS.Secrets != nil { // the operator issues nothing
		secret = ToolsSecret(grid)
	}
	attach(template, grid, secret)
}

func attach(template *corev1.PodTemplateSpec, grid *api.OrderGrid, secret string) {
	spec := &template.Spec
	spec.Volumes = append(spec.Volumes, *Volume(volumeName, secret))
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.SecurityContext.FSGroup == nil {
		spec.SecurityContext.FSGroup = spec.SecurityContext.RunAsGroup
	}
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, Mount())
	c.Args = append(c.Args, commonArgs(grid)...)
}
