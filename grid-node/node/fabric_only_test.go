package node

import (
	"net"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// onFabric is a shard of two whose nodes advertise 127.0.61.1 and 127.0.61.2, their fabric, and listen on 127.0.0.1 as
// well, which stands for the pod network.
func onFabric(t *testing.T) *grid {
	g := newGrid(t, 2, 2)
	for i, host := range []string{"127.0.61.1", "127.0.61.2"} {
		_, port, err := net.SplitHostPort(g.addrs[i])
		if err != nil {
			t.Fatal(err)
		}
		g.addrs[i] = net.JoinHostPort(host, port)
	}
	g.base.Fabric, g.base.FabricOnly = "trading/fabric", true
	return g.up()
}

// Nodes reach each other from fabric address to fabric address; a client's first question may come from anywhere.
func TestNodesMeetOnTheFabric(t *testing.T) {
	g := onFabric(t)
	for _, rc := range submit2(t, g, 10) {
		if rc.Copies != 2 {
			t.Fatalf("receipt %v, want 2 copies", rc)
		}
	}
	g.verify("")
	_, port, _ := net.SplitHostPort(g.addrs[0])
	r := dialRaw(t, "127.0.0.1:"+port)
	if _, err := r.Write(hello(wire.RoleClient, 0, "gateway", "")); err != nil {
		t.Fatal(err)
	}
	if f := r.next(); wire.FrameType(f) != wire.TypeWelcome {
		t.Fatalf("a client on the pod network got %v, want Welcome", wire.FrameType(f))
	}
}

func TestNodesBesideTheFabricAreRefused(t *testing.T) {
	g := onFabric(t)
	_, port, _ := net.SplitHostPort(g.addrs[0])
	for name, c := range map[string]struct {
		role    wire.Role
		address string
	}{
		"replication over the pod network":    {wire.RolePeer, "127.0.61.9:1"},
		"heartbeats over the pod network":     {wire.RoleLiveness, "127.0.61.9:1"},
		"catching up over the pod network":    {wire.RoleBulk, "127.0.61.9:1"},
		"an address that is none":             {wire.RolePeer, "fabric.example:1"},
		"an address without a port":           {wire.RolePeer, "127.0.0.1"},
		"an address of several hundred bytes": {wire.RolePeer, strings.Repeat("1", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, "127.0.0.1:"+port)
			if _, err := r.Write(hello(c.role, 0xbad, "g-s0-9/0000000000000bad", c.address)); err != nil {
				t.Fatal(err)
			}
			if m := r.last(); m == nil || m.Code != wire.GoawayRole || !strings.Contains(string(m.Text), "nodes of this grid reach each other on the network trading/fabric only") {
				t.Fatalf("got %+v, want to be refused", m)
			}
		})
	}
}
