package proc

import "fmt"

// HeldPorts are ports reserved against every other process, until Release.
type HeldPorts struct{ release []func() }

// Take reserves port of host, an IP address, or any free port if port is 0, and returns
// "host:port". Processes that are given the address can listen there, repeatedly.
func (h *HeldPorts) Take(host string, port int) (string, error) {
	addr, release, err := hold(host, port)
	if err != nil {
		return "", fmt.Errorf("port %d of %s is not free: %w", port, host, err)
	}
	h.release = append(h.release, release)
	return addr, nil
}

// Release releases all of them.
func (h *HeldPorts) Release() {
	for _, release := range h.release {
		release()
	}
	h.release = nil
}

// TestHelper is the part of testing.TB that ForTest needs.
type TestHelper interface {
	Helper()
	Cleanup(f func())
	Fatal(args ...any)
}

// PortForTest is a port of the loopback interface, "127.0.0.1:port", reserved while t runs.
func PortForTest(t TestHelper) string {
	t.Helper()
	var h HeldPorts
	addr, err := h.Take("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Release)
	return addr
}
