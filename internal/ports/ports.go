// Package ports reserves ports for processes that will listen on them. A port that was only found
// to be free may be taken by any process that asks for an ephemeral port, to listen or to connect.
package ports

import "fmt"

// Held are ports reserved against every other process, until Release.
type Held struct{ release []func() }

// Take reserves port of host, an IP address, or any free port if port is 0, and returns
// "host:port". Processes that are given the address can listen there, repeatedly.
func (h *Held) Take(host string, port int) (string, error) {
	addr, release, err := hold(host, port)
	if err != nil {
		return "", fmt.Errorf("port %d of %s is not free: %w", port, host, err)
	}
	h.release = append(h.release, release)
	return addr, nil
}

// Release releases all of them.
func (h *Held) Release() {
	for _, release := range h.release {
		release()
	}
	h.release = nil
}

// Test is the part of testing.TB that ForTest needs.
type Test interface {
	Helper()
	Cleanup(f func())
	Fatal(args ...any)
}

// ForTest is a port of the loopback interface, "127.0.0.1:port", reserved while t runs.
func ForTest(t Test) string {
	t.Helper()
	var h Held
	addr, err := h.Take("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Release)
	return addr
}
