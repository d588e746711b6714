package ordergateway

import (
	"cmp"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/controllers/messages"
)

// peerAnswer is another gateway, as a pod reports it. One without an address is an error of looking them up.
type peerAnswer struct {
	Address   string `json:"address"`
	Connected bool   `json:"connected"`
	Error     string `json:"error"`
}

// judgePeers: every pod gets what clients publish at the others.
func judgePeers(o *observation) judgement {
	if !peers(o.gateway) {
		return judgement{metav1.ConditionTrue, reasonNotServed, "spec.streams.peersFrom is not set: what a client publishes comes to clients of the same pod"}
	}
	answers := o.answers()
	if len(answers) == 0 {
		return o.noAnswer()
	}
	ready := o.readyAddresses()
	for _, s := range answers {
		if s.Listeners.WebSocket == nil {
			continue
		}
		for _, p := range s.Listeners.WebSocket.Peers {
			host, _, err := net.SplitHostPort(p.Address)
			if p.Connected || err == nil && !ready[host] {
				continue // a pod that begins or ends is no trouble
			}
			return judgement{metav1.ConditionFalse, reasonPeersLost, fmt.Sprintf("pod %s has no connection to %s, and its clients do not get what is published there: %s; see `kubectl get secret -n %s %s` and the certificate of the listener",
				s.pod, cmp.Or(p.Address, "other pods"), messages.Cut(p.Error, 512), o.gateway.Namespace, o.gateway.Spec.Streams.PeersFrom.SecretName)}
		}
	}
	return judgement{metav1.ConditionTrue, reasonConnected, fmt.Sprintf("what clients publish comes to clients of all %d pods", len(answers))}
}

// readyAddresses are the addresses of the pods that serve.
func (o *observation) readyAddresses() map[string]bool {
	ready := map[string]bool{}
	for i := range o.pods {
		for _, c := range o.pods[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && o.pods[i].DeletionTimestamp == nil {
				ready[o.pods[i].Status.PodIP] = true
			}
		}
	}
	return ready
}
