//go:build unix

package store

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapMemory reserves n zero bytes outside the Go heap. The kernel provides a
// page when it is first written.
func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("order store: mmap of %d bytes: %w", n, err)
	}
	adviseHuge(b)
	return b, nil
}

func unmapMemory(b []byte) {
	if b != nil {
		_ = unix.Munmap(b)
	}
}
