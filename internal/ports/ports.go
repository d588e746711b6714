// Package ports keeps ports for processes that will listen on them. A port that
// was only looked whether it is free is somebody else's soon: of any process that
// asks for any port, to listen or to connect.
package ports

import "fmt"

// Held are ports kept from every other process, until Release.
type Held struct{ release []func() }

// Take keeps port of host, an IP address, or any free port if port is 0, and
// returns "host:port". Whoever is told so can listen there, again and again.
func (h *Held) Take(host string, port int) (string, error) {
	addr, release, err := hold(host, port)
	if err != nil {
		return "", fmt.Errorf("port %d of %s is not free: %w", port, host, err)
	}
	h.release = append(h.release, release)
	return addr, nil
}

// Release gives all of them back.
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

// ForTest is a port of the loopback interface, "127.0.0.1:port", for as long as t runs.
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
