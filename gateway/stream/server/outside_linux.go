package server

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
)

// outside is memory outside of Go's heap: the collector keeps as much again as it has in reserve, and the rings are most of
// what a server has.
type outside struct{ maps [][]byte }

// alloc is fanout.Config.Alloc.
func (o *outside) alloc(bytes int) []byte {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	o.maps = append(o.maps, b)
	return b
}

// belongsTo gives the memory back when the hub is not reachable any more.
func (o *outside) belongsTo(h *fanout.Hub) {
	runtime.AddCleanup(h, func(o *outside) {
		for _, b := range o.maps {
			_ = unix.Munmap(b)
		}
	}, o)
}
