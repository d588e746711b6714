package match

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapped returns n zeroed bytes, touched, so that Apply causes no page fault.
func mapped(n int64) ([]byte, error) {
	if n < hugeFrom {
		return onHeap(n), nil
	}
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", n, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // without huge pages in the kernel it is only slower
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0
	}
	return b, nil
}

func unmap(b []byte) {
	if len(b) >= hugeFrom {
		_ = unix.Munmap(b)
	}
}
