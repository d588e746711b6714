package view

import (
	"sort"
	"unsafe"
)

// run is the rows of a chunk in the order of one column: places in the chunk by value, and
// by row where values are equal. Rows without the value, or with one that is read from the
// log, are not in it.
type run struct {
	mem  []byte
	rows []uint16
}

// runBytes of a whole chunk.
const runBytes = 2 * chunkRows

// Sort makes one sorted run of a chunk that is complete, and reports whether there was one
// to make. It takes some milliseconds: call it from one goroutine that is not the writer's.
// Until it was called ranges are answered by scanning.
func (v *View) Sort() bool {
	s, err := v.Snapshot(0)
	if err != nil {
		return false
	}
	defer s.Release()
	for k, d := range v.ordered {
		for n := (s.base + 1) >> chunkBits; n < (s.at+1)>>chunkBits; n++ {
			c := v.ring[n%uint64(len(v.ring))].Load()
			if c == nil || c.n != n || c.runs[k].Load() != nil {
				continue
			}
			return v.sort(c, k, d)
		}
	}
	return false
}

func (v *View) sort(c *chunk, k int, d *Def) bool {
	if used := v.runMem.Add(runBytes); used > v.runLimit {
		v.runMem.Add(-runBytes)
		return false
	}
	mem, err := mapMemory(runBytes)
	if err != nil {
		v.runMem.Add(-runBytes)
		return false
	}
	kinds := column[byte](c, offMsgType, chunkRows)
	rows := unsafe.Slice((*uint16)(unsafe.Pointer(&mem[0])), chunkRows)[:0]
	for i, kind := range kinds {
		if _, ok := c.orderedValue(d, uint32(i)); ok && kind != 0 {
			rows = append(rows, uint16(i))
		}
	}
	sort.Slice(rows, func(a, b int) bool {
		x, _ := c.orderedValue(d, uint32(rows[a]))
		y, _ := c.orderedValue(d, uint32(rows[b]))
		return x < y || x == y && rows[a] < rows[b]
	})
	c.runs[k].Store(&run{mem: mem, rows: rows})
	return true
}

// orderedValue returns the value of a row in the unit of the column's zone; false if there
// is none in the column.
func (c *chunk) orderedValue(d *Def, i uint32) (int64, bool) {
	if d.store == inFixed {
		x := *at[int64](c, d.off, i)
		return x, x >= fixedMin
	}
	x := *at[int32](c, d.off, i)
	return *at[int64](c, d.base, i>>blockBits) + int64(x)*unitOf(d.off), x >= timeMin
}

// span returns the places in the run of values from lo to hi.
func (r *run) span(c *chunk, d *Def, lo, hi int64) (from, to int) {
	from = sort.Search(len(r.rows), func(i int) bool { x, _ := c.orderedValue(d, uint32(r.rows[i])); return x >= lo })
	to = from + sort.Search(len(r.rows)-from, func(i int) bool { x, _ := c.orderedValue(d, uint32(r.rows[from+i])); return x > hi })
	if mutant(mutRunEdge) && from < to {
		from++
	}
	return from, to
}
