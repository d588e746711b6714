package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	ogclient "github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/link"
)

// sitePair are two grids of real processes, with the flags to reach each.
type sitePair struct {
	t      *testing.T
	a, b   *testgrid.Grid
	ca, cb *ogclient.Client
	dir    string
}

func newSitePair(t *testing.T) *sitePair {
	p := &sitePair{t: t, dir: t.TempDir(), a: testgrid.Start(t, testgrid.Options{MemoryMiB: 256, Args: []string{"--external-sink", "link"}}),
		b: testgrid.Start(t, testgrid.Options{MemoryMiB: 256, Args: []string{"--external-sink", "link", "--standby", "--source", "site a"}})}
	p.ca, p.cb = downstream.Dial(t, p.a), downstream.Dial(t, p.b)
	return p
}

func reach(g *testgrid.Grid) []string {
	return []string{"--endpoint", strings.Join(g.Endpoints, ","), "--arbiter", g.Arbiter}
}

// run runs a command and checks its exit code and output.
func (p *sitePair) run(code int, g *testgrid.Grid, args []string, texts ...string) string {
	p.t.Helper()
	all := append(args, "--endpoint", strings.Join(g.Endpoints, ","))
	if args[0] != "orphans" {
		all = append(all, "--arbiter", g.Arbiter)
	}
	out, err := run(all...)
	wantOutcome(p.t, out, err, code, texts...)
	return out
}

func wantOutcome(t *testing.T, out string, err error, code int, texts ...string) {
	t.Helper()
	var exit exitError
	if (code == 0) != (err == nil) || code > 0 && (!errors.As(err, &exit) || int(exit) != code) {
		t.Fatalf("error %v, want exit code %d\n%s", err, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in the output:\n%s", text, out)
		}
	}
}

// link carries the log of one grid to the other until stop.
func (p *sitePair) link(from, to *testgrid.Grid) (stop func()) {
	p.t.Helper()
	r, err := link.New(link.Config{Source: downstream.Dial(p.t, from), Target: downstream.Dial(p.t, to), SourceName: "dev", TargetName: "dev", Reader: "link"})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	p.t.Cleanup(stop)
	return stop
}

