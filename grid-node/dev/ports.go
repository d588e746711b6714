package dev

import "fmt"

// ports are the addresses of the nodes' listeners, each kept from every other
// process for as long as the grid runs: while its node starts, and while a node
// that was killed is started again.
type ports struct{ held []func() }

// take keeps port of host, or any free one if port is 0, and returns "host:port".
func (p *ports) take(host string, port int) (string, error) {
	addr, release, err := hold(host, port)
	if err != nil {
		return "", fmt.Errorf("port %d of %s is not free: %w; choose another with this flag, or 0 for any", port, host, err)
	}
	p.held = append(p.held, release)
	return addr, nil
}

// release gives all of them back.
func (p *ports) release() {
	for _, release := range p.held {
		release()
	}
	p.held = nil
}
