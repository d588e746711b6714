package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/ordergrid/ordergrid/controllers/gridfunction/fetch/fetchtest"
)

const (
	user     = "desk"
	password = "swordfish"
)

// clientOf fetches from a server alone.
func clientOf(s *fetchtest.Server) *Client {
	return &Client{Allowed: []string{s.Host}, Roots: s.Roots, MaxBytes: 1 << 20}
}

type layer struct {
	mediaType string
	bytes     []byte
}

// push puts a manifest into a registry, and returns its reference.
func push(t *testing.T, s *fetchtest.Server, manifest string, layers ...layer) string {
	t.Helper()
	var all []fetchtest.Layer
	for _, l := range layers {
		all = append(all, fetchtest.Layer{MediaType: l.mediaType, Bytes: l.bytes})
	}
	return s.Push(t, manifest, all...)
}

// want compares an error: "KIND text"; "" is none.
func want(t *testing.T, err error, kind Kind, text string) {
	t.Helper()
	var e *Error
	switch {
	case text == "" && err != nil:
		t.Errorf("error %v", err)
	case text != "" && !errors.As(err, &e):
		t.Errorf("error %v, want an *Error: … %s", err, text)
	case text != "" && (e.Kind != kind || !strings.Contains(e.Text, text)):
		t.Errorf("error of kind %d: %s\nwant %d: … %s", e.Kind, e.Text, kind, text)
	}
}

func TestOCI(t *testing.T) {
	all := fetchtest.Registry()
	s := fetchtest.Serve(t, all)
	module := []byte("\x00asm\x01\x00\x00\x00 a module")
	large := make([]byte, 1<<20+1)
	for name, c := range map[string]struct {
		manifest string
		layers   []layer
		kind     Kind
		text     string
	}{
		"wasm":                {ocispec.MediaTypeImageManifest, []layer{{"application/wasm", module}}, 0, ""},
		"with a readme":       {ocispec.MediaTypeImageManifest, []layer{{"text/markdown", []byte("# limit")}, {"application/vnd.wasm.content.layer.v1+wasm", module}}, 0, ""},
		"of another toolkit":  {ocispec.MediaTypeImageManifest, []layer{{"application/vnd.module.wasm.content.layer.v1+wasm", module}}, 0, ""},
		"image":               {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayerGzip, zipped(t, archive(t, "etc/", "", "etc/limit.wasm", string(module)))}}, 0, ""},
		"image, plain":        {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayer, archive(t, "limit.wasm", string(module))}}, 0, ""},
		"image, docker's":     {dockerManifest, []layer{{dockerLayer, zipped(t, archive(t, "limit.wasm", string(module)))}}, 0, ""},
		"two modules":         {ocispec.MediaTypeImageManifest, []layer{{"application/wasm", module}, {"application/wasm", append(module, 'b')}}, NoModule, "has layers of types [application/wasm, application/wasm]"},
		"no layer":            {ocispec.MediaTypeImageManifest, nil, NoModule, "has layers of types []"},
		"another artifact":    {ocispec.MediaTypeImageManifest, []layer{{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", module}}, NoModule, "allowed: one of application/wasm"},
		"layers of an image":  {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayer, archive(t, "a", "1")}, {ocispec.MediaTypeImageLayer, archive(t, "b", "2")}}, NoModule, "an image of one layer with one file"},
		"two files":           {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayer, archive(t, "limit.wasm", string(module), "more", "1")}}, NoModule, `more than one file, "more"`},
		"no file":             {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayer, archive(t, "etc/", "")}}, NoModule, "has no file"},
		"a link":              {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayer, archive(t, "limit.wasm", "->/etc/passwd")}}, NoModule, "no regular file"},
		"not compressed":      {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayerGzip, module}}, NoModule, "is not compressed"},
		"no archive":          {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayer, module}}, NoModule, "is no archive"},
		"too large":           {ocispec.MediaTypeImageManifest, []layer{{"application/wasm", large}}, TooLarge, "has 1048577 bytes, allowed: 1048576"},
		"too large, unpacked": {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayerGzip, zipped(t, archive(t, "limit.wasm", string(large)))}}, TooLarge, `file "limit.wasm" of the image has 1048577 bytes`},
		"a bomb":              {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayerGzip, zipped(t, archive(t, "a/", "", "limit.wasm", string(make([]byte, 1<<19)), "b", string(make([]byte, 8<<20))))}}, NoModule, "more than one file"},
		"a bomb of a file":    {ocispec.MediaTypeImageManifest, []layer{{ocispec.MediaTypeImageLayerGzip, zipped(t, archive(t, "limit.wasm", string(make([]byte, 8<<20))))}}, TooLarge, "has 8388608 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := clientOf(s).OCI(t.Context(), push(t, s, c.manifest, c.layers...), nil)
			want(t, err, c.kind, c.text)
			if c.text == "" && !bytes.Equal(got, module) {
				t.Errorf("got %d bytes %.40q", len(got), got)
			}
		})
	}
}

