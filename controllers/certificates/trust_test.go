package certificates

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	usual = Policy{Duration: 90 * 24 * time.Hour, RenewBefore: 30 * 24 * time.Hour, AuthorityDuration: 5 * 365 * 24 * time.Hour, Overlap: 24 * time.Hour}
	gridN = pkix.Name{CommonName: "rtd"}
	nodeL = Leaf{Name: "rtd", DNS: []string{"rtd-client.trading.svc"}}
	toolL = Leaf{Name: "ordergrid-tools", Groups: []string{"ordergrid.dev"}}
)

func know(yes bool) Nodes {
	return Nodes{Trust: func(*x509.Certificate) bool { return yes }, Present: func() bool { return yes }}
}

// advance expects one step, "" for none.
func advance(t *testing.T, trust *Trust, now time.Time, asked string, nodes Nodes, want Step) {
	t.Helper()
	got, err := trust.Advance(gridN, now, usual, asked, nodes)
	if err != nil || got != want {
		t.Fatalf("at %s: step %q, %v; want %q", now.Sub(start), got, err, want)
	}
}

// TestLifeOfAnAuthority goes through a whole change: nothing signs before clients had the time to learn of it, and no
// authority is dropped while certificates of it are in use.
func TestLifeOfAnAuthority(t *testing.T) {
	trust := &Trust{}
	advance(t, trust, start, "", Nodes{}, Created)
	advance(t, trust, start, "", know(true), "")
	first := trust.Signing.Cert
	due := trust.Due(usual)
	if left := first.NotAfter.Sub(due); left < usual.Duration+usual.Overlap {
		t.Errorf("the next authority comes %s before the end of the first, too late for a certificate of %s after an overlap of %s", left, usual.Duration, usual.Overlap)
	}
	advance(t, trust, due.Add(-time.Second), "", know(true), "")
	advance(t, trust, due, "", Nodes{}, Announced)
	if trust.Signing.Cert != first || len(trust.Trusted(due)) != 2 {
		t.Fatal("the next authority signs at once, or is not trusted")
	}
	advance(t, trust, due.Add(usual.Overlap-time.Second), "", know(true), "")
	at := due.Add(usual.Overlap)
	if !trust.Asks(at, usual) || trust.Asks(at.Add(-time.Second), usual) {
		t.Error("nodes are asked at the wrong time")
	}
	advance(t, trust, at, "", know(false), "") // a node has not read it
	advance(t, trust, at, "", Nodes{}, "")     // no node could be asked
	advance(t, trust, at.Add(time.Hour), "", know(true), Signs)
	if trust.Next != nil || !slices.Equal(trust.Previous, []*x509.Certificate{first}) || len(trust.Trusted(at)) != 2 {
		t.Fatalf("after the change: %+v", trust)
	}
	at = at.Add(time.Hour)
	advance(t, trust, at.Add(usual.Overlap), "", know(false), "") // a node presents an older certificate
	advance(t, trust, at.Add(usual.Overlap), "", know(true), Retired)
	if len(trust.Trusted(at)) != 1 {
		t.Error("the previous one is still trusted")
	}
}

// An expired authority is replaced even if no node knows the next one.
func TestAuthorityThatEnded(t *testing.T) {
	trust := &Trust{}
	advance(t, trust, start, "", Nodes{}, Created)
	end := trust.Signing.Cert.NotAfter
	advance(t, trust, end, "", Nodes{}, Announced) // the operator was down for years
	advance(t, trust, end, "", know(false), Signs)
	if got := trust.Trusted(end); len(got) != 1 || got[0] != trust.Signing.Cert {
		t.Errorf("%d are trusted at the end of the first", len(got))
	}
	advance(t, trust, end, "", know(false), Retired)
}

func TestRequestedAuthority(t *testing.T) {
	trust := &Trust{}
	advance(t, trust, start, "a", Nodes{}, Created) // an earlier request does not create a second one
	advance(t, trust, start, "a", know(true), "")
	advance(t, trust, start, "b", know(true), Announced)
	advance(t, trust, start, "c", know(true), "") // one after the other
	at := start.Add(usual.Overlap)
	advance(t, trust, at, "c", know(true), Signs)
	advance(t, trust, at, "c", know(true), "")
	at = at.Add(usual.Overlap)
	advance(t, trust, at, "c", know(true), Retired)
	advance(t, trust, at, "c", know(true), Announced)
}

