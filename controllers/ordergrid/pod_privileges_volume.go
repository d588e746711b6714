package ordergrid

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ownData are the types of volumes with the pod's own data, its namespace's ConfigMaps, or its image: those of the
// Restricted Pod Security Standard without Secrets, claims and drivers of nodes.
var ownData = map[string]bool{"emptyDir": true, "downwardAPI": true, "configMap": true, "ephemeral": true, "image": true, "projected": true}

// volume collects what a volume mounts that is not the pod's own.
func (c *privileges) volume(v *corev1.Volume) {
	field := ".spec.volumes[" + v.Name + "]"
	for _, kind := range sources(v) {
		switch kind {
		case "hostPath":
			c.add(field+".hostPath", "HostPath", v.HostPath.Path)
		case "secret":
			c.add(field+".secret", "Secret", v.Secret.SecretName)
		case "persistentVolumeClaim":
			c.add(field+".persistentVolumeClaim", "PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
		default:
			if !ownData[kind] {
				c.add(field+"."+kind, "Volume", kind) // with the Secrets that it names
			}
		}
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			c.add(field+".projected.sources.secret", "Secret", s.Secret.Name)
		}
	}
}

// sources are the names of the sources that a volume has: one, or none for an emptyDir.
func sources(v *corev1.Volume) (names []string) {
	of := reflect.ValueOf(v.VolumeSource)
	for i := range of.NumField() {
		if !of.Field(i).IsNil() {
			name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}
