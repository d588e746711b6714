package fardrill

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/link"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
)

// pair is a grid and its standby, with the link between them, all of them processes.
type pair struct {
	t      *testing.T
	a, b   *testgrid.Grid
	link   *downstream.Sink
	turned *switchboard
}

func newPair(t *testing.T, args ...string) *pair {
	p := &pair{t: t, turned: newSwitchboard(t), a: testgrid.Run(t, append([]string{"--external-sink", "link"}, args...)...), b: testgrid.Run(t, "--external-sink", "link", "--standby", "--source", "site a")}
	for _, program := range []string{"kubectl-ordergrid", "grid-link"} { // before there is load
		testgrid.Program(t, program)
	}
	p.link = downstream.StartLink(t, p.a, p.b)
	return p
}

// plugin runs kubectl ordergrid at a site.
func (p *pair) plugin(g *testgrid.Grid, args ...string) string {
	p.t.Helper()
	return downstream.Run(p.t, "kubectl-ordergrid", append(args, "--arbiter", g.Arbiter, "--endpoint", strings.Join(g.Endpoints, ","))...).End(0)
}

// carries waits until the link is open and has no error.
func (p *pair) carries() {
	p.t.Helper()
	var s link.Status
	downstream.WaitFor(p.t, "a link that carries", func() bool {
		p.link.Status(&s)
		return s.Ready && len(s.Partitions) > 0 && !slices.ContainsFunc(s.Partitions, func(p link.PartitionStatus) bool { return p.HeldSeq == 0 })
	})
}

// The sites change over in good order while orders come: the one is demoted, the other promoted with its token, and clients
// are led there. The certificate reads the logs of the promoted site, where every order stands at its place: nothing is
// lost, and what was under way is answered there once.
func TestSiteChange(t *testing.T) {
	enabled(t)
	p := newPair(t)
	p.carries()
	d := begin(t, "site-change", p.a, func(c *recorder.Config) {
		c.Dial, c.NoSink = p.turned.dial, "the logs of the promoted site are compared"
	})
	token := filepath.Join(t.TempDir(), "token")
	d.step(fault{kind: "SiteChange", what: "site a is demoted, site b is promoted with its token", failedOrders: api.FailedOrdersAllowed, inject: func() string {
		p.plugin(p.a, "demote", "dev", "--token", token)
		said := p.plugin(p.b, "promote", "dev", "--token", token)
		p.turned.turn(p.a, p.b)
		return said
	}})
	certified(t, d, func(c *certificate.Certificate) {
		if c.Verdict != certificate.Pass || c.Ledger.Lost != 0 {
			t.Errorf("verdict %s, %d lost: %v", c.Verdict, c.Ledger.Lost, c.Reasons)
		}
	})
}

// Everything of a site is killed at once while orders come, and the standby is promoted by force. The certificate reads
// the logs of the promoted site: what is lost is what the link had not carried, the lag, and not an order more.
func TestSiteLoss(t *testing.T) {
	enabled(t)
	p := newPair(t)
	p.carries()
	d := begin(t, "site-loss", p.a, func(c *recorder.Config) {
		c.Dial, c.NoSink = p.turned.dial, "the logs of the promoted site are compared"
	})
	d.step(fault{kind: "SiteLoss", what: "everything of site a is killed, site b is promoted by force", failedOrders: api.FailedOrdersAllowed, inject: func() string {
		p.a.Kill()
		seen := gone(t, p.a.Endpoints[0]) + "; " + gone(t, p.a.Endpoints[1])
		said := p.plugin(p.b, "promote", "dev", "--force")
		p.turned.turn(p.a, p.b)
		return seen + "; " + said
	}})
	certified(t, d, func(c *certificate.Certificate) { withinLag(t, c) })
}

// Everything of a site is killed, the link too, and the grid is restored from its archive under another address. The
// certificate reads the logs of the restored grid.
func TestSiteRestore(t *testing.T) {
	enabled(t)
	dir := t.TempDir()
	a := testgrid.Run(t, "--external-sink", "archive")
	testgrid.Program(t, "grid-sink")
	s := downstream.StartSink(t, a, "archive", "archive", "--url", dir, "--linger", "50ms")
	turned := newSwitchboard(t)
	d := begin(t, "site-restore", a, func(c *recorder.Config) { c.Dial, c.NoSink = turned.dial, "the logs of the restored grid are compared" })
	d.step(fault{kind: "SiteLoss", what: "everything of the grid is killed, and it is restored from its archive", failedOrders: api.FailedOrdersAllowed, inject: func() string {
		a.Kill()
		seen := gone(t, a.Endpoints[0]) + "; " + gone(t, a.Endpoints[1])
		s.Kill()
		restored := testgrid.Run(t, "--external-sink", "archive", "--restore-from", dir)
		turned.turn(a, restored)
		return seen + "; another grid has the archive"
	}})
	certified(t, d, func(c *certificate.Certificate) { withinLag(t, c) })
}

// withinLag: a site that is lost takes with it at most what one second of orders is, the recovery point; nothing else is
// wrong with what is left.
func withinLag(t *testing.T, c *certificate.Certificate) {
	t.Helper()
	t.Logf("%d of %d acknowledged orders are lost with the site", c.Ledger.Lost, c.Orders.Acknowledged)
	if c.Verdict == certificate.Invalid || c.Ledger.Lost > int64(c.Rate) {
		t.Errorf("verdict %s, %d lost, want at most %d, one second: %v", c.Verdict, c.Ledger.Lost, c.Rate, c.Reasons)
	}
	if c.Ledger.Duplicated != 0 || c.Ledger.Gaps != 0 || c.Ledger.Corrupt != 0 || c.Ledger.Lost == 0 && c.Verdict != certificate.Pass {
		t.Errorf("%+v: %v", c.Ledger, c.Reasons)
	}
}
