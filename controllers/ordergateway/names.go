// Package ordergateway reconciles OrderGateways: it runs order-gateway as a Deployment behind a Service, and reports in
// status what the pods tell of themselves. It decides nothing about sessions: which there are is in the file of the user,
// and who may log on is decided by the pods.
package ordergateway

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

const (
	container = "order-gateway"
	portHTTP  = "http"
)

// selector selects the pods of a gateway. It is part of an object whose selector is immutable: never extend it.
func selector(g *api.OrderGateway) map[string]string {
	return map[string]string{objects.LabelComponent: objects.Gateway, api.LabelGateway: g.Name}
}

func objectMeta(g *api.OrderGateway) metav1.ObjectMeta {
	l := objects.Labels(objects.Gateway, g.Name)
	l[api.LabelGateway] = g.Name
	return metav1.ObjectMeta{Name: api.GatewayName(g.Name), Namespace: g.Namespace, Labels: l}
}

// serviceAccount is the identity of the pods. It has no rights, and its token is not mounted.
func serviceAccount(g *api.OrderGateway) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: objectMeta(g), AutomountServiceAccountToken: ptr.To(false)}
}

// service is what clients connect to: the listeners of the pods that are ready.
func service(g *api.OrderGateway) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: objectMeta(g),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: selector(g)},
	}
	s.Annotations = g.Spec.Service.Annotations
	if t := g.Spec.Service.Type; t != "" {
		s.Spec.Type = t
	}
	for i := range g.Spec.Listeners {
		l := &g.Spec.Listeners[i]
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: l.Name, Port: l.Port, TargetPort: intstr.FromString(l.Name), Protocol: corev1.ProtocolTCP})
	}
	return s
}

// peers reports whether the pods know each other.
func peers(g *api.OrderGateway) bool {
	return g.Spec.Streams != nil && g.Spec.Streams.PeersFrom != nil && g.Spec.Listener(api.GatewayWebSocket) != nil
}

// peersService is by what they find each other: it has the address of each, ready or not.
func peersService(g *api.OrderGateway) *corev1.Service {
	l := g.Spec.Listener(api.GatewayWebSocket)
	s := &corev1.Service{ObjectMeta: objectMeta(g), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: selector(g),
		Ports: []corev1.ServicePort{{Name: l.Name, Port: l.Port, TargetPort: intstr.FromString(l.Name), Protocol: corev1.ProtocolTCP}},
	}}
	s.Name = api.GatewayPeersName(g.Name)
	return s
}

// disruptionBudget lets a node drain evict one pod at a time: the sessions of the others stay.
func disruptionBudget(g *api.OrderGateway) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: objectMeta(g),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: selector(g)},
		},
	}
}
