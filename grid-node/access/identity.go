package access

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// Identity is the verified identity of a client.
type Identity struct {
	User   string   // common name of the certificate, or the user name of the token
	URIs   []string // URI names of the certificate, for example spiffe://…
	Groups []string // organizations of the certificate, or the groups of the token
	// Token reports that a token, not a certificate, proves the identity.
	Token bool
	// tools marks the operator's own programs; only OfCertificate sets it.
	tools bool
}

// serviceAccounts is the prefix of the names that Kubernetes gives service accounts and
// their groups. An authority that signs any name must not be able to make service
// accounts.
const serviceAccounts = "system:serviceaccount"

const accountPrefix = serviceAccounts + ":"

// OfCertificate returns the identity that a verified certificate proves, read as
// Kubernetes reads it: common name and organizations. own reports that an authority of
// nodes signed it; only such a certificate can be the operator's tools. It returns nil for
// nil.
func OfCertificate(cert *x509.Certificate, own bool) *Identity {
	if cert == nil {
		return nil
	}
	id := &Identity{User: foreign(cert.Subject.CommonName)}
	if own && cert.Subject.CommonName == Tools {
		id.User, id.tools = Tools, true
	}
	for _, g := range cert.Subject.Organization {
		if g = foreign(g); g != "" {
			id.Groups = append(id.Groups, g)
		}
	}
	for _, u := range cert.URIs {
		if name := foreign(u.String()); name != "" {
			id.URIs = append(id.URIs, name)
		}
	}
	if id.User == "" && len(id.URIs)+len(id.Groups) == 0 {
		return nil
	}
	return id
}

// Tools is the common name in the certificate of the operator's own probes and recorders,
// which every grid admits. The name alone is not enough: Rules grant the rights of Tools
// only to an identity that IsTools.
const Tools = "ordergrid-tools"

// IsTools reports whether id is the operator's tools, by the common name of a
// certificate that an authority of nodes signed.
func (id *Identity) IsTools() bool { return id != nil && id.tools }

// foreign returns a name from a certificate, or "" if certificates may not carry it.
func foreign(name string) string {
	if name == Tools || strings.HasPrefix(name, serviceAccounts) {
		return ""
	}
	return name
}

// account is the service account, "namespace/name", that a token proves.
func (id *Identity) account() string {
	rest, ok := strings.CutPrefix(id.User, accountPrefix)
	namespace, name, two := strings.Cut(rest, ":")
	if !ok || !two || !id.Token {
		return ""
	}
	return namespace + "/" + name
}

// maxShown bounds how much of a client's name appears in a log or reply.
const maxShown = 128

// String is for logs and error replies: printable, without secrets.
func (id *Identity) String() string {
	switch {
	case id == nil:
		return "a client without a certificate and a token"
	case id.account() != "":
		return fmt.Sprintf("service account %.*s", maxShown, printable(id.account()))
	case id.User != "":
		return fmt.Sprintf("user %.*q", maxShown, id.User)
	case len(id.URIs) > 0:
		return fmt.Sprintf("user %.*q", maxShown, id.URIs[0])
	}
	if len(id.Groups) == 0 {
		return "a client without a name"
	}
	return fmt.Sprintf("a member of group %.*q", maxShown, id.Groups[0])
}

// Name is User, or a substitute if it is empty.
func (id *Identity) Name() string {
	switch {
	case id == nil:
		return ""
	case id.User == "" && len(id.URIs) > 0:
		return id.URIs[0]
	}
	return id.User
}

// Key identifies a client for quotas; clients cannot choose it. Empty only for nil.
func (id *Identity) Key() string {
	switch {
	case id == nil:
		return ""
	case id.Name() == "":
		return fmt.Sprintf("%t groups %q", id.Token, id.Groups)
	}
	return fmt.Sprintf("%t %q", id.Token, id.Name())
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
