package region

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"slices"
)

// Reader reads the entries of a region as they are after one entry of the log, in pages, while
// later entries go on changing the state. What they change or remove is kept for it until it
// was read. It is used where the state is, by one goroutine at a time.
type Reader struct {
	s      *State
	region uint16
	at     uint64 // the last entry of kind region that counts
	now    int64  // what had expired by then is not seen
	last   []byte // the last key that was looked at
	from   []byte // scratch
	begun  bool
	kept   keptRows
	bytes  int // of kept
	limit  int
	err    error
}

// keptRow is an entry as it was before it was changed.
type keptRow struct {
	key   []byte
	value Value
}

// ErrCleared is the error of a Reader whose region was cleared meanwhile.
var ErrCleared = errors.New("the region was cleared while it was read; read it again")

// KeptError is that of a Reader for which more than its limit would have to be kept.
type KeptError struct{ Bytes, Limit int }

func (e *KeptError) Error() string {
	return fmt.Sprintf("changes beside the read: %d bytes of entries as they were before, allowed: %d; read again when less is changed", e.Bytes, e.Limit)
}

// keptFixed is what a kept entry takes beside key and value, roughly.
const keptFixed = 128

// Open returns a reader of the present entries of a region, which may keep so many bytes of what is changed meanwhile. It must be
// closed.
func (s *State) Open(region uint16, limit int) *Reader {
	r := &Reader{s: s, region: region, at: s.last, now: s.now, limit: limit}
	s.readers = append(s.readers, r)
	return r
}

// Close ends the reader: nothing is kept for it any more.
func (r *Reader) Close() {
	r.s.readers = slices.DeleteFunc(r.s.readers, func(o *Reader) bool { return o == r })
	r.kept, r.err = nil, errors.New("the reader is closed")
}

// Of reports whether the reader is of this state, which a replica may have replaced by another one.
func (r *Reader) Of(s *State) bool { return r.s == s }

// At returns the last entry of kind region that counts, and the time of the regions then.
func (r *Reader) At() (seq uint64, now int64) { return r.at, r.now }

// Next calls f for the next entries in the order of their keys, as long as f returns true; the
// one for which it does not is the last. What it passes is valid during the call. visits bounds
// how many entries are looked at. It reports whether that was all.
func (r *Reader) Next(visits int, f func(v *Value) bool) (done bool, err error) {
	if r.err != nil {
		return false, r.err
	}
	var v Value
	s, more, spent := r.s, true, 0
	r.from = append(r.from[:0], r.last...) // which goes on meanwhile
	whole := s.scan(s.regions[r.region].root, r.from, r.begun, func(n uint32) bool {
		if !more || spent >= visits {
			return false
		}
		v.Key = s.key(v.Key[:0], n)
		for more && len(r.kept) > 0 && bytes.Compare(r.kept[0].key, v.Key) < 0 {
			more = r.take(f)
			spent++
		}
		if !more || spent >= visits {
			return false
		}
		spent++
		r.pass(v.Key)
		switch {
		case len(r.kept) > 0 && bytes.Equal(r.kept[0].key, v.Key):
			more = r.take(f)
		case s.version(n) <= r.at && !s.gone(n, r.now):
			v.Version, v.ExpireNs, v.Value = s.version(n), s.expire(n), s.value(v.Value[:0], n)
			more = f(&v)
		}
		return more
	})
	for whole && more && spent < visits && len(r.kept) > 0 {
		more = r.take(f)
		spent++
	}
	return whole && more && len(r.kept) == 0, nil
}

// take passes the first of the kept entries.
func (r *Reader) take(f func(v *Value) bool) bool {
	row := heap.Pop(&r.kept).(keptRow)
	r.bytes -= row.size()
	r.pass(row.key)
	row.value.Key = row.key
	return f(&row.value)
}

// pass remembers that entries up to a key have been read.
func (r *Reader) pass(key []byte) { r.last, r.begun = append(r.last[:0], key...), true }

// changes is told that head n is about to be changed or removed.
func (s *State) changes(n uint32) {
	for _, r := range s.readers {
		if r.region == s.region(n) && r.err == nil {
			r.keep(n)
		}
	}
}

// keep keeps an entry that counts and has not been read.
func (r *Reader) keep(n uint32) {
	s := r.s
	if s.version(n) > r.at || s.gone(n, r.now) || r.begun && s.compare(r.last, n) >= 0 {
		return
	}
	row := keptRow{key: s.key(nil, n), value: Value{Version: s.version(n), ExpireNs: s.expire(n), Value: s.value(nil, n)}}
	if r.bytes += row.size(); r.bytes > r.limit {
		r.err = &KeptError{r.bytes, r.limit}
		r.kept = nil
		return
	}
	heap.Push(&r.kept, row)
}

// cleared ends the readers of a region.
func (s *State) cleared(g *Region) {
	for _, r := range s.readers {
		if s.regions[r.region] == g && r.err == nil {
			r.kept, r.err = nil, ErrCleared
		}
	}
}

func (x *keptRow) size() int { return keptFixed + len(x.key) + len(x.value.Value) }

// keptRows is a heap by key: each key is in it once, for what replaced it is newer than the reader.
type keptRows []keptRow

func (k keptRows) Len() int           { return len(k) }
func (k keptRows) Less(i, j int) bool { return bytes.Compare(k[i].key, k[j].key) < 0 }
func (k keptRows) Swap(i, j int)      { k[i], k[j] = k[j], k[i] }
func (k *keptRows) Push(x any)        { *k = append(*k, x.(keptRow)) }
func (k *keptRows) Pop() any {
	old := *k
	x := old[len(old)-1]
	old[len(old)-1] = keptRow{}
	*k = old[:len(old)-1]
	return x
}
