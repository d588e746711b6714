package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// runs starts a client of another language, submits an order when it has subscribed, and returns what it printed.
func runs(t *testing.T, c *client.Client, id string, argv ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		got = append(got, lines.Text())
		if strings.Contains(lines.Text(), "subscribed") {
			if _, err := c.Submit(ctx, sell(id, "001.50")); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %v", argv, err)
	}
	return got
}

// Java's HttpClient and Python's websockets against the program.
func TestClientsOfOtherLanguages(t *testing.T) {
	g := testgrid.Run(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	submit(t, c, "BUY", 5)
	url := "ws://" + startGateway(t, g, "127.0.0.1:0").addr + "/stream"
	t.Run("Java", func(t *testing.T) {
		java, err := exec.LookPath("java")
		if err == nil {
			if modules, fault := exec.Command(java, "--list-modules").Output(); fault != nil || !strings.Contains(string(modules), "jdk.compiler") {
				err = fmt.Errorf("this Java cannot run a source file: it has no compiler")
			}
		}
		if err != nil {
			skip(t, "ORDERGRID_REQUIRE_JAVA", err)
		}
		got := runs(t, c, "JAVA-1", java, "-XX:TieredStopAtLevel=1", "../../gateway/stream/server/testdata/Subscriber.java", url, "2", testToken, "orders.*.XYZ.>")
		if len(got) != 4 || got[0] != "pong 3" || !strings.Contains(got[2], `"topic":"orders.A17.XYZ.sell","data":{`) || !strings.Contains(got[2], `"clOrdID":"JAVA-1"`) || got[3] != "closed 1000" {
			t.Errorf("printed %q", got)
		}
	})
	t.Run("Python", func(t *testing.T) {
		python, err := exec.LookPath("python3")
		if err == nil {
			err = exec.Command(python, "-c", "import websockets.sync.client").Run()
		}
		if err != nil {
			skip(t, "ORDERGRID_REQUIRE_PYTHON_WEBSOCKETS", fmt.Errorf("Python's websockets is not here: %w", err))
		}
		got := runs(t, c, "PYTHON-1", python, "testdata/subscriber.py", url, "5", testToken, "orders.>")
		if len(got) != 5 || !strings.HasPrefix(got[0], "subscribed") || !strings.Contains(strings.Join(got[1:], " "), "live") || !strings.Contains(strings.Join(got[3:], " "), "PYTHON-1") {
			t.Errorf("printed %q", got)
		}
	})
}

func skip(t *testing.T, require string, err error) {
	t.Helper()
	if os.Getenv(require) != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// Over TLS a client is known by its certificate, by the rules of the nodes, or by a token; each reads what it may.
func TestWebSocketAccess(t *testing.T) {
	g := testgrid.Run(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	submit(t, c, "BUY", 1)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority, err := pki.Load(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	issue := func(user string) *secure.Identity {
		f, err := authority.Save(dir, user, pki.Identity{User: user, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
		if err != nil {
			t.Fatal(err)
		}
		id, err := secure.Load(secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	own := issue("gateway")
	clients := `{"clients": [{"name": "one", "tokenFile": "` + write("token", testToken) + `", "topics": ["orders.A17.>"]}%s]}`
	file := write("clients.json", fmt.Sprintf(clients, `, {"name": "desk", "certificate": "desk", "topics": ["orders.ACC.*.buy"]}`))
	p := startGateway(t, g, "127.0.0.1:0", "--websocket-clients", file,
		"--websocket-rules", write("rules.json", `{"rules": [{"subjects": [{"kind": "User", "name": "watcher"}], "permissions": ["Watch"]}, {"subjects": [{"kind": "User", "name": "reader"}], "permissions": ["Read"]}]}`),
		"--websocket-tls-cert", filepath.Join(dir, "gateway.crt"), "--websocket-tls-key", filepath.Join(dir, "gateway.key"), "--websocket-tls-ca", filepath.Join(dir, "ca.crt"))
	// answer opens a connection and returns the answer to the last command.
	answer := func(as *secure.Identity, header string, commands ...string) (*websocket.Conn, string) {
		t.Helper()
		cfg := own.Client("127.0.0.1")
		if as != nil {
			cfg = as.Client("127.0.0.1")
		} else {
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		o := &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}, HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: cfg}}}
		if header != "" {
			o.HTTPHeader = http.Header{"Authorization": {header}}
		}
		ws, _, err := websocket.Dial(ctx, "wss://"+p.addr+"/stream", o)
		if err != nil {
			return nil, err.Error()
		}
		t.Cleanup(func() { _ = ws.CloseNow() })
		var b []byte
		for _, text := range commands {
			if err := ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
				t.Fatal(err)
			}
			if _, b, err = ws.Read(ctx); err != nil {
				return ws, err.Error()
			}
		}
		return ws, string(b)
	}
	subscribe := func(topics string) string {
		b, _ := json.Marshal(map[string]any{"op": "subscribe", "id": 1, "topics": topics})
		return string(b)
	}
	login := `{"op":"login","token":"` + testToken + `"}`
	desk := issue("desk")
	for _, c := range []struct {
		as       *secure.Identity
		header   string
		commands []string
		want     string
	}{
		{desk, "", []string{subscribe("orders.ACC.IBM.buy")}, "subscribed"},
		{desk, "", []string{subscribe("orders.>")}, "not-permitted"},
		{issue("watcher"), "", []string{subscribe("orders.>")}, "subscribed"},
		{issue("watcher"), "", []string{`{"op":"status"}`}, `"partitions":[`},
		{issue("reader"), "", []string{subscribe("orders.>")}, "has not logged in"},
		{nil, "", []string{subscribe("orders.>")}, "has not logged in"},
		{nil, "", []string{login, subscribe("orders.A17.>")}, "subscribed"},
		{nil, "", []string{login, subscribe("orders.*.IBM.>")}, "not-permitted"},
		{nil, "", []string{login, `{"op":"status"}`}, "not-permitted"},
		{nil, "Bearer " + testToken, []string{subscribe("orders.A17.>")}, "subscribed"},
		{nil, "Bearer guess", nil, "403"},
		{nil, "Basic eDp5", nil, "403"},
	} {
		if _, got := answer(c.as, c.header, c.commands...); !strings.Contains(got, c.want) {
			t.Errorf("%q %v: %s, want %s", c.header, c.commands, got, c.want)
		}
	}
	if strings.Contains(p.said.String(), testToken) {
		t.Error("the log has a token")
	}
	// The certificate is taken off the list: its client is disconnected, the others are not.
	gone, _ := answer(desk, "", subscribe("orders.ACC.IBM.buy"))
	stays, _ := answer(nil, "", login)
	write("clients.json", fmt.Sprintf(clients, ""))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := gone.Read(ctx); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a client that is not known any more: %v", err)
	}
	if err := stays.Write(ctx, websocket.MessageText, []byte(subscribe("orders.A17.>"))); err != nil {
		t.Error(err)
	}
	if _, b, err := stays.Read(ctx); err != nil || !strings.Contains(string(b), "subscribed") {
		t.Errorf("the other client: %s, %v", b, err)
	}
}
