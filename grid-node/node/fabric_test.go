package node

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
)

func TestFabricOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("kinds of links are read from /sys: run it on Linux")
	}
	for _, c := range []struct {
		advertise string
		network   string
		tls       bool
		want      metrics.Fabric
	}{
		{"127.0.0.1:7400", "", false, metrics.Fabric{Network: "pods", Interface: "lo", Address: "127.0.0.1", Link: "loopback", Transport: "tcp"}},
		{"127.77.0.2:7400", "trading/fabric", true, metrics.Fabric{Network: "trading/fabric", Interface: "lo", Address: "127.77.0.2", Link: "loopback", Transport: "tls"}},
		{"192.0.2.1:7400", "", false, metrics.Fabric{Network: "pods", Address: "192.0.2.1", Link: "unknown", Transport: "tcp"}},
		{"nowhere", "", false, metrics.Fabric{Network: "pods", Link: "unknown", Transport: "tcp"}},
	} {
		if got := fabricOf(c.advertise, c.network, c.tls); got != c.want {
			t.Errorf("fabricOf(%q, %q, %v) = %+v, want %+v", c.advertise, c.network, c.tls, got, c.want)
		}
	}
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		prefix, address string
		want            bool
	}{
		{"10.0.0.5/24", "10.0.0.5", true},
		{"10.0.0.5/24", "10.0.0.6", false}, // a neighbour's
		{"127.0.0.1/8", "127.0.3.1", true},
		{"::1/128", "::1", true},
		{"10.0.0.5/24", "::1", false},
	} {
		if got := holds(netip.MustParsePrefix(c.prefix), netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("holds(%s, %s) = %v", c.prefix, c.address, got)
		}
	}
}
