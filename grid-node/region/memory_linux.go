package region

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapped returns n zeroed bytes outside the Go heap.
func mapped(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", n, err)
	}
	return b, nil
}

func unmap(memory [][]byte) {
	for _, b := range memory {
		_ = unix.Munmap(b)
	}
}
