// Package certificates decides what the certificates of a grid have to be when the operator keeps the authority itself:
// when one is replaced, and how one authority follows another without refusing any peer meanwhile. It reads no clock
// and does no I/O.
package certificates

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// Policy is how long certificates are valid.
type Policy struct {
	// Duration of a certificate, and how long before its expiry it is replaced.
	Duration, RenewBefore time.Duration
	// AuthorityDuration of an authority.
	AuthorityDuration time.Duration
	// Overlap is how long an authority is trusted before its first and after its last signature.
	Overlap time.Duration
}

// backdate is the clock skew tolerated for a new certificate.
const backdate = 5 * time.Minute

// Trust is the authorities of one grid. The zero value has none.
type Trust struct {
	// Signing signs. nil: its key is lost, and Next signs once it has been trusted for Overlap.
	Signing *pki.Authority
	// Next is trusted, and signs later. nil: none is on its way.
	Next *pki.Authority
	// Previous signed before, or their key is lost.
	Previous []*x509.Certificate

	NextSince    time.Time // since when Next is trusted
	SigningSince time.Time // since when Signing signs
	Asked        string    // the last request for another authority that was carried out
}

// Nodes is the state of the grid's nodes. nil functions mean that it is not known.
type Nodes struct {
	// Trust reports whether every node trusts the authority.
	Trust func(*x509.Certificate) bool
	// Present reports whether every node presents the certificate that the operator issued last.
	Present func() bool
}

// Step names what Advance did.
type Step string

// Steps in the life of an authority.
const (
	// Created is the first authority of a grid: it signs at once, as there is no earlier one.
	Created Step = "AuthorityCreated"
	// Announced is the next authority: trusted from now on, it signs later.
	Announced Step = "AuthorityAnnounced"
	// Signs: the next authority became the signing one.
	Signs Step = "AuthoritySigns"
	// Retired: the previous ones are no longer trusted.
	Retired Step = "AuthorityRetired"
)

// Found is an authority of which only the certificate is left, in the Secret of the nodes.
func Found(certs []*x509.Certificate) *Trust { return &Trust{Previous: certs} }

// Advance takes the next step that is due; at most one at a time, so that each is written before the next. It changes
// nothing and returns "" while none is due.
func (t *Trust) Advance(name pkix.Name, now time.Time, p Policy, asked string, nodes Nodes) (Step, error) {
	switch {
	case t.Signing == nil && t.Next == nil && len(t.Previous) == 0:
		made, err := newAuthority(name, now, p)
		if err != nil {
			return "", err
		}
		t.Signing, t.SigningSince, t.Asked = made, now, asked
		return Created, nil
	case t.Next != nil && t.switchDue(now, p, nodes):
		if t.Signing != nil {
			t.Previous = append(t.Previous, t.Signing.Cert)
		}
		t.Signing, t.Next, t.SigningSince, t.NextSince = t.Next, nil, now, time.Time{}
		return Signs, nil
	case t.Next == nil && len(t.Previous) > 0 && t.Signing != nil && t.retireDue(now, p, nodes):
		t.Previous = nil
		return Retired, nil
	case t.Next == nil && t.nextDue(now, p, asked):
		made, err := newAuthority(name, now, p)
		if err != nil {
			return "", err
		}
		t.Next, t.NextSince, t.Asked = made, now, asked
		return Announced, nil
	}
	return "", nil
}

// nextDue: there is no signing key, a certificate issued after the overlap would outlive the authority, or a new one is
// requested. Authorities are replaced one at a time: requests made meanwhile are handled afterwards.
func (t *Trust) nextDue(now time.Time, p Policy, asked string) bool {
	switch {
	case t.Signing == nil:
		return true
	case len(t.Previous) > 0:
		return t.ends(now)
	}
	return !now.Before(t.nextAt(p)) || asked != t.Asked
}

// nextAt is when the next authority has to be announced.
func (t *Trust) nextAt(p Policy) time.Time {
	valid := t.Signing.Cert
	early := min(p.Duration+2*p.Overlap, valid.NotAfter.Sub(valid.NotBefore)/2) // of an authority shorter than the policy's
	return valid.NotAfter.Add(-early)
}

// switchDue: clients had the time to learn of the next authority, and the nodes trust it. An expired authority is
// replaced regardless, because its signatures are worthless.
func (t *Trust) switchDue(now time.Time, p Policy, nodes Nodes) bool {
	if t.ends(now) {
		return true
	}
	return !now.Before(t.NextSince.Add(p.Overlap)) && nodes.Trust != nil && nodes.Trust(t.Next.Cert)
}

// ends reports whether everything that could sign has expired, or none of the certificates left is valid.
func (t *Trust) ends(now time.Time) bool {
	if t.Signing != nil {
		return !now.Before(t.Signing.Cert.NotAfter)
	}
	return len(alive(t.Previous, now)) == 0
}

func (t *Trust) retireDue(now time.Time, p Policy, nodes Nodes) bool {
	if len(alive(t.Previous, now)) == 0 {
		return true
	}
	return !now.Before(t.SigningSince.Add(p.Overlap)) && nodes.Present != nil && nodes.Present()
}

// Asks reports whether the next step needs an answer of the nodes.
func (t *Trust) Asks(now time.Time, p Policy) bool {
	switch {
	case t.Next != nil:
		return !now.Before(t.NextSince.Add(p.Overlap))
	case len(t.Previous) > 0 && t.Signing != nil:
		return !now.Before(t.SigningSince.Add(p.Overlap))
	}
	return false
}

// Due is when Advance may next have a step to take.
func (t *Trust) Due(p Policy) time.Time {
	switch {
	case t.Next != nil:
		return t.NextSince.Add(p.Overlap)
	case t.Signing == nil:
		return time.Time{}
	case len(t.Previous) > 0:
		return t.SigningSince.Add(p.Overlap)
	}
	return t.nextAt(p)
}

// Bundle is all trusted certificates in PEM: ca.crt. Expired ones are left out.
func (t *Trust) Bundle(now time.Time) []byte {
	var b bytes.Buffer
	for _, cert := range t.Trusted(now) {
		b.Write(pki.EncodeCert(cert))
	}
	return b.Bytes()
}

// Trusted are the certificates of Bundle.
func (t *Trust) Trusted(now time.Time) []*x509.Certificate {
	var list []*x509.Certificate
	for _, a := range []*pki.Authority{t.Signing, t.Next} {
		if a != nil {
			list = append(list, a.Cert)
		}
	}
	return alive(append(list, t.Previous...), now)
}

func alive(list []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(list), func(c *x509.Certificate) bool { return !now.Before(c.NotAfter) })
}

// newAuthority has a unique name: consecutive authorities must be distinguishable.
func newAuthority(name pkix.Name, now time.Time, p Policy) (*pki.Authority, error) {
	name.CommonName = fmt.Sprintf("%s authority %08x", name.CommonName, rand.Uint32())
	return pki.New(name, pki.Period{From: now.Add(-backdate), To: now.Add(p.AuthorityDuration)})
}
