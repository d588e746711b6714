package store

import (
	"golang.org/x/sys/unix"
)

// populate makes the kernel provide the pages of b now. Contents do not change,
// so this is safe beside a writer. Kernels before 5.14 do not know the advice;
// then the pages come when they are written.
func populate(b []byte) {
	if len(b) > 0 {
		_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	}
}

// forget gives the memory of b back; it reads as zeros from then on.
func forget(b []byte) {
	if len(b) > 0 {
		_ = unix.Madvise(b, unix.MADV_DONTNEED)
	}
}
