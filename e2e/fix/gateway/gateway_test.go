// Package gateway tests order-gateway as a process, before a grid of real processes, with
// quickfixgo's initiator as the counterparty.
package gateway

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/fix/quickfixgo"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// site is a grid with a gateway before it.
type site struct {
	address string
	ca      string
	bank    pki.Files
}

// sessions of the gateway: one with a password, one with a certificate.
func start(t *testing.T, endpoints []string, args ...string) *site {
	t.Helper()
	dir := t.TempDir()
	authority, err := pki.Load(dir, "fix")
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Save(dir, "gateway", pki.Identity{User: "gateway", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	bank, err := authority.Save(dir, "bank", pki.Identity{User: "bank", Names: []string{"bank.example"}})
	if err != nil {
		t.Fatal(err)
	}
	password := filepath.Join(dir, "password")
	file, err := json.Marshal(map[string][]roster.Entry{"sessions": {
		{Version: "FIX.4.4", SenderCompID: "P", TargetCompID: "GRID", Username: "user", PasswordFile: password},
		{Version: "FIX.4.4", SenderCompID: "R", TargetCompID: "GRID", Username: "user", PasswordFile: password},
		{Version: "FIX.4.2", SenderCompID: "C", TargetCompID: "GRID", Certificate: "bank.example"},
		{Version: "FIXT.1.1", SenderCompID: "N", TargetCompID: "GRID", Username: "user", PasswordFile: password},
	}})
	if err != nil {
		t.Fatal(err)
	}
	sessions := filepath.Join(dir, "sessions.json")
	for path, text := range map[string]string{password: "right\n", sessions: string(file)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := proc.PortForTest(t)
	downstream.Run(t, "order-gateway", append([]string{"--listen", address, "--sessions", sessions, "--fix-tls-cert", server.Cert, "--fix-tls-key", server.Key,
		"--fix-tls-ca", server.CA, "--fix-tls-client-auth", "none", "--endpoint", strings.Join(endpoints, ","), "--log-level", "debug"}, args...)...)
	return &site{address: address, ca: server.CA, bank: bank}
}

// Orders of three engines, one in each version, arrive in the grid while its primaries are killed; each gets one
// report, and is in the grid.
func TestOrdersOverFailover(t *testing.T) {
	g := testgrid.Run(t)
	c := downstream.Dial(t, g)
	s := start(t, g.Endpoints)
	engines := map[string]counterparty.Options{
		"P": {BeginString: "FIX.4.4", User: "user", Password: "right"},
		"C": {BeginString: "FIX.4.2", Cert: s.bank.Cert, Key: s.bank.Key},
		"N": fix50(t, counterparty.Options{User: "user", Password: "right"}),
	}
	const orders = 150
	running := map[string]*counterparty.Initiator{}
	for name, o := range engines {
		o.Sender, o.Target, o.Address, o.CA = name, "GRID", s.address, s.ca
		i, err := counterparty.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		defer i.Stop()
		running[name] = i
		if err := i.Wait(time.Minute, func(s counterparty.Seen) bool { return s.LoggedOn }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for n := range orders {
		for name, i := range running {
			if err := i.Order(fmt.Sprintf("%s-%d", name, n), "ACME"); err != nil {
				t.Fatal(err)
			}
		}
		if n == orders/2 {
			downstream.KillPrimary(t, c, g, 0)
		}
	}
	for name, i := range running {
		var seen counterparty.Seen
		if err := i.Wait(time.Minute, func(s counterparty.Seen) bool { seen = s; return len(s.Reports) == orders }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(seen.Refused) > 0 || len(seen.Admin) > 0 || seen.Logons != 1 {
			t.Errorf("%s: %d logons, refused: %q %q", name, seen.Logons, seen.Refused, seen.Admin)
		}
		for id, types := range seen.Reports {
			if len(types) != 1 || types[0] != "0" {
				t.Errorf("the reports of %s are %q, expected one of type 0", id, types)
			}
			if _, err := c.GetFix(t.Context(), client.FixSessionOf(engines[name].BeginString, name, "GRID"), client.FixToday, id); err != nil {
				t.Errorf("order %s was reported and is not in the grid: %v", id, err)
			}
		}
	}
	p := running["P"]
	if err := p.Order("P-0", "ACME"); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(time.Minute, func(s counterparty.Seen) bool { return len(s.Refused) == 1 }); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait(time.Second, func(s counterparty.Seen) bool {
		if !strings.Contains(s.Refused[0], "an order of the session has this ClOrdID on this day") {
			t.Errorf("refused: %q", s.Refused)
		}
		return true
	})
}

// fix50 is an engine of FIX 5.0 SP2, which checks messages by its dictionaries.
func fix50(t *testing.T, o counterparty.Options) counterparty.Options {
	t.Helper()
	var err error
	if o.Transport, o.Dictionary, err = quickfixgo.FIX50(); err != nil {
		t.Fatal(err)
	}
	o.BeginString = "FIXT.1.1"
	return o
}

// Wrong passwords and missing certificates do not log on; who does has a bound of orders
// under way, behind which nothing is read, and each order gets its report.
func TestStrangersAndBounds(t *testing.T) {
	g := testgrid.Run(t)
	s := start(t, g.Endpoints, "--max-in-flight", "1")
	good, err := counterparty.Start(counterparty.Options{BeginString: "FIX.4.4", Sender: "P", Target: "GRID", Address: s.address, CA: s.ca, User: "user", Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	if err := good.Wait(time.Minute, func(s counterparty.Seen) bool { return s.LoggedOn }); err != nil {
		t.Fatal(err)
	}
	const orders = 30
	for n := range orders {
		if err := good.Order(fmt.Sprint("b", n), "ACME"); err != nil {
			t.Fatal(err)
		}
	}
	if err := good.Wait(time.Minute, func(s counterparty.Seen) bool { return len(s.Reports) == orders && len(s.Refused) == 0 }); err != nil {
		t.Fatal(err)
	}
	good.Stop()
	for _, o := range []counterparty.Options{
		{BeginString: "FIX.4.4", Sender: "P", User: "user", Password: "wrong"},
		{BeginString: "FIX.4.4", Sender: "P"},
		{BeginString: "FIX.4.2", Sender: "C"},
		{BeginString: "FIX.4.4", Sender: "X", User: "user", Password: "right"},
	} {
		o.Target, o.Address, o.CA = "GRID", s.address, s.ca
		i, err := counterparty.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Wait(1500*time.Millisecond, func(s counterparty.Seen) bool { return s.Logons > 0 }); err == nil {
			t.Errorf("%s logged on with user %q and password %q", o.Sender, o.User, o.Password)
		}
		i.Stop()
	}
}
