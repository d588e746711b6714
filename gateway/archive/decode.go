package archive

import (
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// DamageError says where an object of the archive is damaged.
type DamageError struct {
	Object      string // its name in the store
	Block       int    // from 1 on; 0: header or index
	First, Last uint64 // the entries that cannot be relied on
	What        string
}

func (e *DamageError) Error() string {
	where := e.Object
	if e.Block > 0 {
		where += fmt.Sprintf(", block %d", e.Block)
	}
	switch e.First {
	case 0:
	case e.Last:
		where += fmt.Sprintf(", entry %d", e.First)
	default:
		where += fmt.Sprintf(", entries %d..%d", e.First, e.Last)
	}
	return where + ": " + e.What
}

// decoder reads objects, block after block, in bounded memory. It is for one goroutine.
type decoder struct {
	zstd   *zstd.Decoder
	stored []byte
	raw    []byte
}

func newDecoder() *decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlockRaw), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(fmt.Sprintf("archive: %v", err)) // of constants
	}
	return &decoder{zstd: z}
}

func (d *decoder) close() { d.zstd.Close() }

// object is an object that is being read.
type object struct {
	d      *decoder
	name   string
	r      io.Reader
	h      Header
	blocks []block
	next   int // block
}

// open reads header and index.
func (d *decoder) open(name string, r io.Reader) (*object, error) {
	o := &object{d: d, name: name, r: r}
	var header [headerSize]byte
	err := o.fill(header[:])
	if err == nil {
		o.h, err = decodeHeader(header[:])
	}
	if err != nil {
		return nil, o.damage(0, 0, 0, err)
	}
	index := make([]byte, o.h.indexSize())
	if err = o.fill(index); err == nil {
		o.blocks, err = decodeIndex(header[:], &o.h, index)
	}
	if err != nil {
		return nil, o.damage(0, o.h.First, o.h.Last, err)
	}
	return o, nil
}

// fill reads all of b. An object that ends before is damaged, other errors are of the store.
func (o *object) fill(b []byte) error {
	n, err := io.ReadFull(o.r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid("size", fmt.Sprintf("%d bytes less", len(b)-n), "that of the header: the object is cut off")
	}
	return err
}

// damage is err with its place, unless it is one of the store.
func (o *object) damage(block int, first, last uint64, err error) error {
	var format *FormatError
	if !errors.As(err, &format) {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	return &DamageError{Object: o.name, Block: block, First: first, Last: last, What: err.Error()}
}

// nextBlock returns the entries of the next block, padded; false behind the last one. The bytes are valid until the
// next call.
func (o *object) nextBlock() (k *block, raw []byte, more bool, err error) {
	if o.next == len(o.blocks) {
		return nil, nil, false, nil
	}
	k = &o.blocks[o.next]
	o.next++
	o.d.stored = grow(o.d.stored, int(k.Size))
	if err := o.fill(o.d.stored); err != nil {
		return k, nil, true, o.damage(o.next, k.First, k.Last(), err)
	}
	o.d.raw = grow(o.d.raw, int(k.Raw))
	raw, unpack := o.d.zstd.DecodeAll(o.d.stored, o.d.raw[:0:k.Raw])
	if sum := xxhash.Sum64(o.d.stored); sum != k.Sum {
		err = invalid("checksum", fmt.Sprintf("%016x", k.Sum), fmt.Sprintf("%016x, that of the block's bytes", sum))
	} else if unpack != nil {
		err = invalid("compressed data", fmt.Sprintf("not readable (%v)", unpack), "a frame of zstd")
	} else if len(raw) != int(k.Raw) {
		err = invalid("decompressed size", len(raw), fmt.Sprint(k.Raw))
	}
	if err != nil {
		first, last := k.First, k.Last()
		if unpack == nil {
			if seq := faulty(k, raw, o.hashBehind(o.next-1)); seq != 0 {
				first, last = seq, seq
			}
		}
		return k, nil, true, o.damage(o.next, first, last, err)
	}
	return k, raw, true, nil
}

// hashBehind is the hash of the last entry of a block, as the next block or the header has it.
func (o *object) hashBehind(i int) uint64 {
	if i+1 < len(o.blocks) {
		return o.blocks[i+1].PrevHash
	}
	return o.h.ThroughHash
}

// faulty returns the entry of a damaged block that is not as it was, 0 if that cannot be told. The entry behind a
// changed one no longer has its hash.
func faulty(k *block, raw []byte, through uint64) uint64 {
	hash, seq := k.PrevHash, k.First
	for ; len(raw) > 0; seq++ {
		var e order.Entry
		b, rest, err := order.NextEntry(raw, &e)
		if err != nil || e.Seq != seq {
			return seq
		}
		if e.PrevHash != hash {
			return max(seq-1, k.First)
		}
		hash, raw = order.Hash(b), rest
	}
	if hash != through {
		return seq - 1
	}
	return 0
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n, max(n, 2*cap(b)))
	}
	return b[:n]
}

// entries calls fn for every entry of a block, in order, and checks numbers and hash chain.
func (o *object) entries(k *block, raw []byte, fn func(e *order.Entry, b []byte) error) error {
	hash, seq, orders := k.PrevHash, k.First, uint32(0)
	fault := func(format string, args ...any) error {
		return &DamageError{Object: o.name, Block: o.next, First: seq, Last: seq, What: fmt.Sprintf(format, args...)}
	}
	for ; len(raw) > 0; seq++ {
		var e order.Entry
		b, rest, err := order.NextEntry(raw, &e)
		switch {
		case err != nil:
			return fault("%v", err)
		case e.Seq != seq || seq > k.Last():
			return fault("its number is %d in a block of the entries %d..%d", e.Seq, k.First, k.Last())
		case e.PrevHash != hash:
			return fault("prevHash is %016x, allowed: the hash of the entry before, %016x", e.PrevHash, hash)
		}
		if e.Kind.IsOrder() {
			orders++
		}
		hash, raw = order.Hash(b), rest
		if err := fn(&e, b); err != nil {
			return err
		}
	}
	seq--
	switch want := o.hashBehind(o.next - 1); {
	case seq != k.Last():
		return fault("the block ends with it, allowed: with entry %d", k.Last())
	case hash != want:
		return fault("its hash is %016x, allowed: %016x, which is written behind it", hash, want)
	case orders != k.Orders:
		return fault("%d orders end with it in the block, allowed: %d", orders, k.Orders)
	}
	return nil
}

// each calls fn for every entry.
func (o *object) each(fn func(e *order.Entry, b []byte) error) error {
	for {
		k, raw, more, err := o.nextBlock()
		if err != nil || !more {
			return err
		}
		if err := o.entries(k, raw, fn); err != nil {
			return err
		}
	}
}

// atEnd reports bytes behind the last block.
func (o *object) atEnd() error {
	var b [1]byte
	if n, err := io.ReadFull(o.r, b[:]); n > 0 {
		return o.damage(0, o.h.First, o.h.Last, invalid("size", "more", fmt.Sprint(o.h.Size())))
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	return nil
}
