package gateway

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/fix/desk"
	"github.com/ordergrid/ordergrid/e2e/fix/quickfixj"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// Engines of others send orders over TLS while gateways and primaries are killed under them. They log on again without a
// reset of their numbers, and resend as the session layer asks them to: each order has one report, no number is given
// twice, and each order is in the grid once.
func TestEnginesOverKills(t *testing.T) {
	dir := t.TempDir()
	authority, err := pki.Load(dir, "fix")
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Save(dir, "gateway", pki.Identity{User: "gateway", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	fund, err := authority.Save(dir, "fund", pki.Identity{User: "fund", Names: []string{"fund.example"}, ClientOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	g := testgrid.Run(t)
	c := downstream.Dial(t, g)
	w := startWith(t, g, []roster.Entry{
		{Version: "FIX.4.4", SenderCompID: "BANK", TargetCompID: "GRID", Username: "user", PasswordFile: "password"},
		{Version: "FIX.4.4", SenderCompID: "JAVA", TargetCompID: "GRID", Username: "user", PasswordFile: "password"},
		{Version: "FIX.4.2", SenderCompID: "FUND", TargetCompID: "GRID", Certificate: "fund.example"},
		{Version: "FIXT.1.1", SenderCompID: "NEW", TargetCompID: "GRID", Username: "user", PasswordFile: "password"},
		{Version: "FIXT.1.1", SenderCompID: "NEWJAVA", TargetCompID: "GRID", Username: "user", PasswordFile: "password"},
	}, "--fix-tls-cert", server.Cert, "--fix-tls-key", server.Key, "--fix-tls-ca", server.CA, "--fix-tls-client-auth", "none")
	const pace = 5 * time.Millisecond
	o := counterparty.Options{Target: "GRID", Address: w.addrs[0], Others: w.addrs[1:], CA: server.CA}
	bank, others := o, o
	bank.BeginString, bank.Sender, bank.User, bank.Password = "FIX.4.4", "BANK", "user", "right"
	others.BeginString, others.Sender, others.Cert, others.Key = "FIX.4.2", "FUND", fund.Cert, fund.Key
	later := fix50(t, o)
	later.Sender, later.User, later.Password = "NEW", "user", "right"
	var desks []*desk.Desk
	open := func(d *desk.Desk, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Stop)
		desks = append(desks, d)
	}
	open(desk.QuickFIXGo(bank, pace))
	open(desk.QuickFIXGo(others, pace))
	open(desk.QuickFIXGo(later, pace))
	if os.Getenv("ORDERGRID_REQUIRE_QUICKFIXJ") != "" {
		classpath, err := quickfixj.Classpath(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		trust, err := quickfixj.TrustStore(t.Context(), dir, server.CA)
		if err != nil {
			t.Fatal(err)
		}
		open(desk.QuickFIXJ(classpath, quickfixj.Options{BeginString: "FIX.4.4", Sender: "JAVA", Target: "GRID", Addresses: w.addrs[:], User: "user", Password: "right", TrustStore: trust, Pace: pace}))
		open(desk.QuickFIXJ(classpath, quickfixj.Options{BeginString: "FIXT.1.1", Sender: "NEWJAVA", Target: "GRID", Addresses: w.addrs[:], User: "user", Password: "right", TrustStore: trust, Pace: pace,
			Transport: later.Transport, Dictionary: later.Dictionary}))
	}
	kills := number(t, "ORDERGRID_FIX_KILLS", 2)
	for n := range kills {
		further(t, desks, 20)
		switch {
		case n%5 == 1:
			downstream.KillPrimary(t, c, g, 0)
		default:
			w.runs[n%2].Kill()
			further(t, desks, 20)
			w.start(n % 2)
		}
	}
	further(t, desks, 20)
	for _, d := range desks {
		if err := d.Enough(); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range desks {
		waitFor(t, "an answer to each order: "+d.State().Trouble, func() bool { s := d.State(); return s.Answered == s.Orders })
	}
	grid := counted(t, c)
	for _, d := range desks {
		s := d.State()
		t.Logf("%s (%s): %d orders over %d logons and %d kills", d.Name, d.Engine, s.Orders, s.Logons, kills)
		for _, wrong := range d.Judge(grid) {
			t.Error(wrong)
		}
	}
}

// further waits until so many more orders of each desk are answered.
func further(t *testing.T, desks []*desk.Desk, orders int) {
	t.Helper()
	for _, d := range desks {
		before := d.State().Answered
		waitFor(t, d.Name+" to be answered: "+d.State().Trouble, func() bool { return d.State().Answered >= before+orders })
	}
}
