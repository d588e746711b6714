package ordergrid

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Reasons of Secure.
const (
	reasonClientsProven     = "ClientsProven"
	reasonInsecureAccepted  = "InsecureAccepted"
	reasonInsecureByDefault = "InsecureByDefault"
	reasonClientsNotAsked   = "ClientsNotAsked"
	reasonTurningOnTLS      = "TurningOnTLS"
	reasonPlainClients      = "PlainClientsAccepted"
)

const (
	openDoor   = "any client that reaches the data port may submit, read and replace orders, and traffic can be read on the network"
	howToClose = "add spec.security.tls beside insecure: Accept, give the clients TLS, then remove insecure"
)

// judgeSecure: connections must be authenticated.
func judgeSecure(o *observation) judgement {
	s := &o.grid.Spec.Security
	switch {
	case s.TLS == nil && s.Insecure == api.InsecureAccept:
		return judgement{metav1.ConditionFalse, reasonInsecureAccepted, "spec.security.insecure is Accept: " + openDoor + ". To change that, " + howToClose}
	case s.TLS == nil:
		return judgement{metav1.ConditionFalse, reasonInsecureByDefault, "there is no spec.security.tls, which was the default when this grid was created: " + openDoor +
			". If that is intended, write spec.security.insecure: Accept; if not, " + howToClose}
	case s.Insecure == api.InsecureAccept:
		return judgement{metav1.ConditionFalse, reasonPlainClients, "spec.security.insecure is Accept beside tls: " + openDoor + o.stage.clause() + ". Remove insecure when every client has TLS"}
	case o.stage.underWay() != "":
		return judgement{metav1.ConditionFalse, reasonTurningOnTLS, "TLS is being enabled; " + o.stage.underWay()}
	case s.Enforced():
		return judgement{metav1.ConditionTrue, reasonClientsProven, "clients and nodes are authenticated, and a client may do only what a rule gives it"}
	case s.TLS.ClientAuth == api.ClientAuthNone:
		return judgement{metav1.ConditionFalse, reasonClientsNotAsked, "spec.security.tls.clientAuth is None and clients are not authenticated: every client may do everything. Set spec.security.authorization.mode to Enforce, with rules; or clientAuth to Require"}
	case s.TLS.ClientAuthorities != nil:
		return judgement{metav1.ConditionFalse, reasonClientsNotAsked, "every client of an authority in spec.security.tls.clientAuthorities may do everything. Set spec.security.authorization.mode to Enforce, with rules; or remove clientAuthorities"}
	}
	return judgement{metav1.ConditionTrue, reasonClientsProven, "clients and nodes are authenticated by a certificate of the authority of the grid's nodes; a client that has one may do everything"}
}
