package node

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
)

// fabricOf returns the network interface of the address that others use, and the kind of
// its link, once at the start: a pod's addresses do not change.
func fabricOf(advertise, network string, tls bool) metrics.Fabric {
	f := metrics.Fabric{Network: network, Link: "unknown", Transport: "tcp"}
	if network == "" {
		f.Network = podNetwork
	}
	if tls {
		f.Transport = "tls"
	}
	to, err := netip.ParseAddrPort(advertise)
	if err != nil {
		return f // the configuration was checked before
	}
	f.Address = to.Addr().String()
	if name := interfaceOf(to.Addr()); name != "" {
		f.Interface, f.Link = name, linkOf(name)
	}
	return f
}

// interfaceOf is the name of the network interface that has an address, "" if
// none has.
func interfaceOf(addr netip.Addr) string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			continue // it went away
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && holds(p, addr) {
				return i.Name
			}
		}
	}
	return ""
}

// podNetwork stands for the network that every pod has.
const podNetwork = "pods"

// comesFromItsFabric checks the source of a node's connection. From another network it
// would carry replication there.
func (c *Config) comesFromItsFabric(remote string, address []byte) error {
	if !c.FabricOnly {
		return nil
	}
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return fmt.Errorf("it comes from %.64q, which is not an address", remote)
	}
	says, err := netip.ParseAddrPort(string(address))
	if err != nil || says.Addr().Unmap() != from.Addr().Unmap() {
		return fmt.Errorf("it comes from %s and claims to be at %.64q: nodes of this grid reach each other on the network %s only", from.Addr(), address, c.Fabric)
	}
	return nil
}

// holds: every address of the loopback's network is this machine.
func holds(p netip.Prefix, a netip.Addr) bool {
	return p.Addr() == a || p.Addr().IsLoopback() && p.Contains(a)
}

// linkOf is the kind of an interface as the kernel numbers it (ARPHRD_*).
func linkOf(name string) string {
	b, err := os.ReadFile("/sys/class/net/" + name + "/type")
	if err != nil {
		return "unknown"
	}
	switch strings.TrimSpace(string(b)) {
	case "1":
		return "ethernet"
	case "32":
		return "infiniband"
	case "772":
		return "loopback"
	}
	return "other"
}
