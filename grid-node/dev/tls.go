package dev

import (
	"errors"
	"net/netip"
	"path/filepath"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// makeCertificates makes an authority, a certificate for the nodes and one for clients,
// which is not valid for a node.
func (g *grid) makeCertificates(dir string) error {
	ca, err := pki.Load(filepath.Join(dir, "authority"), "ordergrid dev")
	if err != nil {
		return err
	}
	nodes := pki.Identity{User: "ordergrid-dev-node", Names: []string{"localhost"}}
	for i := range g.o.Replicas*g.o.Shards + maxReplacements {
		addr, err := netip.ParseAddr(g.o.host(i))
		if err != nil {
			return err
		}
		nodes.Addrs = append(nodes.Addrs, addr)
		if !g.o.HostPerNode {
			break
		}
	}
	node, err1 := ca.Save(dir, "node", nodes)
	client, err2 := ca.Save(dir, "client", pki.Identity{User: "ordergrid-dev-client", ClientOnly: true})
	g.nodeTLS, g.clientTLS = (*TLS)(&node), (*TLS)(&client)
	return errors.Join(err1, err2)
}
