package store

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// mapping is one mapping of this process as the kernel reports it.
type mapping struct {
	from, to uintptr
	resident int64  // bytes provided
	flags    string // two letters each; "" where the kernel does not report them
}

// holds reports whether an address lies in the mapping.
func (m *mapping) holds(a uintptr) bool { return m.from <= a && a < m.to }

// mappings returns those of this process; the test is skipped where the kernel does not
// report them.
func mappings(t *testing.T) (list []mapping) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skipf("%v: run it on Linux", err)
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		var from, to uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x ", &from, &to); n == 2 {
			list = append(list, mapping{from: from, to: to})
			continue
		}
		if len(list) == 0 {
			continue
		}
		switch m := &list[len(list)-1]; name {
		case "Rss":
			_, _ = fmt.Sscanf(value, "%d", &m.resident) // kB
			m.resident <<= 10
		case "VmFlags":
			m.flags = strings.TrimSpace(value)
		}
	}
	return list
}
