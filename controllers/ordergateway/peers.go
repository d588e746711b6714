package ordergateway

import (
	"cmp"
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
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
	for _, s := range answers {
		if s.Listeners.WebSocket == nil {
			continue
		}
		if other, text := o.missedBy(s.pod, s.Listeners.WebSocket.Peers); text != "" {
			return judgement{metav1.ConditionFalse, reasonPeersLost, fmt.Sprintf("pod %s has no connection to %s, and its clients do not get what is published there: %s; see `kubectl get secret -n %s %s`, the certificate of the listener and Service %s",
				s.pod, other, messages.Cut(text, 512), o.gateway.Namespace, o.gateway.Spec.Streams.PeersFrom.SecretName, api.GatewayPeersName(o.gateway.Name))}
		}
	}
	if len(answers) < len(o.said) {
		return judgement{metav1.ConditionUnknown, reasonNotAllAnswer, fmt.Sprintf("%d of %d pods do not report", len(o.said)-len(answers), len(o.said))}
	}
	return judgement{metav1.ConditionTrue, reasonConnected, fmt.Sprintf("what clients publish comes to clients of all %d pods", len(answers))}
}

// missedBy returns another pod that a pod is not connected to, and why; text is empty if there is none. A pod that begins or
// ends is no trouble: it is not ready.
func (o *observation) missedBy(pod string, list []peerAnswer) (other, text string) {
	known := map[string]peerAnswer{}
	for _, p := range list {
		host, _, err := net.SplitHostPort(p.Address)
		if err != nil {
			return "other pods", cmp.Or(p.Error, "their addresses are not known")
		}
		known[host] = p
	}
	for i := range o.pods {
		p := &o.pods[i]
		if p.Name == pod || !serves(p) {
			continue
		}
		text = "its address is not known there"
		for _, ip := range append([]corev1.PodIP{{IP: p.Status.PodIP}}, p.Status.PodIPs...) {
			if a, is := known[ip.IP]; is && a.Connected {
				text = ""
				break
			} else if is {
				text = cmp.Or(a.Error, "it is not connected yet")
			}
		}
		if text != "" {
			return p.Name, text
		}
	}
	return "", ""
}

// serves reports whether a pod is ready and stays.
func serves(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
