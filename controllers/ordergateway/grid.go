package ordergateway

import (
	"fmt"
	"strings"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// gridEnd is the grid of a gateway, as its pods need it.
type gridEnd struct {
	name, endpoint  string
	secret, tlsName string // empty: without TLS
	rules           string // ConfigMap with the rules of the nodes; empty: they have none
	tokens          bool   // the nodes judge clients by their tokens
	columns         []string
}

// problem is why a gateway cannot run; the zero value: it can.
type problem struct{ reason, message string }

// takesTokens reports whether the nodes of a grid judge clients by their tokens.
func takesTokens(grid *api.OrderGrid) bool {
	s := &grid.Spec.Security
	return grid.TakesTLS() && s.Enforced() && s.TLS.ClientAuth == api.ClientAuthNone
}

// resolve describes the grid; nil if it does not exist.
func resolve(g *api.OrderGateway, grid *api.OrderGrid) (*gridEnd, problem) {
	if grid == nil {
		return nil, problem{reasonGridNotFound, fmt.Sprintf("spec.gridRef: there is no OrderGrid %s in namespace %s; create it, or correct the name", g.Spec.GridRef.Name, g.Namespace)}
	}
	e := &gridEnd{name: grid.Name, endpoint: fmt.Sprintf("%s.%s.svc:%d", api.ClientServiceName(grid.Name), grid.Namespace, api.DataPort)}
	if bad := listenersCan(g, grid); bad.reason != "" {
		return nil, bad
	}
	for _, x := range grid.Spec.OrderIndex {
		e.columns = append(e.columns, strings.TrimSuffix(fmt.Sprintf("%d:%s:%s", x.Tag, strings.ToLower(string(x.Type)), x.Name), ":"))
	}
	if grid.Spec.Security.Enforced() {
		e.rules = api.AuthorizationConfigMap(grid.Name)
	}
	if !grid.TakesTLS() {
		return e, problem{}
	}
	e.tokens = takesTokens(grid)
	var needed []string
	for _, p := range g.Spec.GridPermissions() {
		needed = append(needed, string(p))
	}
	e.tlsName = api.TLSName(grid.Name, grid.Namespace)
	switch {
	case g.Spec.Credentials != nil:
		e.secret = g.Spec.Credentials.SecretName
	case grid.Spec.Security.TLS.Secrets != nil:
		return nil, problem{reasonCredentialsMissing, fmt.Sprintf("spec.credentials: OrderGrid %s has certificates that are managed externally, and none for this gateway; issue one with the common name %s, put it into a Secret with the keys %s, %s and %s, "+
			"set spec.credentials.secretName, and give it the permissions %s where the grid enforces authorization", grid.Name, api.GatewayUser(g.Name), keyCA, keyCert, keyKey, strings.Join(needed, ", "))}
	default:
		e.secret = api.TLSGatewaySecret(grid.Name, g.Name)
	}
	return e, problem{}
}
