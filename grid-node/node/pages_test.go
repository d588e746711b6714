package node

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// page reads a page of a node.
func page[T any](t *testing.T, r *running, path string) (v T) {
	t.Helper()
	code, body := r.get(path)
	if err := json.Unmarshal([]byte(body), &v); code != 200 || err != nil {
		t.Fatalf("GET %s: status %d, %v: %s", path, code, err, body)
	}
	return v
}

// Every connection to another node is on the page, with the kernel's data, for each kind
// of loop and over TLS.
func TestPeersPage(t *testing.T) {
	certs := newCertificates(t)
	for name, change := range map[string]func(*Config){
		"auto": func(*Config) {},
		"net":  func(c *Config) { c.Transport = transport.KindNet },
		"tls":  func(c *Config) { c.TLS = identityOf(t, certs.node) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrid(t, 2, 2) // a partition each: both send beacons
			change(&g.base)
			g.up()
			if g.base.TLS == nil {
				submit(t, g.client(), "p", 5)
			} else {
				submit(t, g.secureClient(client.TLSFiles(certs.client), client.IONet), "p", 5)
			}
			for i, r := range g.nodes {
				other := g.nodes[1-i]
				var p nodestatus.Peers
				g.until(func() bool {
					p = page[nodestatus.Peers](t, r, nodestatus.PeersPath)
					live := p.To(other.cfg.Pod, nodestatus.KindLiveness)
					return len(p.To(other.cfg.Pod, nodestatus.KindPeer)) == 1 && len(live) == 2 && live[0].HeardAgoNs > 0 && live[1].HeardAgoNs > 0
				}, "node %d: %+v", i, func() any { return p })
				if p.Pod != r.cfg.Pod || p.BootID == "" {
					t.Errorf("node %d: %+v", i, p)
				}
				for _, c := range p.To(other.cfg.Pod, "") {
					checkConnection(t, &c, other)
					if want := map[bool]string{false: nodestatus.ProtectionKey, true: nodestatus.ProtectionTLS}[g.base.TLS != nil]; c.Protection != want {
						t.Errorf("node %d: connection %s is protected by %q, want %q", i, c.Kind, c.Protection, want)
					}
				}
				if c := p.To(other.cfg.Pod, nodestatus.KindPeer)[0]; !c.Written || c.Address != other.cfg.Advertise || runtime.GOOS == "linux" && c.TCP.BytesReceived == 0 {
					t.Errorf("node %d: %+v, TCP %+v", i, c, c.TCP)
				}
			}
		})
	}
}

func checkConnection(t *testing.T, c *nodestatus.Connection, other *running) {
	t.Helper()
	if c.Member != other.self || c.Version != wire.Version || !strings.HasPrefix(c.Local, "127.0.0.1:") || !strings.HasPrefix(c.Remote, "127.0.0.1:") || c.Interface == "" || c.Error != "" {
		t.Errorf("%+v", c)
	}
	if runtime.GOOS == "linux" && (c.TCP == nil || c.TCP.State != "ESTABLISHED" || c.TCP.RTTNs <= 0) {
		t.Errorf("%s: TCP %+v", c.Kind, c.TCP)
	}
}

