package store

import "golang.org/x/sys/unix"

// hugeFrom is the size from which huge pages are requested. Smaller segments belong to
// small grids.
const hugeFrom = 4 << 20

// adviseHuge requests huge pages. They make faults and lookups cheaper, but the main point
// is process exit: a killed process returns its memory before the kernel closes its
// connections, and only then do others detect its death. With small pages that takes a
// third of a second per GiB on a busy machine, with huge ones milliseconds. Without huge
// pages in the kernel nothing changes.
func adviseHuge(b []byte) {
	if len(b) >= hugeFrom {
		askHuge(b)
	}
}

// askHuge requests huge pages for b, of any size.
func askHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
