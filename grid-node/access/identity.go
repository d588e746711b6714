package access

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// Identity is who a client proved to be.
type Identity struct {
	User   string   // common name of the certificate, or the user name of the token
	URIs   []string // URI names of the certificate, for example spiffe://…
	Groups []string // organizations of the certificate, or the groups of the token
	// Token says that a token proves it, and not a certificate.
	Token bool
}

// serviceAccounts begins the names that Kubernetes gives to service accounts and to
// their groups. An authority that signs any name must not make service accounts.
const serviceAccounts = "system:serviceaccount"

const accountPrefix = serviceAccounts + ":"

// OfCertificate is the identity that a verified certificate proves, read as
// Kubernetes reads it: common name and organizations. nil for none.
func OfCertificate(cert *x509.Certificate) *Identity {
	if cert == nil {
		return nil
	}
	id := &Identity{User: foreign(cert.Subject.CommonName)}
	for _, g := range cert.Subject.Organization {
		if g = foreign(g); g != "" {
			id.Groups = append(id.Groups, g)
		}
	}
	for _, u := range cert.URIs {
		id.URIs = append(id.URIs, u.String())
	}
	if id.User == "" && len(id.URIs)+len(id.Groups) == 0 {
		return nil
	}
	return id
}

// Tools is the common name in the certificate of the operator's own probes and
// recorders, which every grid lets in.
const Tools = "ordergrid-tools"

func foreign(name string) string {
	if strings.HasPrefix(name, serviceAccounts) {
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

// maxShown bounds what of a foreign name stands in a log or an answer.
const maxShown = 128

// String is for logs and refusals: printable, and never a secret.
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

// Name is User, or what stands in its place.
func (id *Identity) Name() string {
	switch {
	case id == nil:
		return ""
	case id.User == "" && len(id.URIs) > 0:
		return id.URIs[0]
	}
	return id.User
}

// Key tells identities apart; nobody chooses his own. Empty for nil only.
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
