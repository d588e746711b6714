package ordergateway

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Volumes of a pod, and the names of files in them. The kubelet replaces the files when their Secret or ConfigMap
// changes, and order-gateway reads them anew.
const (
	volumeGrid      = "grid"
	volumeSessions  = "sessions"
	volumePasswords = "passwords"
	volumeRules     = "rules"
	volumeClients   = "clients"
	volumeTokens    = "tokens"
	volumeUsers     = "users"
	volumePeers     = "peers"

	sessionsFile = "sessions.json"
	rulesFile    = "rules.json" // and the key of the ConfigMap
	clientsFile  = "clients.json"
	usersFile    = "users.json"
	peerFile     = "token"
	keyCA        = "ca.crt"
	keyCert      = "tls.crt"
	keyKey       = "tls.key"
)

func dirOf(volume string) string { return "/etc/ordergrid/" + volume }

// volumeOf names the volume with the certificate of a listener.
func volumeOf(l *api.GatewayListener) string { return "listener-" + l.Name }

// mount is a volume with its place.
type mount struct{ volume corev1.Volume }

func (m *mount) dir() string { return dirOf(m.volume.Name) }

func mounts(g *api.OrderGateway, grid *gridEnd) (list []mount) {
	if grid.secret != "" {
		list = append(list, ofSecret(volumeGrid, grid.secret, certificateItems()...))
	}
	for i := range g.Spec.Listeners {
		if l := &g.Spec.Listeners[i]; l.TLS != nil {
			list = append(list, ofSecret(volumeOf(l), l.TLS.SecretName, certificateItems()...))
		}
	}
	if grid.rules != "" && needsRules(g) {
		list = append(list, ofConfigMap(volumeRules, grid.rules, corev1.KeyToPath{Key: rulesFile, Path: rulesFile}))
	}
	list = append(append(list, sessionMounts(g)...), clientMounts(g)...)
	if s := g.Spec.SQL; s != nil && s.UsersFrom != nil {
		list = append(list, ofSecret(volumeUsers, s.UsersFrom.SecretName, corev1.KeyToPath{Key: s.UsersFrom.Key, Path: usersFile}))
	}
	return list
}

// sessionMounts are those of the listener for FIX.
func sessionMounts(g *api.OrderGateway) (list []mount) {
	s := g.Spec.SessionsFrom
	if s == nil {
		return nil
	}
	if s.Secret != nil {
		list = append(list, ofSecret(volumeSessions, s.Secret.Name, corev1.KeyToPath{Key: s.Secret.Key, Path: sessionsFile}))
	} else {
		list = append(list, ofConfigMap(volumeSessions, s.ConfigMap.Name, corev1.KeyToPath{Key: s.ConfigMap.Key, Path: sessionsFile}))
	}
	if s.PasswordsFrom != nil {
		list = append(list, ofSecret(volumePasswords, s.PasswordsFrom.SecretName))
	}
	return list
}

// clientMounts are those of the listener for WebSocket.
func clientMounts(g *api.OrderGateway) (list []mount) {
	if g.Spec.Streams == nil {
		return nil
	}
	if p := g.Spec.Streams.PeersFrom; p != nil {
		list = append(list, ofSecret(volumePeers, p.SecretName, corev1.KeyToPath{Key: p.Key, Path: peerFile}))
	}
	c := g.Spec.Streams.ClientsFrom
	if c == nil {
		return list
	}
	if c.Secret != nil {
		list = append(list, ofSecret(volumeClients, c.Secret.Name, corev1.KeyToPath{Key: c.Secret.Key, Path: clientsFile}))
	} else {
		list = append(list, ofConfigMap(volumeClients, c.ConfigMap.Name, corev1.KeyToPath{Key: c.ConfigMap.Key, Path: clientsFile}))
	}
	if c.TokensFrom != nil {
		list = append(list, ofSecret(volumeTokens, c.TokensFrom.SecretName))
	}
	return list
}

func certificateItems() (items []corev1.KeyToPath) {
	for _, key := range []string{keyCA, keyCert, keyKey} {
		items = append(items, corev1.KeyToPath{Key: key, Path: key})
	}
	return items
}

// ofConfigMap mounts keys of a ConfigMap.
func ofConfigMap(name, configMap string, items ...corev1.KeyToPath) mount {
	return mount{projected(name, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Items: items}})}
}

// ofSecret mounts keys of a Secret, or all of them.
func ofSecret(name, secret string, items ...corev1.KeyToPath) mount {
	return mount{projected(name, corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: items}})}
}

// projected can be read by the group of the container, and by no other.
func projected(name string, source corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440), Sources: []corev1.VolumeProjection{source},
	}}}
}
