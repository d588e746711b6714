package archive

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Whatever is in an object: it is read or refused, in bounded memory.
func FuzzObject(f *testing.F) {
	l := logOf(f, 40)
	for _, n := range []uint64{1, 7, 40} {
		b := l.batch(1, n)
		_, data, err := newEncoder().encode(Header{Kind: KindTail, Grid: grid, Partition: part}, 1, 0, b.Entries)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, true)
	}
	e := newEncoder()
	e.begin(Header{Kind: KindFence, Grid: grid, Partition: part}, 5, 9)
	_, fence := e.finish()
	f.Add(fence, false)
	d := newDecoder()
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			data = seal(bytes.Clone(data))
		}
		o, err := d.open("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		var entries uint64
		err = o.each(func(e *order.Entry, b []byte) error {
			entries++
			return nil
		})
		if err == nil && (entries != uint64(o.h.Entries) || o.h.Last-o.h.First+1 != entries) {
			t.Errorf("%d entries were read of an object with %d", entries, o.h.Entries)
		}
	})
}

// seal makes checksums of header and index fit, so that what is behind them is tried too.
func seal(b []byte) []byte {
	if len(b) < headerSize {
		return b
	}
	var h Header
	h.Blocks = le.Uint32(b[12:])
	le.PutUint64(b[184:], xxhash.Sum64(b[:184]))
	if n := h.indexSize(); h.Blocks <= maxBlocks && len(b) >= headerSize+n {
		le.PutUint64(b[headerSize+n-8:], indexSum(b[:headerSize], b[headerSize:headerSize+n-8]))
	}
	return b
}

// Headers and indexes of hostile objects are at most those of the format: nothing is allocated by what they say.
func TestHostileHeadersTakeNoMemory(t *testing.T) {
	l := logOf(t, 40)
	_, good, err := newEncoder().encode(Header{Kind: KindTail, Grid: grid, Partition: part}, 1, 0, l.entries)
	if err != nil {
		t.Fatal(err)
	}
	d := newDecoder()
	defer d.close()
	for at := 8; at < headerSize-8; at++ {
		bad := bytes.Clone(good)
		bad[at] ^= 0xff
		bad = seal(bad)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o, err := d.open("hostile", bytes.NewReader(bad))
		if err == nil {
			err = o.each(func(*order.Entry, []byte) error { return nil })
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
			t.Errorf("byte %d: %d bytes were allocated (%v)", at, took, err)
		}
	}
	for name, field := range map[string]int{"blocks": 12, "entries": 72, "raw": 80, "stored": 88} {
		bad := bytes.Clone(good)
		le.PutUint32(bad[field:], 0xffffffff)
		if _, err := d.open("hostile", bytes.NewReader(seal(bad))); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
}
