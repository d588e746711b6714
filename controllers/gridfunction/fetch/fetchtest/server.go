// Package fetchtest has servers for tests of fetches: registries and web servers, in the process of the test, that speak
// TLS.
package fetchtest

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	reference "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// Server is a registry, or a web server, that speaks TLS.
type Server struct {
	*httptest.Server
	Host  string         // with its port
	Roots *x509.CertPool // that vouch for it

	mu    sync.Mutex
	asked int
	seen  http.Handler // what clients see; nil: all
}

// Door has a handler answer in place of the server; nil: no more.
func (s *Server) Door(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = h
}

func (s *Server) handler(all http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked++
		h := s.seen
		s.mu.Unlock()
		if h == nil {
			h = all
		}
		h.ServeHTTP(w, r)
	}
}

// Requests that it had.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Serve starts a server, which ends with the test.
func Serve(t *testing.T, all http.Handler) *Server {
	s := &Server{Roots: x509.NewCertPool()}
	s.Server = httptest.NewUnstartedServer(s.handler(all))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	s.Roots.AddCert(s.Certificate())
	s.Host = s.Listener.Addr().String()
	return s
}

// PEM is the certificate of the server.
func (s *Server) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Registry is a registry, with what it holds.
func Registry() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// Layer is one of a manifest that is pushed.
type Layer struct {
	MediaType string
	Bytes     []byte
}

// Push puts a manifest with its layers into the registry, and returns its reference.
func (s *Server) Push(t *testing.T, mediaType string, layers ...Layer) string {
	t.Helper()
	repo := &remote.Repository{Reference: reference.Reference{Registry: s.Host, Repository: "functions/limit"},
		Client: &auth.Client{Client: s.Client()}}
	put := func(to content.Pusher, mediaType string, b []byte) ocispec.Descriptor {
		t.Helper()
		d := content.NewDescriptorFromBytes(mediaType, b)
		if err := to.Push(context.Background(), d, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: mediaType, Config: put(repo.Blobs(), ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: []ocispec.Descriptor{}}
	for _, l := range layers {
		m.Layers = append(m.Layers, put(repo.Blobs(), l.MediaType, l.Bytes))
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return repo.Reference.Registry + "/" + repo.Reference.Repository + "@" + put(repo.Manifests(), mediaType, text).Digest.String()
}
