package view

import "fmt"

// FullError is returned when a view has no memory for a row. The view keeps the rows it has
// and takes no more.
type FullError struct {
	Seq   uint64 // of the entry that has no row
	What  string // that has no room
	Used  int64
	Limit int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("view: no room for %s of entry %d: %d in use, allowed: %d; the view ends at entry %d until it is rebuilt with more",
		e.What, e.Seq, e.Used, e.Limit, e.Seq-1)
}

// budget is the memory of one view, in bytes.
type budget struct{ used, limit int64 }

// alloc maps n bytes; nil, nil when they are beyond the limit.
func (b *budget) alloc(n int) ([]byte, error) {
	if b.used+int64(n) > b.limit {
		return nil, nil
	}
	mem, err := mapMemory(n)
	if err == nil {
		b.used += int64(n)
	}
	return mem, err
}