// TestOCIDirectories: an archive of directories without end is read as far as a module could be.
func TestOCIDirectories(t *testing.T) {
	s := fetchtest.Serve(t, fetchtest.Registry())
	var many []string
	for range 3000 { // 1.5 MiB of headers
		many = append(many, "d/", "")
	}
	_, err := clientOf(s).OCI(t.Context(), push(t, s, ocispec.MediaTypeImageManifest, layer{ocispec.MediaTypeImageLayerGzip, zipped(t, archive(t, many...))}), nil)
	want(t, err, TooLarge, "the unpacked layer of the image has more than 1048576 bytes")
}

func TestOCIRefused(t *testing.T) {
	s := fetchtest.Serve(t, fetchtest.Registry())
	module := []byte("\x00asm a module")
	ref := push(t, s, ocispec.MediaTypeImageManifest, layer{"application/wasm", module})
	repo, _, _ := strings.Cut(ref, "@")
	absent := repo + "@sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		ref    string
		change func(*Client)
		kind   Kind
		text   string
	}{
		"a tag":           {repo + ":latest", nil, NoModule, "write REGISTRY/REPOSITORY@sha256:DIGEST"},
		"another digest":  {absent, nil, Failed, "not found"},
		"no authority":    {ref, func(c *Client) { c.Roots = nil }, Failed, "name one in caBundle"},
		"plain http":      {ref, func(c *Client) { c.Insecure = true }, Failed, "400"},
		"not allowed":     {ref, func(c *Client) { c.Allowed = []string{"registry.example:5000"} }, NotAllowed, "host " + s.Host + " is not allowed"},
		"nothing allowed": {ref, func(c *Client) { c.Allowed = nil }, NotAllowed, "functions.allow of the operator's chart"},
	} {
		t.Run(name, func(t *testing.T) {
			cl, before := clientOf(s), s.Requests()
			if c.change != nil {
				c.change(cl)
			}
			_, err := cl.OCI(t.Context(), c.ref, nil)
			if err == nil {
				t.Fatal("no error")
			}
			want(t, err, c.kind, c.text)
			if c.kind == NotAllowed && s.Requests() != before {
				t.Error("the registry was asked")
			}
		})
	}
}