func (p *sitePair) submit(c *ogclient.Client, name string, n int) {
	p.t.Helper()
	for i := range n {
		if _, err := c.Submit(p.t.Context(), testgrid.Order(fmt.Sprintf("%s-%d", name, i), 305)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Two grids change over cleanly, with the token of the one for the other; and by force, with a report of what only the
// replaced one has. Every command is run again where an interruption could have left it.
func TestSitesChangeOver(t *testing.T) {
	p := newSitePair(t)
	stop := p.link(p.a, p.b)
	p.submit(p.ca, "BEFORE", 40)
	token := filepath.Join(p.dir, "token")

	p.run(1, p.b, []string{"demote", "dev"}, "dev-p0: it is a standby in term 0 and was not demoted in it, so the end of its log is no token")
	p.run(0, p.a, []string{"demote", "dev", "--withdraw"}, "nothing is decided that is not carried out; nothing was changed")
	p.run(0, p.a, []string{"demote", "dev", "--token", token}, "dev-p0: Standby, term 0", "(2 of 2)", "the token of 2 partitions is in "+token)
	first, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	p.run(0, p.a, []string{"demote", "dev", "--token", token})
	again, _ := os.ReadFile(token)
	if ends(t, first) != ends(t, again) {
		t.Errorf("the token of a demoted grid changed:\n%s\n%s", first, again)
	}

	p.run(1, p.a, []string{"promote", "dev", "--token", token}, "refused, nothing was changed: the token is this grid's own")
	p.run(1, p.b, []string{"promote", "dev", "--token", token, "--take-back"}, "refused, nothing was changed: --take-back is given, and the token is another grid's")
	other := strings.Replace(string(first), `"hash": "`, `"hash": "00000000`, 1)
	other = other[:strings.Index(other, "00000000")+16] + other[strings.Index(other, "00000000")+24:]
	wrong := filepath.Join(p.dir, "wrong")
	if err := os.WriteFile(wrong, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	stop() // what is missing does not come: everything is there
	downstream.WaitFor(t, "everything at the standby", func() bool {
		out, err := run(append([]string{"sites", "dev"}, reach(p.b)...)...)
		a, err2 := run(append([]string{"sites", "dev"}, reach(p.a)...)...)
		return err == nil && err2 == nil && out == a
	})
	p.run(1, p.b, []string{"promote", "dev", "--token", wrong}, "refused, nothing was changed: dev-p0: entry ", "another history")
	p.run(0, p.b, []string{"promote", "dev", "--token", token}, "holds everything", "dev-p1: Active, term 1", "(2 of 2)")
	p.run(0, p.b, []string{"promote", "dev", "--token", token}, "dev-p0: promoted already, term 1", "dev-p1: promoted already, term 1")
	p.run(0, p.b, []string{"sites", "dev"}, "p0         Active  1     -")
	p.submit(p.cb, "AFTER", 5)

	// The first site is lost now for the second one, and promoted by force while that goes on.
	p.run(0, p.a, []string{"promote", "dev", "--force", "--partition", "p0", "--wait=false"})
	p.run(0, p.a, []string{"promote", "dev", "--force"}, "goes on behind entry ", "now run the link from dev to the other site")
	p.run(0, p.a, []string{"promote", "dev", "--force"}, "dev-p0: promoted already")
	p.submit(p.ca, "AFTER", 2) // two clients send theirs again
	p.link(p.a, p.b)
	downstream.WaitFor(t, "the other site to stop", func() bool {
		out, err := run(append([]string{"sites", "dev", "--nodes=false"}, reach(p.b)...)...)
		return err == nil && strings.Count(out, "Standby") == 2
	})
	p.run(1, p.b, []string{"demote", "dev"}, "was not demoted in it") // it was fenced
	p.orphans()
}

// orphans are the five orders of the second site.
func (p *sitePair) orphans() {
	p.t.Helper()
	file := filepath.Join(p.dir, "orphans.csv")
	args := []string{"orphans", "dev", "--other-endpoint", strings.Join(p.a.Endpoints, ","), "--file", file}
	p.run(1, p.b, args, "5 orders are in dev alone, in 2 partitions")
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	again := 0
	for _, line := range lines[1:] {
		if !strings.Contains(line, ",AFTER-") || !strings.Contains(line, ",ACC,IBM,1,100,125.25,") {
			p.t.Errorf("orphan %s", line)
		}
		if !strings.HasSuffix(line, ",") {
			again++
		}
	}
	if len(lines) != 6 || !strings.HasPrefix(lines[0], "id,hash,epoch,") || again != 2 {
		p.t.Errorf("%d lines, %d sent again:\n%s", len(lines), again, text)
	}
	if _, err := run(append(args, "--endpoint", strings.Join(p.b.Endpoints, ","))...); !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), "is there already, allowed: a new file") {
		p.t.Errorf("a report over another: %v", err)
	}
	// The other way round it is no report.
	if out, err := run("orphans", "dev", "--endpoint", strings.Join(p.a.Endpoints, ","), "--other-endpoint", strings.Join(p.b.Endpoints, ",")); err == nil || !strings.Contains(err.Error(), "is a standby of site a") {
		p.t.Errorf("error %v\n%s", err, out)
	}
}

// ends is a token without the time.
func ends(t *testing.T, token []byte) string {
	t.Helper()
	var s siteToken
	if err := json.Unmarshal(token, &s); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(s.Partitions)
}

// The decisions are spec.site of GridPartitions, which the API server checks. The nodes of a real grid carry them out: the
// test takes decisions to its arbiter, and roles and terms back.
func TestSitesOnKubernetes(t *testing.T) {
	s := newStage(t)
	g := testgrid.Start(t, testgrid.Options{MemoryMiB: 256, Args: []string{"--grid", "trades", "--external-sink", "link"}})
	s.args = append(s.args, "--endpoint", strings.Join(g.Endpoints, ","))
	stop := s.mirror(g)
	defer stop()
	token := filepath.Join(t.TempDir(), "token")
	out, err := s.run("demote", "trades", "--token", token, "--timeout", "60s")
	s.want(out, err, 0, "trades-p0: Standby, term 0", "the token of 2 partitions")
	p := s.partition("trades-p0")
	if p.Spec.Site == nil || p.Spec.Site.Demote == nil || p.Spec.Site.Demote.Term != 0 || !strings.Contains(p.Annotations[annotationSiteEnd], `"partition":"p0"`) {
		t.Errorf("%+v, annotations %v", p.Spec.Site, p.Annotations)
	}
	out, err = s.run("demote", "trades", "--token", token)
	s.want(out, err, 0)
	out, err = s.run("sites", "trades", "-o", "json")
	s.want(out, err, 0, `"role": "Standby"`, `"term": 0`)
	s.update("trades-p1", func(p *api.GridPartition) {
		p.Annotations[annotationSiteEnd] = `{"partition":"p1","term":0,"seq":4000,"hash":"00000000000000aa"}`
	})
	if out, err = s.run("demote", "trades"); err == nil || !strings.Contains(err.Error(), "when it was demoted its log ended with entry 4000, and now with entry") {
		t.Errorf("a log that went on: %v\n%s", err, out)
	}

	out, err = s.run("promote", "trades", "--token", token)
	s.want(out, err, 1, "the token is this grid's own, of ")
	out, err = s.run("promote", "trades", "--token", token, "--take-back", "--timeout", "60s")
	s.want(out, err, 0, "trades-p0: holds everything", "trades-p1: Active, term 1")
	out, err = s.run("promote", "trades", "--force")
	s.want(out, err, 1, "refused, nothing was changed: trades-p0 is active, in term 1: a standby is promoted")

	// Nodes that do nothing: the decision stays, and is withdrawn.
	stop()
	out, err = s.run("demote", "trades", "--timeout", "300ms")
	s.want(out, err, 1, "trades-p0, trades-p1: still active after 300ms", "The decision stays")
	out, err = s.run("sites", "trades", "--nodes=false")
	s.want(out, err, 0, "p0         Active  1     demote    ?    ?")
	out, err = s.run("demote", "trades", "--withdraw")
	s.want(out, err, 0, "trades-p1: withdrawn: demote. It stays Active in term 1")
	if p := s.partition("trades-p0"); p.Spec.Site.Demote != nil {
		t.Errorf("%+v", p.Spec.Site)
	}
}

// mirror takes decisions from the API server to the arbiter of a real grid, and roles and terms back, until stop.
func (s *stage) mirror(g *testgrid.Grid) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		dev := devRecords{url: g.Arbiter, grid: "trades"}
		told := map[string]string{}
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			is, err := dev.list(ctx)
			if err != nil {
				continue
			}
			for i := range is {
				s.mirrorOne(ctx, dev, &is[i], told)
			}
		}
	})
	return sync.OnceFunc(func() { cancel(); all.Wait() })
}

