package roster

import (
	"io/fs"
	"math"
	"os"
	"syscall"
	"time"
)

// stamps are the states of files when they were read, by path.
type stamps map[string]stamp

// stamp is the state of a file: its inode, its size, its mode and the time of its last change, which no program can set. A
// mounted Secret is a symbolic link that is replaced, and a file may be written in place.
type stamp struct {
	device, inode uint64
	size          int64
	mode          fs.FileMode
	changed       int64 // unix nanoseconds
	at            int64 // when the file was looked at, unix nanoseconds
}

// stampOf returns the state of a file without the time of the look at it.
func stampOf(info os.FileInfo) stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{changed: math.MaxInt64} // has changed whenever it is looked at
	}
	return stamp{device: uint64(st.Dev), inode: st.Ino, size: st.Size, mode: info.Mode(), changed: st.Ctim.Nano()}
}

// settled is how old a change has to be for a later one to have another time, whatever the file system counts in.
const settled = 2 * time.Second

// stat looks at a file that is read next.
func (s stamps) stat(path string) (os.FileInfo, error) {
	at := time.Now().UnixNano()
	info, err := os.Stat(path)
	if err == nil {
		x := stampOf(info)
		x.at = at
		s[path] = x
	}
	return info, err
}

// same reports whether no file has changed.
func (s stamps) same() bool {
	for path, old := range s {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		now := stampOf(info)
		now.at = old.at
		if now != old || time.Duration(old.at-old.changed) < settled {
			return false
		}
	}
	return true
}
