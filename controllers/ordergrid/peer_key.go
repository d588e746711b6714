package ordergrid

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// keepPeerKey creates the Secret with the key with which the grid's nodes authenticate each other. It is created and
// never read: that needs the least permission on Secrets. An existing one is never changed; nodes
// that cannot start with it report its problem.
func (r *run) keepPeerKey(ctx context.Context) error {
	// No StatefulSet is created before the Secret. A pod that waits for its volumes may wait for this one: if it
	// belonged to a grid of the same name that was just being deleted, or was deleted.
	made, waits := len(r.statefulSets) > 0, slices.ContainsFunc(r.pods, waitsForVolumes)
	if waits {
		r.lookWithin(tlsLookTrouble)
	}
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
	return []string{"--peer-key-file", peerKeyDir + "/" + api.PeerKeyFile}
}
