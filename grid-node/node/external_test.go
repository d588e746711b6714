package node

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// withOutside is a pair whose nodes have a second port. Clients outside are told it by the name localhost, those inside the
// address 127.0.0.1 of the first.
func withOutside(t *testing.T, partitions int) *grid {
	g := newGrid(t, 2, 2)
	g.base.Partitions = partitions
	g.outside = freeAddrs(t, 2)
	g.tellOutside(g.outsideNames()...)
	return g.up()
}

func (g *grid) outsideNames() (names []string) {
	for _, a := range g.outside {
		_, port, _ := net.SplitHostPort(a)
		names = append(names, net.JoinHostPort("localhost", port))
	}
	return names
}

// tellOutside writes addresses of the pods into the record, as the operator does, and of a second shard.
func (g *grid) tellOutside(addresses ...string) {
	g.t.Helper()
	if _, err := g.store.SetSpec(PartitionName("g", 0), func(s *arbiter.Spec) error {
		s.External = nil
		for i, a := range addresses {
			s.External = append(s.External, arbiter.ExternalAddress{Pod: []string{"g-s0-0", "g-s0-1"}[i], Address: a})
		}
		s.External = append(s.External,
			arbiter.ExternalAddress{Pod: "g-s1-0", Address: "s1-0.example:7400"}, arbiter.ExternalAddress{Pod: "g-s1-1", Address: "s1-1.example:7400"},
			arbiter.ExternalAddress{Pod: "g-s2-0", Address: "s2-0.example:7400"}, arbiter.ExternalAddress{Pod: "g-s2-1", Address: "s2-1.example:7400"})
		return nil
	}); err != nil {
		g.t.Fatal(err)
	}
}

// table is what the node at addr tells a client.
func (g *grid) table(addr string) *wire.Table {
	g.t.Helper()
	r := dialRaw(g.t, addr)
	if _, err := r.Write(wire.AppendRequest(hello(wire.RoleClient, 0, "gateway", ""), wire.TypeTableRequest, &wire.Request{ReqID: 1})); err != nil {
		g.t.Fatal(err)
	}
	r.next()
	m := &wire.Table{}
	if err := wire.DecodeTable(slices.Clone(r.next()), m); err != nil {
		g.t.Fatal(err)
	}
	return m
}