// TestOCIForged: a registry that sends other bytes than a digest says is found out.
func TestOCIForged(t *testing.T) {
	all := fetchtest.Registry()
	s := fetchtest.Serve(t, all)
	module := []byte("\x00asm a module of some bytes")
	ref := push(t, s, ocispec.MediaTypeImageManifest, layer{"application/wasm", module})
	s.Door(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = w.Write(bytes.ToUpper(module)) // of the same length
			return
		}
		all.ServeHTTP(w, r)
	}))
	_, err := clientOf(s).OCI(t.Context(), ref, nil)
	want(t, err, Failed, "mismatch")
	s.Door(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		_, _ = w.Write([]byte(`{"schemaVersion":2,"layers":[]}`))
	}))
	_, err = clientOf(s).OCI(t.Context(), ref, nil)
	want(t, err, Failed, "digest")
	s.Door(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Content-Length", "99999999")
		w.Header().Set("Docker-Content-Digest", ref[strings.Index(ref, "@")+1:])
		_, _ = w.Write([]byte("{"))
	}))
	_, err = clientOf(s).OCI(t.Context(), ref, nil)
	want(t, err, NoModule, "has 99999999 bytes, allowed: 262144")
}

// basic wants a password for everything.
func basic(all http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		all.ServeHTTP(w, r)
	}
}

// bearer wants a token, which realm gives for a password.
func bearer(all http.Handler, realm string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch u, p, _ := r.BasicAuth(); {
		case r.URL.Path == "/token" && u == user && p == password:
			_ = json.NewEncoder(w).Encode(map[string]string{"token": "let-me-in"})
		case r.URL.Path == "/token" || r.Header.Get("Authorization") != "Bearer let-me-in":
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			all.ServeHTTP(w, r)
		}
	}
}

func TestOCICredentials(t *testing.T) {
	all := fetchtest.Registry()
	s := fetchtest.Serve(t, all)
	module := []byte("\x00asm a module")
	ref := push(t, s, ocispec.MediaTypeImageManifest, layer{"application/wasm", module})
	right, wrong := &auth.Credential{Username: user, Password: password}, &auth.Credential{Username: user, Password: "guess"}
	for name, c := range map[string]struct {
		door        http.Handler
		credentials *auth.Credential
		kind        Kind
		text        string
	}{
		"basic":                  {basic(all), right, 0, ""},
		"basic, wrong":           {basic(all), wrong, Failed, "does not take the credentials of imagePullSecrets"},
		"basic, none":            {basic(all), nil, Failed, "wants credentials; name a Secret"},
		"token":                  {bearer(all, s.URL+"/token"), right, 0, ""},
		"token, wrong":           {bearer(all, s.URL+"/token"), wrong, Failed, "does not take the credentials"},
		"token, none":            {bearer(all, s.URL+"/token"), nil, Failed, "wants credentials"},
		"token, from elsewhere":  {bearer(all, "https://tokens.example/token"), right, NotAllowed, "host tokens.example:443 is not allowed"},
		"token, of the metadata": {bearer(all, "https://169.254.169.254/token"), right, Failed, "169.254.169.254"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Door(c.door)
			got, err := clientOf(s).OCI(t.Context(), ref, c.credentials)
			want(t, err, c.kind, c.text)
			if c.text == "" && !bytes.Equal(got, module) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestOCIRedirect: a registry may send blobs from elsewhere, if that is allowed; the credentials stay.
func TestOCIRedirect(t *testing.T) {
	all := fetchtest.Registry()
	s := fetchtest.Serve(t, all)
	module := []byte("\x00asm a module")
	ref := push(t, s, ocispec.MediaTypeImageManifest, layer{"application/wasm", module})
	var leaked atomic.Bool
	other := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
		all.ServeHTTP(w, r)
	}))
	s.Door(basic(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		all.ServeHTTP(w, r)
	})))
	c := clientOf(s)
	c.Roots.AddCert(other.Certificate())
	_, err := c.OCI(t.Context(), ref, &auth.Credential{Username: user, Password: password})
	want(t, err, NotAllowed, "host "+other.Host+" is not allowed")
	c.Allowed = append(c.Allowed, other.Host)
	got, err := c.OCI(t.Context(), ref, &auth.Credential{Username: user, Password: password})
	want(t, err, 0, "")
	if !bytes.Equal(got, module) || leaked.Load() {
		t.Errorf("got %q; credentials were sent to the other host: %t", got, leaked.Load())
	}
}
