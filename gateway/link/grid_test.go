package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/link"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/golden"
)

// sites are two grids of real processes.
type sites struct {
	t      *testing.T
	a, b   *testgrid.Grid
	ca, cb *client.Client
}

func newSites(t *testing.T) *sites {
	s := &sites{t: t, a: testgrid.Run(t, "--external-sink", "link"), b: testgrid.Run(t, "--external-sink", "link", "--standby", "--source", "site a")}
	s.ca, s.cb = downstream.Dial(t, s.a), downstream.Dial(t, s.b)
	return s
}

// running is a Runner of this process, over roads to both grids.
type running struct {
	*link.Runner
	stop func()
}

// setSpec changes fields of the spec of a partition's record.
func (s *sites) setSpec(g *testgrid.Grid, partition int, fields string) {
	s.t.Helper()
	if err := g.SetSpec(fmt.Sprintf("dev-p%d", partition), fields); err != nil {
		s.t.Fatal(err)
	}
}

// link runs a link until stop or the end of the test.
func (s *sites) link(from, to *testgrid.Grid, over *downstream.Roads) *running {
	s.t.Helper()
	r, err := link.New(link.Config{Source: downstream.DialOver(s.t, from, nil), Target: downstream.DialOver(s.t, to, over), SourceName: "dev", TargetName: "dev", Reader: "link"})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	stop := sync.OnceFunc(func() { cancel(); all.Wait() })
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("link: %+v", r.Status())
		}
		stop()
	})
	return &running{r, stop}
}

