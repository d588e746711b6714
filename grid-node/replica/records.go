package replica

import (
	"slices"
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/machine"
)

// records are what functions made of the entries that are held. Every copy makes its own,
// none is replicated, and digests compare them. They are freed with the log, and before
// that where they take too much.
type records struct {
	list    []heldRecord // by entry, in the order of the functions
	bytes   int64
	dropped uint64 // entries up to here have lost theirs
}

type heldRecord struct {
	seq      uint64
	function string
	fault    uint8
	bytes    []byte
}

// recordOverhead is what a record takes beside its bytes.
const recordOverhead = 64

func (x *records) add(seq uint64, rec *machine.Record, limit int64) {
	x.list = append(x.list, heldRecord{seq: seq, function: rec.Function, fault: rec.Fault, bytes: slices.Clone(rec.Bytes)})
	x.bytes += int64(len(rec.Bytes)) + recordOverhead
	for x.bytes > limit && len(x.list) > 0 {
		x.freeTo(x.list[0].seq)
	}
}

// freeTo forgets the records of entries up to seq.
func (x *records) freeTo(seq uint64) {
	n := 0
	for ; n < len(x.list) && x.list[n].seq <= seq; n++ {
		x.bytes -= int64(len(x.list[n].bytes)) + recordOverhead
		x.list[n].bytes = nil
	}
	x.list = x.list[n:] // append moves what is left once its array is full
	x.dropped = max(x.dropped, seq)
}

// find returns the first record of an entry from seq on.
func (x *records) find(seq uint64) int {
	return sort.Search(len(x.list), func(i int) bool { return x.list[i].seq >= seq })
}

// of returns how many records the entry of record i has from there on, and the most bytes
// that they take in a frame.
func (x *records) of(i int) (n, size int) {
	for k := i; k < len(x.list) && x.list[k].seq == x.list[i].seq; k++ {
		n++
		size += len(x.list[k].bytes) + recordFrame
	}
	return n, size
}

// recordFrame is the most that a record takes in a frame beside its bytes.
const recordFrame = 64
