package listener

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

const tokenA, tokenB = "0123456789abcdef-a", "0123456789abcdef-b"

func files(t *testing.T) func(name, text string) string {
	dir := t.TempDir()
	return func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func writeToken(dir, name, token string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(token), 0o600)
}

func TestWhoMayReadWhat(t *testing.T) {
	file := files(t)
	text := fmt.Sprintf(`{"clients": [{"name": "a", "tokenFile": %q, "topics": ["orders.A.>"]},
		{"name": "b", "tokenFile": %q, "certificate": "b.example", "topics": ["orders.>"]}, {"name": "c", "certificate": "c.example", "topics": ["orders.C.>"]}]}`,
		file("a", tokenA+"\r\nmore\n"), file("b", tokenB))
	path := file("clients.json", text)
	a, err := OpenAccess(Files{Clients: path, Rules: file("rules.json", `{"rules": [{"subjects": [{"kind": "Group", "name": "desk"}], "permissions": ["Watch"]}, {"subjects": [{"kind": "User", "name": "r"}], "permissions": ["Read"]}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	cert := func(cn string, names ...string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: cn}, DNSNames: names}
	}
	desk := cert("x")
	desk.Subject.Organization = []string{"desk"}
	for i, c := range []struct {
		header string
		cert   *x509.Certificate
		want   string // client, or the error; "": it has to log in
	}{
		{"Bearer " + tokenA, nil, "a"},
		{"bearer " + tokenA, cert("c.example"), "a"},
		{"Bearer " + tokenA + "\r\nmore", nil, "the token is not known"},
		{"Bearer ", nil, "the token is not known"},
		{"Bearer " + strings.Repeat("x", 5000), nil, "the token is not known"},
		{"Basic " + tokenA, nil, "allowed: Bearer"},
		{"Bearer " + tokenB, nil, "the token is not known"},
		{"Bearer " + tokenB, cert("c.example"), "the token is not known"},
		{"Bearer " + tokenB, cert("", "b.example"), "b"},
		{"", cert("b.example"), ""},
		{"", cert("c.example"), "c"},
		{"", cert("x", "c.example"), "c"},
		{"", cert("r"), ""},
		{"", desk, "x"},
		{"", nil, ""},
	} {
		g, err := a.admit(&http.Request{Header: http.Header{"Authorization": {c.header}}}, c.cert)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case g != nil:
			got = g.Client
		}
		if got != c.want && (err == nil || c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("case %d: %q, want %q", i, got, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "0123456789abcdef") {
			t.Errorf("the error has a token: %v", err)
		}
	}

	// A change keeps those whom it does not concern. A file that cannot be read changes nothing.
	was, err := a.byToken(tokenA, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.admit(&http.Request{}, cert("c.example"))
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 4)
	go a.watch(t.Context(), time.Millisecond, func(err error) { changed <- err })
	file("clients.json", `{"clients": [`)
	if err := <-changed; err == nil || !a.keeps(was) || !a.keeps(c) {
		t.Errorf("half a file: %v, a stays %v, c stays %v", err, a.keeps(was), a.keeps(c))
	}
	file("clients.json", strings.Replace(text, "orders.C.>", "orders.C.ACME.>", 1))
	taken := func() {
		t.Helper()
		for late := time.After(20 * time.Second); ; {
			select {
			case err := <-changed: // the file may be seen when it is empty
				if err == nil {
					return
				}
			case <-late:
				t.Fatal("the change is not noticed")
			}
		}
	}
	taken()
	if !a.keeps(was) || a.keeps(c) {
		t.Errorf("topics of c are others: a stays %v, c stays %v", a.keeps(was), a.keeps(c))
	}
	file("a", tokenB+"-new")
	taken()
	if a.keeps(was) {
		t.Error("the client of a token that was replaced stays")
	}
}

func TestClientsThatAreRefused(t *testing.T) {
	file := files(t)
	token, short := file("token", tokenA), file("short", "secret\n")
	for text, want := range map[string]string{
		`{}`:                            "clients has 0 entries, allowed: 1 to 4096",
		`{"clients": [], "x": 1}`:       `unknown field "x"`,
		`{"clients": [{"topics": []}]}`: "name is empty",
		`{"clients": [null]}`:           "name is empty",
		`{"clients": [{"name": "a"}]}`:  "a client without would be everybody",
		`{"clients": [{"name": "a", "certificate": "c"}]}`:                                                                                          "topics is empty",
		`{"clients": [{"name": "a", "certificate": "c", "topics": ["orders..x"]}]}`:                                                                 "token 2 of pattern",
		`{"clients": [{"name": "a", "tokenFile": "` + short + `", "topics": [">"]}]}`:                                                               "has 6 bytes, allowed: a token of at least 16",
		`{"clients": [{"name": "a", "certificate": "c", "publish": ["orders.>"]}]}`:                                                                 `publish[0]: publish is "orders.>", allowed: patterns within user.> or`,
		`{"clients": [{"name": "a", "certificate": "c", "publish": ["user.a", ">"]}]}`:                                                              `publish[1]: publish is ">", allowed: patterns within user.> or`,
		`{"clients": [{"name": "a", "certificate": "c", "publish": ["user"]}]}`:                                                                     `publish is "user", allowed: patterns within user.> or`,
		`{"clients": [{"name": "a", "tokenFile": "/nowhere", "topics": [">"]}]}`:                                                                    "no such file",
		`{"clients": [{"name": "a", "tokenFile": "` + token + `", "topics": [">"]}, {"name": "b", "tokenFile": "` + token + `", "topics": [">"]}]}`: `the token of "b" is that of "a" too`,
	} {
		_, err := OpenAccess(Files{Clients: file("clients.json", text)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	judge := func(context.Context, string) (client.Identity, error) {
		return client.Identity{}, client.ErrUnauthenticated
	}
	for text, want := range map[string]string{
		`{"name": "a", "user": "u", "topics": [">"]}`:                                        "",
		`{"name": "a", "user": "u", "certificate": "c", "topics": [">"]}`:                    "allowed: user alone",
		`{"name": "a", "user": "u", "topics": [">"]},{"name":"b","user":"u","topics":[">"]}`: `which "a" has too`,
		`{"name": "a", "tokenFile": "../token", "topics": [">"]}`:                            "allowed: the name of a file in",
		`{"name": "a", "tokenFile": "` + token + `", "topics": [">"]}`:                       "allowed: the name of a file in",
	} {
		f := Files{Clients: file("clients.json", `{"clients": [`+text+`]}`), Tokens: filepath.Dir(token), Judge: judge}
		if _, err := OpenAccess(f); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if f.Judge = nil; want == "" {
			if _, err := OpenAccess(f); err == nil || !strings.Contains(err.Error(), "--websocket-grid-tokens") {
				t.Errorf("%s where the grid is not asked: %v", text, err)
			}
		}
	}
	if _, err := OpenAccess(Files{Rules: file("rules.json", `{"rules": [{}]}`)}); err == nil {
		t.Error("rules without subjects are taken")
	}
}
