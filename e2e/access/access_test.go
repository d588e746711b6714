//go:build e2e

// Package access is who may do what on a real cluster: a grid that authenticates clients, and clients that are pods with
// service accounts, certificates, or neither. `make e2e SUITE=access` runs it.
package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/internal/pki"
)

const (
	namespace = "ordergrid-access"
	audience  = "guarded.ordergrid.dev"
)

func TestAccess(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute)
	defer cancel()
	s := fixture.New(t, namespace)
	s.Open(ctx, "certificates.namespaces={"+namespace+"}", "clientTokens.namespaces={"+namespace+"}")
	s.Restrict(ctx)
	s.Apply(ctx, "grid.yaml")
	s.Condition(ctx, "ordergrid", "guarded", "Redundant", "True")
	foreign(ctx, s)
	s.Parts(ctx,
		fixture.Part{Name: "clients by who they are", Run: clients},
		fixture.Part{Name: "the operator's probe needs no rule", Run: probe},
		fixture.Part{Name: "refusals are counted, and no token is in a log or event", Run: told},
		fixture.Part{Name: "a rule that is taken back reaches the nodes without a restart", Run: takenBack},
	)
}

// foreign makes a certificate of an authority that the grid does not know.
func foreign(ctx context.Context, t *fixture.Fixture) {
	t.Helper()
	ca, err := pki.Load(t.TempDir(), "another")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Issue(pki.Identity{User: "gateway-7", ClientOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	trust := t.Must(t.Kube.Run(ctx, "get", "secret", "guarded.tls-client-gateway-7", "-n", namespace, "-o", `jsonpath={.data.ca\.crt}`))
	enc := base64.StdEncoding.EncodeToString
	manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": "foreign", "namespace": namespace},
		"data": map[string]string{"tls.crt": enc(cert), "tls.key": enc(key), "ca.crt": trust}})
	if err != nil {
		t.Fatal(err)
	}
	t.Must(t.Kube.Apply(ctx, manifest))
}

// who is a client: a pod.
type who struct {
	name, account, audience, secret string
	proof                           []string // flags
	do                              string   // submit, get
	ok                              bool
	says                            string
}

var (
	byToken       = []string{"--token-file", "/token/token"}
	byCertificate = []string{"--tls-cert", "/tls/tls.crt", "--tls-key", "/tls/tls.key"}
)

func clients(ctx context.Context, t *fixture.Fixture) {
	const mine = "guarded.tls-client-gateway-7"
	first := who{"gateway-token", "gateway", audience, mine, byToken, "submit", true, "copies 2"}
	first.begin(ctx, t)
	first.end(ctx, t) // so that there is something to read
	list := []who{
		{"gateway-certificate", "default", audience, mine, byCertificate, "submit", true, "copies 2"},
		{"reader-reads", "reader", audience, mine, byToken, "get gateway-token", true, "gateway-token"},
		{"reader-submits", "reader", audience, mine, byToken, "submit", false, `service account ordergrid-access/reader may Read on grid "guarded", OpenSession requires Submit`},
		{"unauthenticated", "default", audience, mine, nil, "submit", false, `grid "guarded" authenticates clients`},
		{"no-rule-token", "mallory", audience, mine, byToken, "submit", false, `service account ordergrid-access/mallory has no permission on grid "guarded"`},
		{"no-rule-certificate", "default", audience, "guarded.tls-client-mallory-7", byCertificate, "submit", false, `user "mallory-7" has no permission on grid "guarded"`},
		{"wrong-audience", "gateway", "elsewhere.example", mine, byToken, "submit", false, `it is for another audience`},
		{"wrong-authority", "default", audience, "foreign", byCertificate, "submit", false, "TLS"},
	}
	for _, w := range list {
		w.begin(ctx, t)
	}
	for _, w := range list {
		t.Run(w.name, func(part *testing.T) { w.end(ctx, t.On(part)) })
	}
}