// logOf is the committed log of a partition as its primary has it: the hash of each entry, and the ClOrdIDs of orders.
func (s *sites) logOf(c *client.Client, p wire.PartitionID) (hashes []uint64, orders map[uint64]string) {
	s.t.Helper()
	orders = map[uint64]string{}
	_, err := c.ReadLog(s.t.Context(), p, "", 1, func(e client.LogEntry) error {
		hashes = append(hashes, order.Hash(e.Bytes))
		if o, ok := e.Order(p); ok {
			orders[e.Seq] = o.ClOrdID
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return hashes, orders
}

// same waits until both sites have the same log, entry for entry, with every order that was acknowledged.
func (s *sites) same(acked map[wire.OrderID]string) {
	s.t.Helper()
	for i := range s.ca.Table() {
		p := wire.PartitionID(i)
		var a, b []uint64
		downstream.WaitFor(s.t, "the same log at both sites", func() bool {
			a, _ = s.logOf(s.ca, p)
			b, _ = s.logOf(s.cb, p)
			return len(a) == len(b)
		})
		if !slices.Equal(a, b) {
			s.t.Fatalf("%s: the sites have %d entries each, and not the same", p, len(a))
		}
		_, orders := s.logOf(s.cb, p)
		lost := 0
		for id, clOrdID := range acked {
			if id.Partition == p && orders[id.Seq] != clOrdID {
				lost++
			}
		}
		if lost > 0 {
			s.t.Errorf("%s: %d acknowledged orders are not at their place at the standby", p, lost)
		}
	}
	for _, c := range []*client.Client{s.ca, s.cb} {
		var report *verify.Result
		// A backup learns of the last commit with the next heartbeat, and on a starved machine a copy may be dropped while
		// it is read: failed reads are repeated, a difference fails.
		downstream.WaitFor(s.t, "a complete comparison", func() bool {
			downstream.WaitForCopies(s.t, c)
			var err error
			if report, err = verify.Run(s.t.Context(), verify.FromClient(c), verify.Options{}); err != nil {
				s.t.Fatal(err)
			}
			return report.ExitCode() != verify.ExitIncomplete
		})
		if report.ExitCode() != verify.ExitEqual {
			var text strings.Builder
			_ = report.WriteText(&text)
			s.t.Errorf("verify: %s", text.String())
		}
	}
}

// demote makes a's partitions standbys, and promotes b's with the ends of their logs.
func (s *sites) demote() {
	s.t.Helper()
	for i := range s.ca.Table() {
		s.setSpec(s.a, i, `{"demote": {"wanted": true, "term": 0}}`)
	}
	for i := range s.ca.Table() {
		at := s.await(s.ca, i, true, 0)
		s.setSpec(s.b, i, fmt.Sprintf(`{"promote": {"term": 1, "seq": %d, "hash": "%016x"}}`, at.Stored.Seq, at.Stored.Hash))
	}
	for i := range s.cb.Table() {
		s.await(s.cb, i, false, 1)
	}
}

// await waits for the role and the term of a partition.
func (s *sites) await(c *client.Client, partition int, standby bool, term uint64) (at client.Site) {
	s.t.Helper()
	downstream.WaitFor(s.t, fmt.Sprintf("p%d: standby %t in term %d", partition, standby, term), func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
		defer cancel()
		var err error
		at, err = c.Site(ctx, wire.PartitionID(partition))
		return err == nil && at.Standby == standby && at.Term == term
	})
	return at
}

// refused is an order at a site that takes none.
func (s *sites) refused(c *client.Client, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	_, err := c.Submit(ctx, testgrid.Order("AT-A-STANDBY", 305))
	if err == nil || !strings.Contains(err.Error(), text) {
		s.t.Fatalf("an order at a standby: %v, want an error with %q", err, text)
	}
}

// Orders flow at one site while the way between the sites is cut and primaries of both are killed. The other one has each
// entry once and in order. It is promoted with the ends of the logs, takes orders, and the link is turned round.
func TestLinkGridKilledAndCut(t *testing.T) {
	s := newSites(t)
	s.refused(s.cb, "p") // before there is a link
	roads := downstream.NewRoads(t.Context(), 10*time.Millisecond, 0)
	r := s.link(s.a, s.b, roads)
	load := downstream.StartLoad(t, s.ca, 2)
	for i := range downstream.Kills(t, 3) {
		before := load.Count()
		downstream.WaitFor(t, "200 orders", func() bool { return load.Count() > before+200 })
		switch i % 3 {
		case 0:
			downstream.WaitForCopies(t, s.cb)
			downstream.KillPrimary(t, s.cb, s.b, wire.PartitionID(i/3%2))
		case 1:
			roads.Cut()
			downstream.WaitFor(t, "200 orders", func() bool { return load.Count() > before+400 })
			roads.Mend()
		case 2:
			downstream.WaitForCopies(t, s.ca)
			downstream.KillPrimary(t, s.ca, s.a, wire.PartitionID(i/3%2))
		}
	}
	acked := load.Stop()
	s.same(acked)
	t.Logf("%d orders, all at both sites, through %d cuts and kills", len(acked), downstream.Kills(t, 3))
	for _, p := range r.Status().Partitions {
		if p.LagEntries > 0 && p.Error != nil {
			t.Errorf("%s: %+v", p.Partition, p)
		}
	}
	s.demote()
	s.refused(s.ca, "standby")
	r.stop()
	back := s.link(s.b, s.a, roads)
	load = downstream.StartLoadOf(t, s.cb, 2, "AFTER")
	downstream.WaitFor(t, "200 orders", func() bool { return load.Count() > 200 })
	for id, clOrdID := range load.Stop() {
		acked[id] = clOrdID
	}
	s.same(acked)
	for id, clOrdID := range acked { // a retry at the other site is the same order
		if _, err := s.cb.Submit(t.Context(), testgrid.Order(clOrdID, 305)); !errors.Is(err, client.ErrDuplicateClOrdID) {
			t.Errorf("order %s (%s) again at the other site: %v", clOrdID, id, err)
		}
		break
	}
	back.stop()
}

// A site is promoted by force while the other one takes orders, out of reach. When the way is mended the link of the
// promoted site stops the other one, and what that has alone is reported, order by order.
func TestForcedPromotionFencesAndReports(t *testing.T) {
	s := newSites(t)
	roads := downstream.NewRoads(t.Context(), 10*time.Millisecond, 0)
	r := s.link(s.a, s.b, roads)
	load := downstream.StartLoad(t, s.ca, 1)
	downstream.WaitFor(t, "100 orders", func() bool { return load.Count() > 100 })
	load.Stop()
	s.same(nil)
	roads.Cut()
	r.stop()
	alone := map[string]wire.OrderID{}
	for i := range 60 {
		id := fmt.Sprintf("ALONE-%d", i)
		receipt, err := s.ca.Submit(t.Context(), testgrid.Order(id, 305))
		if err != nil {
			t.Fatal(err)
		}
		alone[id] = receipt.ID()
	}
	for i := range s.cb.Table() {
		s.setSpec(s.b, i, `{"promote": {"term": 1, "forced": true}}`)
	}
	for i := range s.cb.Table() {
		s.await(s.cb, i, false, 1)
	}
	for _, id := range []string{"ALONE-3", "ALONE-40"} { // their clients have given up on the other site
		if _, err := s.cb.Submit(t.Context(), testgrid.Order(id, 305)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ca.Submit(t.Context(), testgrid.Order("LATE", 305)); err != nil {
		t.Fatalf("a site that has heard of nothing: %v", err)
	}
	roads.Mend()
	back := s.link(s.b, s.a, roads)
	for i := range s.ca.Table() {
		s.await(s.ca, i, true, 1)
	}
	s.refused(s.ca, "standby")
	downstream.WaitFor(t, "an error for an administrator", func() bool {
		return slices.ContainsFunc(back.Status().Partitions, func(p link.PartitionStatus) bool {
			return p.Error != nil && p.Error.Permanent && strings.Contains(p.Error.Text, "orphans")
		})
	})
	back.stop()
	found := s.orphans()
	if len(found) != len(alone)+1 {
		t.Errorf("%d orphans are reported, want %d", len(found), len(alone)+1)
	}
	for id, at := range alone {
		o, ok := found[id]
		again := id == "ALONE-3" || id == "ALONE-40"
		if !ok || o.ID != at.String() || o.Symbol != "IBM" || o.Quantity != "100" || o.Price != "125.25" || o.Account != "ACC" || (o.Now != "") != again {
			t.Errorf("orphan %s at %s is reported as %+v", id, at, o)
		}
	}
}

// The process is killed while orders come, and started again; the bandwidth is less than they need, so it lags, and
// catches up. Its pages are those of docs/metrics.md.
func TestLinkProcessKilled(t *testing.T) {
	s := newSites(t)
	testgrid.Program(t, "grid-link") // before there is load
	load := downstream.StartLoad(t, s.ca, 2)
	p := downstream.StartLink(t, s.a, s.b, "--max-bandwidth", "1000000", "--batch", "50", "--delay", "2ms")
	for range 3 {
		var status link.Status
		downstream.WaitFor(t, "entries on their way", func() bool {
			p.Status(&status)
			return slices.ContainsFunc(status.Partitions, func(p link.PartitionStatus) bool { return p.Frames > 3 && p.LagEntries > 0 })
		})
		p.Kill()
		p = downstream.StartLink(t, s.a, s.b, "--max-bandwidth", "4000000")
	}
	acked := load.Stop()
	s.same(acked)
	var status link.Status
	downstream.WaitFor(t, "a link without a lag", func() bool {
		p.Status(&status)
		return status.Ready && !slices.ContainsFunc(status.Partitions, func(p link.PartitionStatus) bool { return p.LagEntries > 0 || p.HeldSeq == 0 })
	})
	p.Stop()
	r := s.link(s.a, s.b, nil)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(r.Collector())
	golden.Metrics(t, "../../docs/metrics.md", reg, func(name string) bool { return strings.HasPrefix(name, "ordergrid_link_") })
	downstream.WaitFor(t, "readiness", func() bool { return r.Status().Ready })
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ok", "/status": `"reader": "link"`, "/metrics": `ordergrid_link_lag_entries{partition="p0",target="dev"}`} {
		w := httptest.NewRecorder()
		r.Handler(reg).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
}

// A link over TLS, with certificates by file.
func TestLinkOverTLS(t *testing.T) {
	a := testgrid.Run(t, "--tls", "--external-sink", "link", "--partitions", "1")
	b := testgrid.Run(t, "--tls", "--external-sink", "link", "--standby", "--partitions", "1")
	files := func(role string, g *testgrid.Grid) []string {
		return []string{"--" + role + "-tls-cert", g.TLS.Cert, "--" + role + "-tls-key", g.TLS.Key, "--" + role + "-tls-ca", g.TLS.CA}
	}
	p := downstream.StartLink(t, a, b, append(files("source", a), files("target", b)...)...)
	var status link.Status
	downstream.WaitFor(t, "entries at the standby", func() bool {
		p.Status(&status)
		return len(status.Partitions) == 1 && status.Partitions[0].HeldSeq > 0
	})
	plain := append([]string{"sites", "--dial-timeout", "2s"}, downstream.LinkArgs(a, b)...)
	if out := downstream.Run(t, "grid-link", plain...).End(1); !strings.Contains(out, "TLS") {
		t.Errorf("without certificates: %s", out)
	}
	out := downstream.Run(t, "grid-link", append(append(plain, files("source", a)...), files("target", b)...)...).End(0)
	for _, want := range []string{"Active", "Standby"} {
		if !strings.Contains(out, want) {
			t.Errorf("sites: %s", out)
		}
	}
}

// orphans is the report of grid-link, by ClOrdID.
func (s *sites) orphans() map[string]link.Orphan {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "orphans")
	downstream.Run(s.t, "grid-link", append([]string{"orphans", "--format", "json", "--output", file}, downstream.LinkArgs(s.b, s.a)...)...).End(0)
	out, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]link.Orphan{}
	for line := range strings.Lines(string(out)) {
		var o link.Orphan
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				s.t.Fatalf("%s: %v", line, err)
			}
			found[o.ClOrdID] = o
		}
	}
	return found
}
