package view

import (
	"fmt"
	"unsafe"
)

// textBytes is what a distinct text of a column is planned with, in bytes. Longer ones on average make a view full
// before it has all the rows that it was planned for.
const textBytes = 32

// locatorBytes is what an order.Locator has on the heap at most.
const locatorBytes = 32 * 4 * 3 << 10

// Bytes returns the memory that a view of these options takes when it has all its rows and values: Options.Memory for
// a node that gives each view what it may need, and no more. The error is that of New.
func Bytes(o Options) (int64, error) {
	o.fill()
	if err := o.check(); err != nil {
		return 0, err
	}
	v := &View{mem: budget{limit: 1 << 20}}
	if err := v.define(&o); err != nil {
		return 0, err
	}
	chunks := int64(o.Rows>>chunkBits + 3)
	n := chunks*int64(v.chunkBytes) + int64(len(v.ordered))*runBytes*int64(o.Rows>>chunkBits+1)
	n += 4 * int64(placesFor(o.Rows/2, 1<<10)+placesFor(o.Rows/8, 1<<10))
	for i := range v.defs {
		if d := &v.defs[i]; d.store == inCode {
			pages := int64(o.Values/dictPageSize + 1)
			n += 4*int64(placesFor(2*o.Values, 1)) + pages*int64(unsafe.Sizeof(dictPage{})) + int64(o.Values)*textBytes + 2*textPiece
		}
	}
	perBlock := int64(unsafe.Sizeof(postBlock{}))
	n += int64(len(v.posted)) * ((int64(o.Rows/postRows)+int64(o.Values))*perBlock + 2*int64(unsafe.Sizeof(postPage{})))
	return n + locatorBytes, nil
}

// placesFor is the power of two from least on that is n or more.
func placesFor(n, least int) int {
	for least < n {
		least *= 2
	}
	return least
}

func (o *Options) fill() {
	if o.Values == 0 {
		o.Values = 1 << 16
	}
}

// check reports options that are out of bounds.
func (o *Options) check() error {
	switch {
	case o.Rows < 1 || o.Rows > MaxRows:
		return fmt.Errorf("view: Rows is %d, allowed: 1 to %d", o.Rows, MaxRows)
	case o.Values < 1 || o.Values > MaxValues:
		return fmt.Errorf("view: Values is %d, allowed: 1 to %d", o.Values, MaxValues)
	case len(o.Extra) > MaxExtra:
		return fmt.Errorf("view: %d further tags, allowed: %d", len(o.Extra), MaxExtra)
	}
	return nil
}
