package alerts

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/ordergrid/ordergrid/internal/cgroup"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// inGroup has the grid in a control group of its own.
func inGroup(string) (gridOptions, error) {
	group, err := cgroup.NewLimited()
	if err != nil {
		return gridOptions{}, cannot{err.Error()}
	}
	return gridOptions{rate: 1000, group: group, close: group.Remove}, nil
}

// enter is a program that puts itself into the group and becomes the given one. So
// all processes are in the group from their first moment on, which they have to be: a
// node finds its group when it starts.
func enter(group *cgroup.Limited, program string) (string, error) {
	text := fmt.Sprintf("#!/bin/sh\necho $$ > '%s' && exec '%s' \"$@\"\n", group.Procs(), program)
	return program + "-in-group", os.WriteFile(program+"-in-group", []byte(text), 0o755) //nolint:gosec // it is a program
}

// reissue replaces the nodes' certificate by one of grid-node dev's own authority
// that lasts so long; 0 is as long as the first one. The nodes read it by themselves.
func (g *grid) reissue(life time.Duration) error {
	dir := filepath.Dir(g.TLS.CA)
	ca, err := pki.Load(filepath.Join(dir, "authority"), "")
	if err != nil {
		return err
	}
	_, err = ca.Save(dir, "node", pki.Identity{User: "ordergrid-dev-node", Names: []string{"localhost"},
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Life: life})
	return err
}
