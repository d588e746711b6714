package ledger

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// A ledger file is a 32-byte header and 64-byte records, little-endian:
//
//	header                              record
//	 0  8  "OGLEDG02"                    0  u32  index of the order in the run
//	 8  u64  run                         4  u8   fate: 0 unsent 1 acked 2 rejected 3 unknown
//	16  u16  probe                       5  u8   copies
//	18  u16  partition, its number      6  u8   publishing thread
//	20  12 zero                          7  u8   0
//	                                     8  i64  created, unix ns
//	                                    16  i64  sent, unix ns (0 if unsent)
//	                                    24  i64  acknowledged or failed, unix ns (0 if unsent)
//	                                    32  u64  seq (0 unless acked)
//	                                    40  u64  epoch (0 unless acked)
//	                                    48  u64  hash of the log entry (0 unless acked and known)
//	                                    56  u32  lineage (likewise)
//	                                    60  4 zero
//
// Records stand in order of creation. The ClOrdID of a record follows from run,
// probe and index (fixorder.ID).
const (
	magic      = "OGLEDG02"
	headerSize = 32
	recordSize = 64
)

// Header identifies the records of a ledger.
type Header struct {
	ID        fixorder.ID
	Partition uint16
}

// Record is one order of a ledger file. Times are unix nanoseconds.
type Record struct {
	Index                int64
	Fate                 load.Fate
	Copies, Thread       uint8
	Created, Sent, Ended int64
	Seq, Epoch, Hash     uint64
	Lineage              uint32
}

// Writer appends records to a ledger file.
type Writer struct {
	w   *bufio.Writer
	buf [recordSize]byte
}

// NewWriter writes the header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	var b [headerSize]byte
	copy(b[:], magic)
	binary.LittleEndian.PutUint64(b[8:], h.ID.Run)
	binary.LittleEndian.PutUint16(b[16:], uint16(h.ID.Probe))
	binary.LittleEndian.PutUint16(b[18:], h.Partition)
	lw := &Writer{w: bufio.NewWriterSize(w, 1<<16)}
	_, err := lw.w.Write(b[:])
	return lw, err
}

// Append writes the created orders of a step, the first of which has the given
// index, and flushes.
func (w *Writer) Append(first int64, orders []load.Order) error {
	le := binary.LittleEndian
	for i := range orders {
		o, b := &orders[i], &w.buf
		clear(b[:])
		le.PutUint32(b[0:], uint32(first+int64(i)))
		b[4], b[5], b[6] = byte(o.Fate), o.Copies, o.Thread
		le.PutUint64(b[8:], uint64(clock.Wall(o.T1).UnixNano()))
		if o.Fate != load.Unsent {
			le.PutUint64(b[16:], uint64(clock.Wall(o.T2).UnixNano()))
			le.PutUint64(b[24:], uint64(clock.Wall(o.T3).UnixNano()))
		}
		le.PutUint64(b[32:], o.Seq)
		le.PutUint64(b[40:], o.Epoch)
		le.PutUint64(b[48:], o.Hash)
		le.PutUint32(b[56:], o.Lineage)
		if _, err := w.w.Write(b[:]); err != nil {
			return err
		}
	}
	return w.w.Flush()
}

// Read passes every record of a ledger file to fn, in file order, and stops at the first error. A
// truncated record at the end is an error.
func Read(r io.Reader, fn func(Header, Record) error) (Header, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	var b [headerSize]byte
	if _, err := io.ReadFull(br, b[:]); err != nil {
		return Header{}, fmt.Errorf("ledger header: %w", err)
	}
	le := binary.LittleEndian
	h := Header{ID: fixorder.ID{Run: le.Uint64(b[8:]), Probe: int(le.Uint16(b[16:]))}, Partition: le.Uint16(b[18:])}
	if string(b[:8]) != magic {
		return h, fmt.Errorf("ledger begins with %q, want %q: not a ledger file, or of another version", b[:8], magic)
	}
	if h.ID.Run > fixorder.MaxRun || h.ID.Probe >= fixorder.MaxProbes {
		return h, fmt.Errorf("ledger header: run %d or probe %d out of range", h.ID.Run, h.ID.Probe)
	}
	var rec [recordSize]byte
	for n := 0; ; n++ {
		switch _, err := io.ReadFull(br, rec[:]); {
		case errors.Is(err, io.EOF):
			return h, nil
		case err != nil:
			return h, fmt.Errorf("ledger record %d: %w", n, err)
		}
		out := Record{
			Index: int64(le.Uint32(rec[0:])), Fate: load.Fate(rec[4]), Copies: rec[5], Thread: rec[6],
			Created: int64(le.Uint64(rec[8:])), Sent: int64(le.Uint64(rec[16:])), Ended: int64(le.Uint64(rec[24:])),
			Seq: le.Uint64(rec[32:]), Epoch: le.Uint64(rec[40:]), Hash: le.Uint64(rec[48:]), Lineage: le.Uint32(rec[56:]),
		}
		if out.Fate > load.Unknown || out.Index > fixorder.MaxIndex || out.Created < 0 || out.Created == math.MaxInt64 {
			return h, fmt.Errorf("ledger record %d: fate %d, index %d or creation time %d out of range", n, rec[4], out.Index, out.Created)
		}
		if err := fn(h, out); err != nil {
			return h, err
		}
	}
}
