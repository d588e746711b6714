package view

import (
	"fmt"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Log has the entries that a view has rows for; see store.Store.
type Log interface {
	// Read returns a committed entry, nil if it is freed. The bytes do not change.
	Read(seq uint64) []byte
}

// Options of New.
type Options struct {
	Log      Log
	Base     uint64  // the entry before the first row: the log's, when it begins there
	Memory   int64   // bytes at most, everything included
	Rows     int     // most rows at a time; sizes the hash indexes
	Values   int     // most distinct texts of a column; 65,536 when 0
	Extra    []Extra // further tags
	Postings []Field // text fields with postings; Symbol and Account when nil
	Ordered  []Field // decimal and time fields with sorted runs; Price when nil
}

// Limits of options.
const (
	MaxRows   = 1 << 30
	MaxValues = 1 << 24
	MaxExtra  = 32
)

// View is the rows of one copy of a partition.
type View struct {
	log  Log
	mem  budget
	defs []Def

	ids, origs hashIndex
	posts      []postings
	posted     []*Def // by index of postings
	zoned      []*Def // by index of zones
	ordered    []*Def // by index of runs
	ring       []atomic.Pointer[chunk]
	chunkBytes int

	find  *order.Locator
	extra []*Def // those the locator finds, from spans[firstExtra] on
	clock clock
	ahead [aheadRows]prepared

	first    uint64 // seq of the first row ever
	next     uint64 // seq of the row that Apply makes
	cur      *chunk // of next
	blind    uint64 // of a mutant: the row that Apply makes of this entry is empty
	full     error  // nil while it takes rows
	applied  atomic.Uint64
	base     atomic.Uint64
	dropping atomic.Uint64 // the base there will be: postings may lack rows up to it
	maxRows  uint64
	free     []*chunk
	limbo    limbo
	runMem   atomic.Int64 // of sorted runs, which Sort makes
	runLimit int64
	pins     [maxReaders]atomic.Uint64
}

// Spans of the locator.
const (
	spanMsgType = iota
	spanOrig
	spanOrdType
	spanTIF
	spanTransact
	firstExtra
)

// New makes an empty view. Its fixed parts are allocated at once.
func New(o Options) (*View, error) {
	o.fill()
	if o.Log == nil {
		return nil, fmt.Errorf("view: Log is nil, allowed: the log that the entries are in")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	v := &View{log: o.Log, mem: budget{limit: o.Memory}, first: o.Base + 1, next: o.Base + 1, maxRows: uint64(o.Rows)}
	v.applied.Store(o.Base)
	v.base.Store(o.Base)
	v.dropping.Store(o.Base)
	if err := v.open(&o); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

func (v *View) open(o *Options) error {
	if err := v.define(o); err != nil {
		return err
	}
	v.runLimit = int64(len(v.ordered)) * runBytes * int64(o.Rows>>chunkBits+1)
	if v.mem.limit -= v.runLimit; v.mem.limit < 0 {
		return v.tooSmall("sorted runs", nil)
	}
	v.ring = make([]atomic.Pointer[chunk], o.Rows>>chunkBits+3)
	for _, x := range []struct {
		index *hashIndex
		rows  int
		next  uintptr
	}{{&v.ids, o.Rows / 2, offNextID}, {&v.origs, o.Rows / 8, offNextOrig}} {
		if full, err := x.index.open(&v.mem, x.rows, x.next); full {
			return v.tooSmall("hash indexes", err)
		}
	}
	for i := range v.defs {
		if d := &v.defs[i]; d.store == inCode {
			d.dict = new(dict)
			if full, err := d.dict.open(&v.mem, o.Values); full {
				return v.tooSmall("dictionaries", err)
			}
		}
	}
	return nil
}

func (v *View) tooSmall(what string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("view: Memory is %d bytes, allowed: enough for the %s of the rows and values asked for", v.mem.limit, what)
}

// define lays the columns out.
func (v *View) define(o *Options) error {
	v.defs = append([]Def(nil), standard...)
	off := uintptr(offExtra)
	for _, x := range o.Extra {
		if err := x.check(); err != nil {
			return err
		}
		d := Def{Field: Field(x.Tag), Name: x.Name, Kind: x.Kind, off: off}
		if d.Name == "" {
			d.Name = fmt.Sprintf("Tag%d", x.Tag)
		}
		if v.Field(d.Field) != nil || v.Named(d.Name) != nil {
			return fmt.Errorf("view: further tag %d (%s) is there twice, allowed: each tag and name once", x.Tag, d.Name)
		}
		switch x.Kind {
		case Text:
			d.store, off = inCode, off+4*chunkRows+skew
		case Decimal:
			d.store, off = inFixed, off+8*chunkRows+skew
		case Time:
			d.store, d.base = inTime, off+4*chunkRows
			off = d.base + 8*(chunkRows>>blockBits) + skew
		}
		v.defs = append(v.defs, d)
	}
	v.chunkBytes = int(off)
	if o.Postings == nil {
		o.Postings = []Field{Symbol, Account}
	}
	if o.Ordered == nil {
		o.Ordered = []Field{Price}
	}
	return v.index(o)
}

// index marks which columns have zones, postings and sorted runs.
func (v *View) index(o *Options) error {
	tags := []uint32{spanMsgType: 35, spanOrig: 41, spanOrdType: 40, spanTIF: 59, spanTransact: 60}
	for i := range v.defs {
		d := &v.defs[i]
		d.zone, d.post, d.run = -1, -1, -1
		if d.store == inFixed || d.store == inTime {
			d.zone = len(v.zoned)
			v.zoned = append(v.zoned, d)
		}
		if i >= len(standard) {
			tags = append(tags, uint32(d.Field))
			v.extra = append(v.extra, d)
		}
	}
	v.find = order.NewLocator(tags...)
	for _, f := range o.Postings {
		d := v.Field(f)
		if d == nil || d.store != inCode || d.post >= 0 {
			return fmt.Errorf("view: postings of field %d, allowed: once each Symbol, Account and further tags of kind text", f)
		}
		d.post = len(v.posted)
		v.posted = append(v.posted, d)
	}
	v.posts = make([]postings, len(v.posted))
	for i := range v.posts {
		v.posts[i].open(&v.mem, v.mem.limit)
	}
	for _, f := range o.Ordered {
		d := v.Field(f)
		if d == nil || d.store != inFixed && (d.store != inTime || f == Received) || d.run >= 0 {
			return fmt.Errorf("view: sorted runs of field %d, allowed: once each Price, OrderQty, TransactTime and further tags of kind decimal or time", f)
		}
		d.run = len(v.ordered)
		v.ordered = append(v.ordered, d)
	}
	return nil
}

// Field returns the description of a field, nil if the view has none.
func (v *View) Field(f Field) *Def {
	for i := range v.defs {
		if v.defs[i].Field == f {
			return &v.defs[i]
		}
	}
	return nil
}

// Named returns the description of a field by its name, nil if the view has none.
func (v *View) Named(name string) *Def {
	for i := range v.defs {
		if v.defs[i].Name == name {
			return &v.defs[i]
		}
	}
	return nil
}

// Fields are all fields of the view.
func (v *View) Fields() []Def { return v.defs }

// Applied returns the last entry that snapshots can have.
func (v *View) Applied() uint64 { return v.applied.Load() }

// Base returns the last entry whose row was dropped.
func (v *View) Base() uint64 { return v.base.Load() }

// Used returns the memory in use, in bytes. Writer only.
func (v *View) Used() int64 { return v.mem.used + v.runMem.Load() }

// Incomplete returns why the view takes no more rows, nil if it does. Writer only.
func (v *View) Incomplete() error { return v.full }

// chunkOf returns the chunk of a row, nil if it is not held.
func (v *View) chunkOf(row uint64) *chunk {
	n := row >> chunkBits
	if c := v.ring[n%uint64(len(v.ring))].Load(); c != nil && c.n == n {
		return c
	}
	return nil
}

// Close releases the memory. No snapshot may be in use.
func (v *View) Close() {
	unmapMemory(v.ids.mem)
	unmapMemory(v.origs.mem)
	for i := range v.posts {
		v.posts[i].close()
	}
	for i := range v.defs {
		if d := v.defs[i].dict; d != nil {
			d.close()
		}
	}
	for i := range v.ring {
		if c := v.ring[i].Swap(nil); c != nil {
			c.close()
		}
	}
	for _, c := range v.free {
		c.close()
	}
	v.full = errClosed
}
