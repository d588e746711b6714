package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
)

const (
	peerKeyVolume = "peer-key"
	peerKeyDir    = "/etc/ordergrid/peer-key"
)

// Reasons of PeersProved.
const (
	reasonPeerKey       = "PeerKey"
	reasonCertificates  = "Certificates"
	reasonPeersInsecure = "InsecurePeers"
	reasonPodsBefore    = "PodsWithoutKey"
)

// keepPeerKey makes the Secret with the key by which the grid's nodes know each other. It is created and never read: that
// takes the least right to Secrets there is. One that is there already stays as it is, whoever made it; what is wrong with
// it the nodes say that cannot start.
func (r *run) keepPeerKey(ctx context.Context) error {
	r.keyless = withoutPeerKey(r.pods)
	// The condition is there once the Secret was. A pod that waits for its volumes may wait for this one: if it was that
	// of a grid of the same name that was just being deleted, or if somebody deleted it.
	made, waits := meta.FindStatusCondition(r.grid.Status.Conditions, api.ConditionPeersProved) != nil, slices.ContainsFunc(r.pods, waitsForVolumes)
	if waits {
		r.lookWithin(tlsLookTrouble)
	}
	r.peerKey = made
	if made && !(waits && r.remembered.mayMakePeerKey(r.Clock.Now())) {
		return nil
	}
	s := peerKeySecret(r.grid, peerkey.New())
	if err := controllerutil.SetControllerReference(r.grid, s, r.Client.Scheme()); err != nil {
		return err
	}
	switch err := r.Client.Create(ctx, s); {
	case err == nil:
		countWrite("Secret", apply.Created)
		wrote(ctx, apply.Created.String(), "Secret", s.Name)
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create Secret %s with the peer key of the grid: %w", s.Name, err)
	}
	r.peerKey = true
	return nil
}

// waitsForVolumes reports whether a kubelet has the pod and has started no container of it.
func waitsForVolumes(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodPending && p.Status.StartTime != nil && slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == "ContainerCreating"
	})
}

func peerKeySecret(grid *api.OrderGrid, key peerkey.Key) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: gridMeta(grid, api.PeerKeySecret(grid.Name)), Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{api.PeerKeyFile: []byte(key.Text())}}
}

func peerKeyVolumeOf(grid *api.OrderGrid) corev1.Volume {
	source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: api.PeerKeySecret(grid.Name)},
		Items: []corev1.KeyToPath{{Key: api.PeerKeyFile, Path: api.PeerKeyFile}}}
	return corev1.Volume{Name: peerKeyVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440), // the container's group reads it
		Sources:     []corev1.VolumeProjection{{Secret: source}},
	}}}
}

func peerKeyArgs(grid *api.OrderGrid) []string {
	args := []string{"--peer-key-file", peerKeyDir + "/" + api.PeerKeyFile}
	if insecurePeers(grid) {
		args = append(args, "--insecure-peers")
	}
	return args
}

// insecurePeers reports whether a person gave up that nodes prove the key.
func insecurePeers(grid *api.OrderGrid) bool {
	return grid.Annotations[api.AnnotationInsecurePeers] == string(api.UnprovedPeersAccept)
}

// withoutPeerKey are the pods whose nodes have no key: of a release before there was one.
func withoutPeerKey(pods []corev1.Pod) (names []string) {
	for i := range pods {
		if !hasPeerKey(&pods[i]) {
			names = append(names, pods[i].Name)
		}
	}
	return names
}

func hasPeerKey(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == peerKeyVolume })
}

// unprovedPeers is what the partitions of a shard say: nodes without a proof are let in as long as pods of the shard have
// no key to prove. Connections with TLS are not concerned.
func (r *run) unprovedPeers(shard int32) api.UnprovedPeers {
	prefix := api.ShardName(r.grid.Name, shard) + "-"
	if slices.ContainsFunc(r.keyless, func(pod string) bool { return strings.HasPrefix(pod, prefix) }) {
		return api.UnprovedPeersAccept
	}
	return ""
}

// tlsOnly reports whether every pod refuses connections without TLS. While that is being turned on or off, nodes connect
// without, too.
func (o *observation) tlsOnly() bool {
	return o.grid.Spec.Security.TLS != nil && (o.stage == nil || o.stage.stage == stageTLS && o.stage.settled)
}

// judgePeers: nodes replicate with nodes of the grid only.
func judgePeers(o *observation) judgement {
	keyless := withoutPeerKey(o.pods)
	switch {
	case !o.peerKey:
		return judgement{} // another step failed before, or the Secret could not be made; Stalled says why
	case o.tlsOnly():
		return judgement{metav1.ConditionTrue, reasonCertificates, "grid nodes prove by their certificates that they are of the grid"}
	case insecurePeers(o.grid):
		return judgement{metav1.ConditionFalse, reasonPeersInsecure, fmt.Sprintf("annotation %s lets any connection that says so replicate: who reaches port %d of a pod can erase orders; remove it",
			api.AnnotationInsecurePeers, api.DataPort)}
	case len(keyless) > 0:
		return judgement{metav1.ConditionFalse, reasonPodsBefore, fmt.Sprintf("%s of a release without a peer key%s; until that is replaced nodes replicate without a proof, and who reaches port %d can erase orders",
			count(len(keyless), "pod is", "pods are"), some(keyless), api.DataPort)}
	}
	return judgement{metav1.ConditionTrue, reasonPeerKey, fmt.Sprintf("grid nodes prove by the key in Secret %s that they are of the grid", api.PeerKeySecret(o.grid.Name))}
}
