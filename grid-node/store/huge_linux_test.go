package store

import (
	"strings"
	"testing"
	"unsafe"
)

// Whether the kernel provides huge pages depends on the machine; that they were requested
// shows in the flags of the mapping.
func TestLargeSegmentsAskForHugePages(t *testing.T) {
	for _, c := range []struct {
		size int
		want bool
	}{{1 << 20, false}, {hugeFrom, true}, {64 << 20, true}} {
		mem, err := mapMemory(c.size)
		if err != nil {
			t.Fatal(err)
		}
		flags := vmFlags(t, uintptr(unsafe.Pointer(&mem[len(mem)/2])))
		if got := strings.Contains(flags+" ", " hg "); got != c.want {
			t.Errorf("%d bytes: flags %q, huge pages asked for: %t, want %t", c.size, flags, got, c.want)
		}
		unmapMemory(mem)
	}
}

// vmFlags of the mapping that holds an address.
func vmFlags(t *testing.T, at uintptr) string {
	t.Helper()
	for _, m := range mappings(t) {
		if m.holds(at) && m.flags != "" {
			return m.flags
		}
	}
	t.Skip("this kernel does not report the flags of a mapping (VmFlags in /proc/self/smaps, Linux 3.8 and later)")
	return ""
}