func (w *who) begin(ctx context.Context, t *fixture.Fixture) {
	t.Helper()
	command, id, _ := strings.Cut(w.do, " ")
	if id == "" {
		id = w.name
	}
	args := append([]string{command, "--clordid", id, "--grid", "guarded", "--endpoint", "guarded-client." + namespace + ".svc:7400", "--timeout", "20s",
		"--tls-ca", "/tls/ca.crt", "--tls-name", "guarded-client." + namespace + ".svc"}, w.proof...)
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join("testdata", "client.yaml.in"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.NewReplacer("NAME", w.name, "ACCOUNT", w.account, "AUDIENCE", w.audience, "SECRET", w.secret, "ARGS", string(text)).Replace(string(template))
	t.Must(t.Kube.Apply(ctx, []byte(manifest)))
}

func (w *who) end(ctx context.Context, t *fixture.Fixture) {
	t.Helper()
	phase := ""
	t.Eventually(ctx, "pod "+w.name+" to end", fixture.Patience, func(ctx context.Context) (err error) {
		phase, err = t.Kube.Run(ctx, "get", "pod", w.name, "-n", namespace, "-o", "jsonpath={.status.phase}")
		if err == nil && phase != "Succeeded" && phase != "Failed" {
			err = errors.New(phase)
		}
		return err
	})
	log := t.Must(t.Kube.Run(ctx, "logs", w.name, "-n", namespace))
	t.Logf("%s: %s", phase, strings.TrimSpace(log))
	if (phase == "Succeeded") != w.ok || !strings.Contains(log, w.says) {
		t.Errorf("want success %v, and %q", w.ok, w.says)
	}
}

func probe(ctx context.Context, t *fixture.Fixture) {
	t.Apply(ctx, "probe.yaml")
	t.Condition(ctx, "orderprobe", "tools", "Complete", "True")
	verdict := t.Must(t.Kube.Run(ctx, "get", "orderprobe", "tools", "-n", namespace, "-o", "jsonpath={.status.verdict}: {.status.verdictReason}"))
	t.Log(verdict)
	if !strings.HasPrefix(verdict, "Valid") && !strings.HasPrefix(verdict, "Invalid") {
		t.Fatal("an order was lost, duplicated, or there was a gap")
	}
}

func told(ctx context.Context, t *fixture.Fixture) {
	all := ""
	for _, pod := range []string{"guarded-s0-0", "guarded-s0-1"} {
		page := t.Must(t.Kube.Run(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:9400/proxy/metrics", namespace, pod)))
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "ordergrid_node_clients_refused") || strings.HasPrefix(line, "ordergrid_node_requests_not_permitted") || strings.HasPrefix(line, "ordergrid_node_token_reviews") {
				t.Logf("%s %s", pod, strings.TrimSpace(line))
			}
		}
		all += t.Must(t.Kube.Run(ctx, "logs", pod, "-n", namespace))
	}
	for line := range strings.Lines(all) {
		if strings.Contains(line, "refused") || strings.Contains(line, "not permitted") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if !strings.Contains(all, "ordergrid-access/mallory") || !strings.Contains(all, "ordergrid-access/reader") {
		t.Error("the nodes' logs do not name the rejected client")
	}
	all += t.Must(t.Kube.Run(ctx, "get", "events", "-n", namespace, "-o", "yaml"))
	if strings.Contains(all, "eyJ") { // so begins every JSON web token
		t.Error("a token is in a log or event")
	}
}

// takenBack is about the file: pods keep their names, ages and connections.
func takenBack(ctx context.Context, t *fixture.Fixture) {
	before := t.Must(t.Kube.Run(ctx, "get", "pods", "-n", namespace, "-l", "ordergrid.dev/grid=guarded", "-o", "jsonpath={.items[*].metadata.uid}"))
	t.Must(t.Kube.Run(ctx, "patch", "ordergrid", "guarded", "-n", namespace, "--type", "json", "-p", `[{"op":"remove","path":"/spec/security/authorization/rules/0"}]`))
	changed := time.Now()
	t.Eventually(ctx, "both nodes to have read the rules", fixture.Patience, func(ctx context.Context) error {
		for _, pod := range []string{"guarded-s0-0", "guarded-s0-1"} {
			log, err := t.Kube.Run(ctx, "logs", pod, "-n", namespace)
			if err != nil {
				return err
			}
			if !strings.Contains(log, "authorization rules changed") {
				return errors.New(pod + " has not")
			}
		}
		return nil
	})
	t.Logf("read after %s", time.Since(changed).Round(time.Second))
	w := who{"gateway-after", "gateway", audience, "guarded.tls-client-gateway-7", byToken, "submit", false, "service account ordergrid-access/gateway has no permission"}
	w.begin(ctx, t)
	w.end(ctx, t)
	after := t.Must(t.Kube.Run(ctx, "get", "pods", "-n", namespace, "-l", "ordergrid.dev/grid=guarded", "-o", "jsonpath={.items[*].metadata.uid}"))
	if before != after {
		t.Errorf("pods were replaced: %s, now %s", before, after)
	}
}
