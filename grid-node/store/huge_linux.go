package store

import "golang.org/x/sys/unix"

// hugeFrom is the size from which on memory is asked for in huge pages. Segments
// below are those of a small grid.
const hugeFrom = 4 << 20

// adviseHuge asks for huge pages. They make faults and lookups cheaper, but this
// is about the end: a process that is killed gives its memory back before the
// kernel closes its connections, and others see it die only then. With small
// pages that takes a third of a second per GiB on a busy machine, with huge ones
// milliseconds. Where the kernel has none, nothing changes.
func adviseHuge(b []byte) {
	if len(b) >= hugeFrom {
		askHuge(b)
	}
}

// askHuge asks for huge pages for b, of whatever size.
func askHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
