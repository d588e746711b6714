package grid

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// certificates makes those of the nodes at the addresses and of the client, and
// returns the flags of the nodes; none without TLS.
func (g *Grid) certificates(addresses []string, run *system.Running) ([]string, error) {
	if !g.TLS {
		return nil, nil
	}
	ca, err := pki.Load(filepath.Join(g.Dir, "authority"), "ordergrid bench")
	if err != nil {
		return nil, err
	}
	id := pki.Identity{User: "node"}
	for _, a := range addresses {
		ap, err := netip.ParseAddrPort(a)
		if err != nil {
			return nil, fmt.Errorf("address of a node: %w", err)
		}
		id.Addrs = append(id.Addrs, ap.Addr())
	}
	node, err := ca.Save(g.Dir, "node", id)
	if err != nil {
		return nil, err
	}
	client, err := ca.Save(g.Dir, "client", pki.Identity{User: "client", ClientOnly: true})
	if err != nil {
		return nil, err
	}
	run.TLS = &secure.Files{Cert: client.Cert, Key: client.Key, CA: client.CA}
	return []string{"--tls-cert", node.Cert, "--tls-key", node.Key, "--tls-ca", node.CA}, nil
}
