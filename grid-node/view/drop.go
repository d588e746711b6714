package view

import (
	"sync/atomic"
	"unsafe"
)

// begin makes the chunk of row seq the current one.
func (v *View) begin(seq uint64) error {
	n := seq >> chunkBits
	slot := &v.ring[n%uint64(len(v.ring))]
	if slot.Load() != nil {
		v.reclaim()
	}
	if slot.Load() != nil {
		return &FullError{Seq: seq, What: "the row", Used: int64(seq - 1 - v.base.Load()), Limit: int64(v.maxRows)}
	}
	c, err := v.takeChunk()
	if c == nil {
		return v.noRoom(seq, "the rows from here on, those", err)
	}
	c.n = n
	for i := range c.zones {
		c.zones[i] = emptyZone
	}
	v.cur = c
	slot.Store(c)
	return nil
}

// takeChunk returns a chunk that was dropped, one that was made ahead, or a new one.
func (v *View) takeChunk() (*chunk, error) {
	if n := len(v.free); n > 0 {
		c := v.free[n-1]
		v.free = v.free[:n-1]
		return c, nil
	}
	mem, err := v.mem.alloc(v.chunkBytes)
	if mem == nil {
		return nil, err
	}
	c := &chunk{mem: mem, p: unsafe.Pointer(&mem[0]), zones: make([]zone, len(v.zoned)), runs: make([]atomic.Pointer[run], len(v.ordered))}
	return c, nil
}

func (c *chunk) close() {
	unmapMemory(c.mem)
	for i := range c.runs {
		if r := c.runs[i].Swap(nil); r != nil {
			unmapMemory(r.mem)
		}
	}
	c.mem, c.p = nil, nil
}

// Drop removes the rows of entries up to seq, which the log is about to free, and that were
// published. Snapshots that are in use keep theirs. It takes some nanoseconds a row: call it
// in steps.
func (v *View) Drop(seq uint64) {
	base := v.base.Load()
	seq = min(seq, v.applied.Load())
	if seq <= base {
		return
	}
	v.dropping.Store(seq)
	first := len(v.limbo.items)
	for row := base + 1; row <= seq; row++ {
		c, i := v.chunkOf(row), uint32(row)&(chunkRows-1)
		if *at[byte](c, offMsgType, i) != 0 {
			v.unpost(c, i, uint32(row))
		}
		if i == chunkRows-1 {
			v.limbo.put(limboItem{chunk: c})
			if c == v.cur {
				v.cur = nil
			}
		}
	}
	v.base.Store(seq)
	for i := first; i < len(v.limbo.items); i++ {
		v.limbo.items[i].base = seq
	}
	v.reclaim()
}

func (v *View) unpost(c *chunk, i, row uint32) {
	for k, d := range v.posted {
		if code := *at[uint32](c, d.off, i); code != 0 {
			if b := v.posts[k].drop(&d.dict.entry(code).list, row); b != 0 {
				v.limbo.put(limboItem{block: b, post: k})
			}
		}
	}
}

// limbo is what was dropped and may be in use by snapshots taken before.
type limbo struct {
	items []limboItem // from done on
	done  int
}

// limboItem is a chunk or a block of postings.
type limboItem struct {
	base  uint64 // snapshots with this base or a later one never saw it
	chunk *chunk
	block uint32
	post  int
}

func (l *limbo) put(x limboItem) { l.items = append(l.items, x) }

// Needed returns the first entry that a snapshot may read, now or later: the log must keep it and those behind it.
// Writer only.
func (v *View) Needed() uint64 { return v.seen() + 1 }

// seen is the lowest base of all snapshots in use.
func (v *View) seen() uint64 {
	seen := v.base.Load()
	for i := range v.pins {
		if p := v.pins[i].Load(); p != 0 {
			seen = min(seen, p-1)
		}
	}
	return seen
}

// inUse reports whether there is a snapshot.
func (v *View) inUse() bool {
	for i := range v.pins {
		if v.pins[i].Load() != 0 {
			return true
		}
	}
	return false
}

// reclaim takes back what no snapshot can see.
func (v *View) reclaim() {
	seen := v.seen()
	l := &v.limbo
	for l.done < len(l.items) && l.items[l.done].base <= seen {
		x := l.items[l.done]
		l.done++
		if x.chunk == nil {
			p := &v.posts[x.post]
			p.free = append(p.free, x.block)
			continue
		}
		v.ring[x.chunk.n%uint64(len(v.ring))].Store(nil)
		for i := range x.chunk.runs {
			if r := x.chunk.runs[i].Swap(nil); r != nil {
				v.runMem.Add(-int64(len(r.mem)))
				unmapMemory(r.mem)
			}
		}
		v.free = append(v.free, x.chunk)
	}
	if l.done == len(l.items) {
		l.items, l.done = l.items[:0], 0
	} else if l.done > 1<<16 && l.done > len(l.items)/2 {
		l.items, l.done = l.items[:copy(l.items, l.items[l.done:])], 0
	}
}