// The steps of a failure, on the nodes that took part.
func TestTakeoversPage(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Lease, g.base.Grace = 5*time.Second, 10*time.Second // a slow machine is not the cause
	g.up()
	c := g.client()
	submit(t, c, "before", 3)
	old := g.nodes[0].self
	g.kill(0)
	submit(t, c, "after", 3)
	latest := func(i int, cause string) (found nodestatus.Change) {
		t.Helper()
		g.until(func() bool {
			for _, ch := range page[nodestatus.Takeovers](t, g.nodes[i], nodestatus.TakeoversPath).Changes {
				if ch.Cause == cause && (found.Epoch == 0 || ch.Epoch > found.Epoch) {
					found = ch
				}
			}
			return found.Outcome == nodestatus.OutcomeAccepted
		}, "node %d knows of no %s that was accepted", i, cause)
		return found
	}
	to := latest(1, nodestatus.CauseTakeOver)
	rec, err := g.store.Get(t.Context(), "g-p0")
	if err != nil || to.Epoch != rec.Epoch || to.ChangeID != rec.ChangeID || to.Primary != g.nodes[1].self || to.Member != to.Primary || to.Role != "primary" ||
		len(to.InSync) != 1 || len(to.Lost) != 1 || to.Lost[0] != old || !to.Reset || !to.Proposed || to.Attempts != 1 || to.Record != "g-p0" {
		t.Errorf("%+v, record %+v, %v", to, rec, err)
	}
	ages := []int64{to.SuspectedAgoNs, to.ProposedAgoNs, to.AcceptedAgoNs, to.ServingAgoNs, to.FirstOrderAgoNs}
	for i, age := range ages {
		if age <= 0 || i > 0 && age > ages[i-1] {
			t.Errorf("ages of suspected, proposed, accepted, serving, first order: %v; want them to fall and none to be 0", ages)
		}
	}
	g.start(0)
	g.ready()
	submit(t, c, "again", 3)
	if in := latest(1, nodestatus.CauseAdmit); len(in.InSync) != 2 || !in.Proposed || in.FirstOrderAgoNs == 0 || in.Lost != nil {
		t.Errorf("admission at the primary: %+v", in)
	}
	if in := latest(0, nodestatus.CauseAdmit); in.Role != "backup" || in.Proposed || in.ServingAgoNs != 0 || in.ProposedAgoNs != 0 {
		t.Errorf("admission at the one admitted: %+v", in)
	}
	g.kill(0)
	submit(t, c, "alone", 3)
	if sh := latest(1, nodestatus.CauseShrink); !sh.Reset || len(sh.Lost) != 1 || sh.ServingAgoNs == 0 || sh.FirstOrderAgoNs == 0 || sh.FirstOrderAgoNs > sh.ProposedAgoNs {
		t.Errorf("shrink: %+v", sh)
	}
}

// The first order after a change is one acknowledged here: entries that a primary takes
// over do not count.
func TestFirstOrderIsNotOneTakenOver(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit(t, g.client(), "before", 50)
	g.kill(0)
	serving := func() (ch nodestatus.Change) {
		for _, ch := range page[nodestatus.Takeovers](t, g.nodes[1], nodestatus.TakeoversPath).Changes {
			if ch.Cause == nodestatus.CauseTakeOver {
				return ch
			}
		}
		return ch
	}
	g.until(func() bool { return serving().ServingAgoNs > 0 }, "no take-over")
	g.settled()
	if ch := serving(); ch.FirstOrderAgoNs != 0 {
		t.Errorf("no order was submitted since, and there is a first order: %+v", ch)
	}
}

// The ring keeps the last changes and no more.
func TestChangesAreBounded(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	for i := range nodestatus.KeptChanges/2 + 1 { // a shrink and an admission each
		g.kill(1)
		submit(t, c, fmt.Sprintf("x%d", i), 1)
		g.start(1)
		g.ready()
	}
	changes := page[nodestatus.Takeovers](t, g.nodes[0], nodestatus.TakeoversPath).Changes
	if len(changes) != nodestatus.KeptChanges {
		t.Fatalf("%d changes, want the last %d", len(changes), nodestatus.KeptChanges)
	}
	for i := 1; i < len(changes); i++ {
		if changes[i].Epoch != changes[i-1].Epoch-1 {
			t.Errorf("epoch %d follows %d", changes[i].Epoch, changes[i-1].Epoch)
		}
	}
}

// The page reads the arbiter itself: an idle node would not know.
func TestArbiterPage(t *testing.T) {
	g := newGrid(t, 2, 1)
	f := &flaky{Arbiter: g.store, away: make(chan struct{})}
	g.arb = f
	g.up()
	r := g.nodes[0]
	if a := page[nodestatus.Arbiter](t, r, nodestatus.ArbiterPath); !a.Reachable || a.Error != "" || a.ContactAgoNs <= 0 || a.TookNs <= 0 || a.Pod != r.cfg.Pod {
		t.Errorf("%+v", a)
	}
	close(f.away)
	var a nodestatus.Arbiter
	g.until(func() bool {
		a = page[nodestatus.Arbiter](t, r, nodestatus.ArbiterPath)
		return !a.Reachable
	}, "an unavailable arbiter counts as reachable")
	if !strings.Contains(a.Error, errAway.Error()) || a.ContactAgoNs <= a.AskedAgoNs {
		t.Errorf("%+v", a)
	}
	g.until(func() bool { // unless the machine hangs for half a second each time
		first, second := page[nodestatus.Arbiter](t, r, nodestatus.ArbiterPath), page[nodestatus.Arbiter](t, r, nodestatus.ArbiterPath)
		return second.AskedAgoNs > first.AskedAgoNs && second.TookNs == first.TookNs
	}, "it is asked again at once, each time")
}