// The Secret of the authority is lost: what nodes trust stays trusted, and the new one signs after the overlap.
func TestLostKey(t *testing.T) {
	before := &Trust{}
	advance(t, before, start, "", Nodes{}, Created)
	cert, _, err := nodeL.Issue(before, start, usual)
	if err != nil {
		t.Fatal(err)
	}
	leaf := secure.ParseCertificates(cert)[0]
	trust := Found(secure.ParseCertificates(before.Bundle(start)))
	advance(t, trust, start, "", Nodes{}, Announced)
	if trust.Signing != nil || len(trust.Trusted(start)) != 2 {
		t.Fatalf("%+v", trust)
	}
	if why := nodeL.Why(leaf, trust, start, usual); why != "" {
		t.Errorf("a good certificate is to be replaced without a signing key: %s", why)
	}
	if _, _, err := nodeL.Issue(trust, start, usual); err == nil || !strings.Contains(err.Error(), "2026-01-03T03:04:05Z") {
		t.Errorf("issued without a key: %v", err)
	}
	again := reread(t, trust)
	advance(t, again, start.Add(usual.Overlap), "", know(true), Signs)
	if why := nodeL.Why(leaf, again, start, usual); why != "another authority signs now" {
		t.Errorf("the certificate of the lost authority: %q", why)
	}
	if trust = Found(nil); trust.Signing != nil {
		t.Error("an authority without a certificate")
	}
	advance(t, trust, start, "", Nodes{}, Created) // nothing was left: no client trusts anything
}