func addressesOf(m *wire.Table) (list []string) {
	for _, p := range m.Parts {
		for _, mb := range p.Members {
			if a := string(mb.Address); !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	slices.Sort(list)
	return list
}

func TestClientsOutsideAreToldAddressesThatLeadThere(t *testing.T) {
	g := withOutside(t, 3) // the third is on another shard
	want := slices.Sorted(slices.Values(g.outsideNames()))
	g.until(func() bool { return slices.Equal(addressesOf(g.table(g.outside[0])), want) }, "a client outside is told %v, want %v",
		func() any { return addressesOf(g.table(g.outside[0])) }, want)
	inside := g.table(g.addrs[0])
	if got, want := addressesOf(inside), slices.Sorted(slices.Values(g.addrs)); !slices.Equal(got, want) {
		t.Errorf("a client inside is told %v, want %v", got, want)
	}

	// Partitions of other shards, by their records: the same parts lead elsewhere for clients inside.
	g.foreign(2, 1)
	foreign := func(addr string) []string {
		m := g.table(addr)
		return addressesOf(&wire.Table{Parts: m.Parts[2:]})
	}
	g.until(func() bool {
		return slices.Equal(foreign(g.outside[0]), []string{"s1-0.example:7400", "s1-1.example:7400"})
	}, "a client outside is told %v of shard 1", func() any { return foreign(g.outside[0]) })
	if got := foreign(g.addrs[0]); !slices.Equal(got, []string{"10.0.1.0:7400", "10.0.1.1:7400"}) {
		t.Errorf("a client inside is told %v of shard 1", got)
	}
	if err := g.store.Delete(PartitionName("g", 2)); err != nil {
		t.Fatal(err)
	}

	// A pod without an address is not dialled; the other one is.
	g.tellOutside(g.outsideNames()[0])
	want = []string{"", g.outsideNames()[0]}
	g.until(func() bool { return slices.Equal(addressesOf(g.table(g.outside[0])), want) }, "after one address went a client outside is told %v, want %v",
		func() any { return addressesOf(g.table(g.outside[0])) }, want)
}

// A client outside that comes to a backup is sent to the primary by an address that leads there, for orders, sessions and
// reads alike; and its orders follow a hand-over.
func TestClientsOutsideAreRedirected(t *testing.T) {
	g := withOutside(t, 2)
	backup := 1 // of partition 0
	g.until(func() bool { return !slices.Contains(addressesOf(g.table(g.outside[backup])), "") }, "the addresses do not arrive")
	r := dialRaw(t, g.outside[backup])
	b := hello(wire.RoleClient, 0, "gateway", "")
	b = wire.AppendOpenSession(b, 0, &wire.OpenSession{ReqID: 1, IDHi: 7, IDLo: 7, Attempt: 1})
	b = wire.AppendGet(b, 0, &wire.Get{ReqID: 2, By: wire.ByID, Mode: wire.ModeConfirmed, Seq: 1})
	b = wire.AppendGet(b, 0, &wire.Get{ReqID: 3, By: wire.ByID, Mode: wire.ModeConfirmed, Seq: 1})
	b = wire.AppendRequest(b, wire.TypePing, &wire.Request{ReqID: 4})
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	r.next()
	for answered := 0; answered < 4; answered++ {
		frame := r.next()
		if wire.FrameType(frame) == wire.TypePong {
			continue
		}
		var m wire.NotPrimary
		if err := wire.DecodeNotPrimary(frame, &m); err != nil {
			t.Fatal(err)
		}
		if got, want := string(m.Address), g.outsideNames()[0]; got != want {
			t.Errorf("request %d is redirected to %q, want %q", m.RequestID, got, want)
		}
	}

	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.outside[:1], Grid: "g", IO: client.IONet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, pod := range []string{"g-s0-0", "g-s0-1"} {
		if _, err := g.store.SetSpec(PartitionName("g", 0), func(s *arbiter.Spec) error { s.PreferredPod = pod; return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if _, err := c.SubmitTo(t.Context(), 0, fix(pod+"-"+string(rune('a'+i)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range c.Table() {
		for _, m := range p.Members {
			if !strings.HasPrefix(m.Address, "localhost:") {
				t.Errorf("the client outside knows %s of %s at %s", m.ID, p.ID, m.Address)
			}
		}
	}
	_ = c.Close()
	g.verify("")
}

// Orders and their copies do not travel by the port for clients outside.
func TestNodesDoNotComeFromOutside(t *testing.T) {
	g := withOutside(t, 2)
	for name, role := range map[string]wire.Role{"replication": wire.RolePeer, "heartbeats": wire.RoleLiveness, "catching up": wire.RoleBulk} {
		t.Run(name, func(t *testing.T) {
			for addr, want := range map[string]wire.Type{g.outside[0]: wire.TypeGoaway, g.addrs[0]: wire.TypeChallenge} {
				r := dialRaw(t, addr)
				if _, err := r.Write(helloAs(role, "g-s0-9/00000000000000b0", "127.0.0.1:1")); err != nil {
					t.Fatal(err)
				}
				if got := wire.FrameType(r.next()); got != want {
					t.Errorf("a node at %s got %v, want %v", addr, got, want)
				}
			}
		})
	}
}

// While a grid changes to TLS its nodes take plain clients inside. Outside they do not.
func TestNoPlainClientFromOutside(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.TLS, g.base.TLSTransition = identityOf(t, newCertificates(t).node), TLSAccept
	g.outside = freeAddrs(t, 1)
	g.up()
	for addr, want := range map[string]wire.Type{g.outside[0]: wire.TypeGoaway, g.addrs[0]: wire.TypeWelcome} {
		r := dialRaw(t, addr)
		if _, err := r.Write(hello(wire.RoleClient, 0, "gateway", "")); err != nil {
			t.Fatal(err)
		}
		if got := wire.FrameType(r.next()); got != want {
			t.Errorf("a plain client at %s got %v, want %v", addr, got, want)
		}
	}
}
