//go:build unix

package file

import (
	"io/fs"
	"syscall"
)

// fileID is the file's inode: a file that was set aside keeps it, a new one under
// the old name has another.
func fileID(st fs.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino) //nolint:unconvert // it has 32 bits on some systems
	}
	return 0
}