func reread(t *testing.T, trust *Trust) *Trust {
	t.Helper()
	data, annotations, err := trust.Write()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(data, annotations)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestSecretKeepsAll: every state of a change survives a write and a read.
func TestSecretKeepsAll(t *testing.T) {
	trust := &Trust{}
	at := start
	for i, want := range []Step{Created, Announced, Signs, Retired} {
		advance(t, trust, at, fmt.Sprint("wish ", i/1), know(true), want)
		again := reread(t, trust)
		if !bytes.Equal(again.Bundle(at), trust.Bundle(at)) || !again.NextSince.Equal(trust.NextSince) || !again.SigningSince.Equal(trust.SigningSince) ||
			again.Asked != trust.Asked || !again.Signing.Key.Equal(trust.Signing.Key) || again.Due(usual) != trust.Due(usual) {
			t.Errorf("after %s: %+v is read as %+v", want, trust, again)
		}
		trust, at = again, at.Add(usual.Overlap)
	}
}

func TestLeaf(t *testing.T) {
	trust, other := &Trust{}, &Trust{}
	advance(t, trust, start, "", Nodes{}, Created)
	advance(t, other, start, "", Nodes{}, Created)
	issue := func(l Leaf, by *Trust, p Policy) *x509.Certificate {
		certPEM, keyPEM, err := l.Issue(by, start, p)
		if err != nil {
			t.Fatal(err)
		}
		cert := ReadLeaf(map[string][]byte{KeyCert: certPEM, KeyKey: keyPEM})
		if cert == nil {
			t.Fatal("what was issued cannot be read")
		}
		return cert
	}
	good := issue(nodeL, trust, usual)
	if got := RenewAt(good, usual); !got.Equal(start.Add(60 * 24 * time.Hour)) {
		t.Errorf("renewed after %s", got.Sub(start))
	}
	for name, c := range map[string]struct {
		cert *x509.Certificate
		at   time.Time
		want string
	}{
		"good":                    {good, start, ""},
		"just before its renewal": {good, start.Add(60*24*time.Hour - time.Second), ""},
		"due":                     {good, start.Add(60 * 24 * time.Hour), "it expires at"},
		"ended":                   {good, good.NotAfter, "it expired at"},
		"none":                    {nil, start, "there is none"},
		"of another authority":    {issue(nodeL, other, usual), start, "another authority"},
		"for another name":        {issue(Leaf{Name: "rtd", DNS: []string{"evil"}}, trust, usual), start, "another name"},
		"a client's":              {issue(Leaf{Name: "rtd"}, trust, usual), start, "another name or purpose"},
	} {
		if got := nodeL.Why(c.cert, trust, c.at, usual); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if why := toolL.Why(issue(toolL, trust, usual), trust, start, usual); why != "" {
		t.Error(why)
	}
	if _, err := Check(secretOf(t, toolL, trust, usual), true, nodeL.DNS[0], start); err == nil {
		t.Error("a client's certificate is valid for nodes")
	}
}

// A certificate cut short by its authority is not renewed in a loop.
func TestLeafCutShort(t *testing.T) {
	short := usual
	short.AuthorityDuration = 10 * 24 * time.Hour // shorter than a certificate
	trust := &Trust{}
	if _, err := trust.Advance(gridN, start, short, "", Nodes{}); err != nil {
		t.Fatal(err)
	}
	cert := secure.ParseCertificates(secretOf(t, nodeL, trust, short)[KeyCert])[0]
	if !cert.NotAfter.Equal(trust.Signing.Cert.NotAfter) {
		t.Errorf("it expires at %s, its authority at %s", cert.NotAfter, trust.Signing.Cert.NotAfter)
	}
	if why := nodeL.Why(cert, trust, start.Add(time.Hour), short); why != "" {
		t.Errorf("to be replaced at once: %s", why)
	}
	if due := trust.Due(short); !due.After(start.Add(time.Hour)) {
		t.Errorf("the next authority is due at once: %s", due)
	}
}

func secretOf(t *testing.T, l Leaf, trust *Trust, p Policy) map[string][]byte {
	t.Helper()
	cert, key, err := l.Issue(trust, start, p)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{KeyCert: cert, KeyKey: key, KeyCA: trust.Bundle(start)}
}

// TestHostileSecrets: an invalid Secret gives an error that names the key and quotes nothing of its content.
func TestHostileSecrets(t *testing.T) {
	trust, other := &Trust{}, &Trust{}
	advance(t, trust, start, "", Nodes{}, Created)
	advance(t, other, start, "", Nodes{}, Created)
	good, foreign := secretOf(t, nodeL, trust, usual), secretOf(t, nodeL, other, usual)
	if _, err := Check(good, true, nodeL.DNS[0], start); err != nil {
		t.Fatal(err)
	}
	const treasure = "c2VjcmV0LXRyZWFzdXJl"
	hidden := []byte("-----BEGIN " + treasure + "-----\n" + treasure + "\n-----END " + treasure + "-----\n")
	rsa := []byte("-----BEGIN RSA PRIVATE KEY-----\n" + treasure + "\n-----END RSA PRIVATE KEY-----\n")
	for name, c := range map[string]struct {
		data map[string][]byte
		at   time.Time
		want string
	}{
		"empty":                {nil, start, "key tls.crt is missing"},
		"no CA":                {with(good, KeyCA, nil), start, "key ca.crt is missing"},
		"garbage":              {with(good, KeyCert, []byte(treasure)), start, "key tls.crt: there is no certificate"},
		"garbage for a CA":     {with(good, KeyCA, []byte(treasure)), start, "key ca.crt: there is no certificate"},
		"garbage for a key":    {with(good, KeyKey, []byte(treasure)), start, "key tls.key"},
		"an odd block":         {with(good, KeyKey, hidden), start, "key tls.key"},
		"an RSA key":           {with(good, KeyKey, rsa), start, "key tls.key"},
		"the wrong key":        {with(good, KeyKey, foreign[KeyKey]), start, "belongs to the certificate"},
		"the wrong CA":         {with(good, KeyCA, foreign[KeyCA]), start, "no authority in ca.crt signed"},
		"expired":              {good, start.Add(usual.Duration + time.Hour), "which is not now"},
		"not yet":              {good, start.Add(-time.Hour), "which is not now"},
		"a key for the CA":     {with(good, KeyCA, good[KeyKey]), start, "key ca.crt: there is no certificate"},
		"a key as certificate": {with(good, KeyCert, good[KeyKey]), start, "key tls.crt: there is no certificate"},
	} {
		_, err := Check(c.data, true, nodeL.DNS[0], c.at)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		} else if strings.Contains(err.Error(), treasure) {
			t.Errorf("%s: the error quotes the Secret: %v", name, err)
		}
	}
	if _, err := Check(good, true, "other.trading.svc", start); err == nil || !strings.Contains(err.Error(), "not for the DNS name other.trading.svc") {
		t.Errorf("another name: %v", err)
	}
	if _, err := Check(secretOf(t, toolL, trust, usual), false, "", start); err != nil {
		t.Errorf("a client's: %v", err)
	}
}

func with(data map[string][]byte, key string, value []byte) map[string][]byte {
	out := map[string][]byte{}
	for k, v := range data {
		out[k] = v
	}
	out[key] = value
	return out
}

func TestHostileAuthority(t *testing.T) {
	trust := &Trust{}
	advance(t, trust, start, "", Nodes{}, Created)
	advance(t, trust, start, "x", Nodes{}, Announced)
	data, annotations, err := trust.Write()
	if err != nil {
		t.Fatal(err)
	}
	leaf := secretOf(t, nodeL, trust, usual)
	for name, c := range map[string]struct {
		data map[string][]byte
		note string // annotation to drop
		want string
	}{
		"empty":                 {map[string][]byte{}, "", "there is no authority"},
		"half of it":            {with(data, KeyKey, nil), "", "keys tls.crt and tls.key: there is no private key"},
		"another's key":         {with(data, KeyKey, data[keyNextKey]), "", "does not belong"},
		"a certificate, no CA":  {with(with(data, KeyCert, leaf[KeyCert]), KeyKey, leaf[KeyKey]), "", "not a CA certificate"},
		"garbage for the next":  {with(data, keyNextCert, []byte("x")), "", "keys next.crt and next.key"},
		"garbage before":        {with(data, keyPrevious, []byte("x")), "", "key previous.crt: 0 certificates"},
		"without times":         {data, annotationNextSince, "annotation ordergrid.dev/next-since"},
		"thousands of previous": {with(data, keyPrevious, bytes.Repeat(trust.Signing.PEM, 1000)), "", "1000 certificates"},
	} {
		notes := map[string]string{}
		for k, v := range annotations {
			if k != c.note {
				notes[k] = v
			}
		}
		if _, err := Read(c.data, notes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRead: no Secret makes the operator panic, and no error quotes a key.
func FuzzRead(f *testing.F) {
	trust := &Trust{}
	if _, err := trust.Advance(gridN, start, usual, "", Nodes{}); err != nil {
		f.Fatal(err)
	}
	data, _, err := trust.Write()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[KeyCert], data[KeyKey], "2026-01-02T03:04:05Z")
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte{}, "")
	f.Fuzz(func(t *testing.T, cert, key []byte, since string) {
		secret := map[string][]byte{KeyCert: cert, KeyKey: key, KeyCA: cert, keyPrevious: cert}
		notes := map[string]string{annotationSigningSince: since}
		if trust, err := Read(secret, notes); err == nil {
			for range 3 {
				if _, err := trust.Advance(gridN, start, usual, "", know(true)); err != nil {
					t.Fatal(err)
				}
			}
			trust.Due(usual)
			trust.Bundle(start)
		}
		ReadLeaf(secret)
		_, _ = Check(secret, true, "x", start)
	})
}

// TestRandomLives: for all sequences of requests and answers, an issued certificate is trusted by every client that
// learned of all changes within the overlap.
func TestRandomLives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for life := range 20 {
		trust, at := &Trust{}, start
		var held []*x509.Certificate // a node's bundle, as old as it may be
		var heard time.Time
		var leaf *x509.Certificate
		for range 60 {
			at = at.Add(time.Duration(r.Int64N(int64(usual.Overlap / 3))))
			if _, err := trust.Advance(gridN, at, usual, fmt.Sprint(r.IntN(6)/5), know(r.IntN(4) > 0)); err != nil {
				t.Fatal(err)
			}
			if why := nodeL.Why(leaf, trust, at, usual); why != "" {
				cert, _, err := nodeL.Issue(trust, at, usual)
				if err != nil {
					t.Fatal(err)
				}
				leaf = secure.ParseCertificates(cert)[0]
			}
			if held != nil && !trustedBy(leaf, held) {
				t.Fatalf("life %d: at %s a certificate is of an authority unknown to a peer that read the last change %s ago", life, at.Sub(start), at.Sub(heard))
			}
			if held == nil || at.Sub(heard) > usual.Overlap/2 { // it learns of changes within the overlap
				held, heard = trust.Trusted(at), at
			}
		}
	}
}

func trustedBy(leaf *x509.Certificate, bundle []*x509.Certificate) bool {
	return slices.ContainsFunc(bundle, func(a *x509.Certificate) bool { return leaf.CheckSignatureFrom(a) == nil })
}
