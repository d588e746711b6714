package store

import (
	"golang.org/x/sys/unix"
)

// populate makes the kernel provide the pages of b now. Contents do not change, so this is
// safe beside a writer. Kernels before 5.14 do not support the advice; then pages are
// provided when they are written.
func populate(b []byte) {
	if len(b) > 0 {
		_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	}
}

// forget releases the memory of b; it reads as zeros from then on.
func forget(b []byte) {
	if len(b) > 0 {
		_ = unix.Madvise(b, unix.MADV_DONTNEED)
	}
}
