package fetch

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/controllers/gridfunction/fetch/fetchtest"
)

func TestHTTP(t *testing.T) {
	module := []byte("\x00asm a module")
	mux := http.NewServeMux()
	s := fetchtest.Serve(t, mux)
	answer := func(path string, f http.HandlerFunc) { mux.HandleFunc(path, f) }
	to := func(path, where string) {
		answer(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, where, http.StatusFound) })
	}
	answer("/limit.wasm", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(module) })
	answer("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1048577")
		_, _ = w.Write(make([]byte, 1<<20+1))
	})
	answer("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
			w.(http.Flusher).Flush() // without a length
		}
	})
	hold := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	answer("/silent", hold)
	answer("/half", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write(module)
		w.(http.Flusher).Flush()
		hold(w, r)
	})
	to("/moved", "/limit.wasm")
	to("/metadata", "http://169.254.169.254/latest/meta-data/")
	to("/metadata-tls", "https://169.254.169.254/latest/meta-data/")
	to("/file", "file:///etc/passwd")
	to("/away", "https://elsewhere.example/limit.wasm")
	to("/loop", "/loop")
	for name, c := range map[string]struct {
		url  string
		kind Kind
		text string
	}{
		"a file":              {s.URL + "/limit.wasm", 0, ""},
		"moved":               {s.URL + "/moved", 0, ""},
		"not there":           {s.URL + "/other.wasm", Failed, "404 Not Found"},
		"too large":           {s.URL + "/large", TooLarge, "has 1048577 bytes, allowed: 1048576"},
		"endless":             {s.URL + "/endless", TooLarge, "has more than 1048576 bytes"},
		"never answers":       {s.URL + "/silent", Failed, "no complete answer within 300ms"},
		"never ends":          {s.URL + "/half", Failed, "no complete answer within 300ms"},
		"to the metadata":     {s.URL + "/metadata", Failed, "redirected from https to http://169.254.169.254/"},
		"to the metadata, s":  {s.URL + "/metadata-tls", NotAllowed, "host 169.254.169.254:443 is not allowed"},
		"to a file":           {s.URL + "/file", Failed, "redirected from https to file:"},
		"elsewhere":           {s.URL + "/away", NotAllowed, "host elsewhere.example:443 is not allowed"},
		"for ever":            {s.URL + "/loop", Failed, "more than 3 redirects"},
		"a file of the node":  {"file:///etc/passwd", NotAllowed, `scheme "file"`},
		"a user":              {"https://desk:secret@" + s.Host + "/limit.wasm", NotAllowed, "has a user"},
		"plain":               {"http://" + s.Host + "/limit.wasm", Failed, "insecure: Accept"},
		"by a name of itself": {strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + "/limit.wasm", NotAllowed, "an address of the operator's node"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := clientOf(s)
			if strings.HasPrefix(c.text, "no complete answer") { // the others have their time, however slow this machine is
				cl.Timeout = 300 * time.Millisecond
			}
			cl.Allowed = append(cl.Allowed, strings.Replace(s.Host, "127.0.0.1", "localhost", 1))
			got, err := cl.HTTP(t.Context(), c.url)
			want(t, err, c.kind, c.text)
			if c.text == "" && !bytes.Equal(got, module) {
				t.Errorf("got %q", got)
			}
			if c.text != "" && strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("the error has a password: %v", err)
			}
		})
	}
}

// TestHTTPInsecure: plain http where it is written down.
func TestHTTPInsecure(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\x00asm")) }))
	defer s.Close()
	c := &Client{Allowed: []string{s.Listener.Addr().String()}, MaxBytes: 4, Insecure: true}
	if got, err := c.HTTP(t.Context(), s.URL+"/limit.wasm"); err != nil || string(got) != "\x00asm" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCheckHost(t *testing.T) {
	for _, good := range []string{"registry.example", "registry.example:5000", "*.files.example", "*.files.example:8443", "files", "10.0.0.7:5000", "fd00::7", "[fd00::7]:5000"} {
		if err := CheckHost(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, text := range map[string]string{
		"https://registry.example": "", "registry.example/functions": "is no host", "Registry.example": "is no host", "*": "is no host", "regis*.example": "is no host",
		"registry.example:0": "is no port", "registry.example:x": "is no port", "": "is no host",
	} {
		if err := CheckHost(bad); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want %s", bad, err, text)
		}
	}
}

func TestPermits(t *testing.T) {
	c := &Client{Allowed: []string{"registry.example", "10.0.0.7:5000", "*.files.example"}}
	for address, ok := range map[string]bool{
		"https://registry.example/v2/": true, "https://REGISTRY.example:443/": true, "https://registry.example./": true, "https://registry.example:5000/": false,
		"https://a.registry.example/": false, "https://registry.example.evil/": false, "https://10.0.0.7:5000/": true, "https://10.0.0.8:5000/": false,
		"https://a.files.example/": true, "https://a.b.files.example/": true, "https://files.example/": false, "https://.files.example/": false, "https://evilfiles.example/": false,
	} {
		if err := permitted(c, address); (err == nil) != ok {
			t.Errorf("%s: %v, want allowed: %t", address, err, ok)
		}
	}
}

func permitted(c *Client, address string) error {
	req, err := http.NewRequest(http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	return c.permits(req.URL)
}

func TestReachable(t *testing.T) {
	for to, ok := range map[string]bool{
		"10.0.0.7:443": true, "93.184.216.34:443": true, "[2001:db8::1]:443": true, "[fd00::7]:443": true,
		"127.0.0.1:443": false, "127.8.8.8:443": false, "[::1]:443": false, "[::ffff:127.0.0.1]:443": false, "0.0.0.0:443": false, "[::]:443": false,
		"169.254.169.254:443": false, "[::ffff:169.254.169.254]:443": false, "[64:ff9b::a9fe:a9fe]:443": false, "[fe80::1%eth0]:443": false, "224.0.0.1:443": false,
		"100.100.100.200:443": false, "168.63.129.16:443": false, "[fd00:ec2::254]:443": false,
	} {
		if err := reachable("files.example:443", to); (err == nil) != ok {
			t.Errorf("%s: %v, want reachable: %t", to, err, ok)
		}
		if err := reachable(to, to); err != nil {
			t.Errorf("%s, that an administrator wrote: %v", to, err)
		}
	}
}
