package gridlink

import (
	"fmt"
	"path"
	"slices"
	"strings"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Keys of a Secret of credentials, and the names of their files.
const (
	keyCA    = "ca.crt"
	keyCert  = "tls.crt"
	keyKey   = "tls.key"
	keyToken = "token"
)

// end is one of the two grids, resolved.
type end struct {
	role      string // source or target, as in the flags of grid-link
	name      string
	endpoints []string
	grid      *api.OrderGrid       // nil: it is elsewhere
	secret    *api.LinkCredentials // nil: without TLS
	tlsName   string
}

// problem is why a link cannot run; the zero value: it can.
type problem struct{ reason, message string }

// resolve describes an end; grid is that of gridRef, nil if it does not exist.
func resolve(link *api.GridLink, role string, spec *api.LinkEnd, grid *api.OrderGrid) (*end, problem) {
	e := &end{role: role, name: spec.Name(), endpoints: spec.Endpoints, secret: spec.Credentials, tlsName: spec.TLSName}
	if spec.GridRef == nil {
		return e, problem{}
	}
	field := map[string]string{"source": "spec.from", "target": "spec.to"}[role]
	if grid == nil {
		return nil, problem{reasonGridNotFound, fmt.Sprintf("%s.gridRef: there is no OrderGrid %s in namespace %s; create it, or correct the name", field, e.name, link.Namespace)}
	}
	if !slices.ContainsFunc(grid.Sinks(), func(s api.SinkSpec) bool { return s.Name == link.Spec.Reader && s.Type == api.SinkExternal }) {
		return nil, problem{reasonReaderMissing, fmt.Sprintf("%s: OrderGrid %s has no sink %s of type External, which holds the log for the link; add {name: %s, type: External} to its spec.sinks, before orders flow",
			field, e.name, link.Spec.Reader, link.Spec.Reader)}
	}
	e.grid = grid
	e.endpoints = []string{fmt.Sprintf("%s.%s.svc:%d", api.ClientServiceName(grid.Name), grid.Namespace, api.DataPort)}
	if !grid.TakesTLS() {
		e.secret = nil
		return e, problem{}
	}
	e.tlsName = api.TLSName(grid.Name, grid.Namespace)
	if e.secret == nil {
		if !slices.Contains(grid.Spec.Security.TLS.Clients, link.Name) {
			return nil, problem{reasonCredentialsMissing, fmt.Sprintf("%s: OrderGrid %s takes TLS, and the link has no certificate for it; add %s to its spec.security.tls.clients, or set credentials.secretName", field, e.name, link.Name)}
		}
		e.secret = &api.LinkCredentials{SecretName: api.TLSClientSecret(grid.Name, link.Name), Type: api.LinkCertificate}
	}
	return e, problem{}
}

// agree checks what both grids need alike, where both are known.
func agree(from, to *end) problem {
	if from.grid == nil || to.grid == nil || from.grid.Spec.Partitions == to.grid.Spec.Partitions {
		return problem{}
	}
	return problem{reasonPartitionsDiffer, fmt.Sprintf("OrderGrid %s has %d partitions and %s has %d; a standby has as many as its source: create %s anew with spec.partitions %d",
		from.name, from.grid.Spec.Partitions, to.name, to.grid.Spec.Partitions, to.name, from.grid.Spec.Partitions)}
}

// dir is where the credentials of an end are in the pod.
func (e *end) dir() string { return "/etc/ordergrid/" + e.role }

// keys are those of the Secret that the pod needs.
func (e *end) keys() []string {
	switch {
	case e.secret == nil:
		return nil
	case e.secret.Type == api.LinkToken:
		return []string{keyCA, keyToken}
	}
	return []string{keyCA, keyCert, keyKey}
}

// args are the flags of grid-link for this end.
func (e *end) args() []string {
	flag := func(name string) string { return "--" + e.role + "-" + name }
	args := []string{flag("grid"), e.name, flag("endpoint"), strings.Join(e.endpoints, ",")}
	names := map[string]string{keyCA: "tls-ca", keyCert: "tls-cert", keyKey: "tls-key", keyToken: "token-file"}
	for _, key := range e.keys() {
		args = append(args, flag(names[key]), path.Join(e.dir(), key))
	}
	if e.tlsName != "" {
		args = append(args, flag("tls-name"), e.tlsName)
	}
	return args
}
