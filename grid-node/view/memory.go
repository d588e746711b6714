//go:build unix && !race

package view

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapMemory returns n zero bytes outside the Go heap: the collector neither scans them nor
// counts them.
func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("view: mmap of %d bytes: %w", n, err)
	}
	if n >= 2<<20 {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // fewer faults and TLB misses where the kernel has them
	}
	return b, nil
}

func unmapMemory(b []byte) {
	if b != nil {
		_ = unix.Munmap(b)
	}
}