func (s *stage) mirrorOne(ctx context.Context, dev devRecords, is *siteRecord, told map[string]string) {
	p := s.partition(is.name)
	if site := p.Spec.Site; site != nil {
		text, _ := json.Marshal(site) // it was decoded from JSON
		if told[is.name] != string(text) && dev.promote(ctx, is.name, site.Promote) == nil && dev.demote(ctx, is.name, site.Demote) == nil {
			told[is.name] = string(text)
		}
	}
	now := api.PartitionSiteStatus{Role: api.SiteRole(is.role()), Term: is.term}
	before := api.PartitionSiteStatus{Role: api.SiteActive}
	if p.Status.Site != nil {
		before = *p.Status.Site
	}
	if now == before {
		return
	}
	p.Status.Site = &now
	p.Status.Epoch++
	p.Status.ChangeID = fmt.Sprint("c", p.Status.Epoch)
	at := metav1.Now()
	p.Status.ObservedTime = &at
	if err := s.cl.Status().Update(ctx, p); err != nil && ctx.Err() == nil {
		s.t.Logf("%s to %+v: %v", is.name, now, err)
	}
}

// What is wrong on the command line or in a token is named before anything is changed.
func TestSiteUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const p0 = `{"partition": "p0", "term": 0, "seq": 7, "hash": "00000000000000ff"}`
	token := func(parts string) string {
		return `{"kind": "OrderGridSiteToken", "grid": "g", "uid": "u", "partitions": [` + parts + `]}`
	}
	for _, tc := range []struct{ args, want string }{
		{"sites", "0 arguments, allowed: the name of one OrderGrid"},
		{"sites g -o xml", `--output: value "xml", allowed: table, wide, json, yaml`},
		{"demote g --arbiter http://127.0.0.1:1", "--endpoint: value \"\", allowed: host:port of a node; it is required with --arbiter"},
		{"promote g", "0 of --token, --force and --withdraw are given, allowed: one"},
		{"promote g --force --token x", "2 of --token, --force and --withdraw are given, allowed: one"},
		{"promote g --force --take-back", "--take-back is about a token"},
		{"promote g --force --term -1", "--term: value -1, allowed: 1..2147483647"},
		{"promote g --token " + file("empty", ""), "not a token (EOF), allowed: what kubectl ordergrid demote of the other site wrote"},
		{"promote g --token " + file("kind", `{"kind": "Pod"}`), `kind is "Pod" with 0 partitions`},
		{"promote g --token " + file("twice", token(p0+","+p0)), "p0 is there twice"},
		{"promote g --token " + file("two", token(p0)+"{}"), "data after the object"},
		{"promote g --token " + file("hash", token(strings.Replace(p0, "00ff", "00FF", 1))), "16 lowercase hexadecimal digits"},
		{"promote g --token " + file("field", `{"kid": 1}`), `unknown field "kid"`},
		{"orphans g", "the other site is not named, allowed: --other-context"},
		{"orphans g -o xml", `--output: value "xml", allowed: csv, json`},
		{"orphans g --partition x --other-grid h", `partition is "x", allowed: p<number>`},
	} {
		_, err := run(strings.Fields(tc.args)...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: error %v, want a usage error with %q", tc.args, err, tc.want)
		}
	}
	if _, err := run("promote", "g", "--token", filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no token: %v", err)
	}
}

// The term of a forced promotion is above any that the other site can have, though it is not known here.
func TestForcedTerm(t *testing.T) {
	now := time.Unix(1_795_000_009, 0)
	for _, tc := range []struct {
		f           promoteFlags
		known, want int64
	}{
		{promoteFlags{}, 3, 4},
		{promoteFlags{force: true}, 3, 179_500_000},
		{promoteFlags{force: true}, 200_000_000, 200_000_001}, // a clock was ahead
		{promoteFlags{force: true, term: 9}, 3, 9},
	} {
		if got := tc.f.choosesTerm(tc.known, now); got != tc.want {
			t.Errorf("force %t, term %d, known %d: term %d, want %d", tc.f.force, tc.f.term, tc.known, got, tc.want)
		}
	}
}
