package secure

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
)

// A certificate of an authority of clients is valid for clients and never for nodes,
// whatever it contains.
func TestClientAuthorities(t *testing.T) {
	_, own := authority(t, t.TempDir(), "own", node)
	_, foreign := authority(t, t.TempDir(), "desk", node) // a node's certificate except for its authority
	closed := load(t, own)
	own.ClientCA = foreign.CA
	open := load(t, own)
	stranger := load(t, foreign)
	asStranger := mixed(open, stranger)
	if _, _, atServer := meet(t, asStranger, closed.Server()); atServer == nil {
		t.Error("a certificate of an unknown authority is accepted")
	}
	state, atClient, atServer := meet(t, asStranger, open.Server())
	if atClient != nil || atServer != nil {
		t.Fatalf("a client of the other authority: %v, %v", atClient, atServer)
	}
	if len(state.PeerCertificates) == 0 {
		t.Fatal("the node presented nothing")
	}
	if err := open.CheckNode([]*x509.Certificate{stranger.Certificate()}, "10.0.0.1"); err == nil || !strings.Contains(err.Error(), "authority") {
		t.Errorf("the other authority makes nodes: %v", err)
	}
	if err := open.CheckNode([]*x509.Certificate{closed.Certificate()}, "10.0.0.1"); err != nil {
		t.Errorf("the own node: %v", err)
	}
	// When dialling, a node trusts its own authority alone.
	if _, atClient, _ := meet(t, open.Client("10.0.0.1"), stranger.Server()); atClient == nil {
		t.Error("a node of the other authority is dialled")
	}
}

// With optional client certificates: a presented one must be valid.
func TestNoClientCertificateNeeded(t *testing.T) {
	_, own := authority(t, t.TempDir(), "own", node)
	own.ClientAuth = NoClientCert
	id := load(t, own)
	bare := id.Client("10.0.0.1")
	bare.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	if _, atClient, atServer := meet(t, bare, id.Server()); atClient != nil || atServer != nil {
		t.Errorf("without: %v, %v", atClient, atServer)
	}
	_, foreign := authority(t, t.TempDir(), "other", node)
	if _, _, atServer := meet(t, mixed(id, load(t, foreign)), id.Server()); atServer == nil {
		t.Error("an invalid one is accepted")
	}
	if err := id.CheckNode(nil, "10.0.0.1"); err == nil {
		t.Error("a peer without a certificate counts as a node")
	}
	own.ClientAuth = "perhaps"
	if _, err := Load(own); err == nil || !strings.Contains(err.Error(), `"perhaps"`) {
		t.Errorf("an unknown demand: %v", err)
	}
}
