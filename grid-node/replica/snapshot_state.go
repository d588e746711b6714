package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// The state in Snapshot frames, see docs/protocol.md: a head in the first part, then
// a record per session slot.

func (b *baseState) appendHead(dst []byte) []byte {
	dst = le.AppendUint64(dst, b.cursor)
	dst = le.AppendUint64(dst, b.lineage)
	dst = le.AppendUint64(dst, uint64(len(b.epochs)))
	for _, e := range b.epochs {
		dst = le.AppendUint64(dst, e.seq)
		dst = le.AppendUint64(dst, uint64(e.epoch))
	}
	return dst
}

// appendTo adds a session's record: all of it that is a function of the log.
func (s *session) appendTo(dst []byte, window uint64) []byte {
	open := uint32(0)
	if s.open {
		open = 1
	}
	dst = le.AppendUint32(dst, s.generation)
	dst = le.AppendUint32(dst, open)
	dst = le.AppendUint64(dst, s.id[0])
	dst = le.AppendUint64(dst, s.id[1])
	dst = le.AppendUint64(dst, s.last)
	dst = le.AppendUint64(dst, s.touched)
	n := uint64(0)
	if s.ring != nil {
		n = min(s.last, window)
	}
	dst = le.AppendUint64(dst, n)
	for c := s.last - n + 1; n > 0; n, c = n-1, c+1 {
		dst = le.AppendUint64(dst, s.ring[c&(window-1)])
	}
	return dst
}

// stateDecoder reads state of another process: nothing of it is believed.
type stateDecoder struct {
	b      []byte
	base   uint64
	window uint64
	err    error
}

func (d *stateDecoder) fail(field string, v uint64, allowed string) {
	if d.err == nil {
		d.err = &wire.FrameError{Type: wire.TypeSnapshot, Field: field, Value: v, Allowed: allowed}
	}
}

func (d *stateDecoder) u64(field string) uint64 {
	if len(d.b) < 8 {
		d.fail(field, uint64(len(d.b)), "8 bytes")
		d.b = nil
		return 0
	}
	v := le.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

// seq reads a sequence number that has to be freed, or 0.
func (d *stateDecoder) seq(field string) uint64 {
	v := d.u64(field)
	if v > d.base {
		d.fail(field, v, "at most base")
	}
	return v
}

func (d *stateDecoder) head(b *baseState) {
	b.cursor, b.lineage = d.u64("cursor"), d.u64("lineage")
	n := d.u64("nEpochs")
	if n > maxEpochs || n*16 > uint64(len(d.b)) {
		d.fail("nEpochs", n, "0..1024, and no more than the bytes that follow")
		return
	}
	b.epochs = b.epochs[:0]
	for range n {
		e := epochStart{seq: d.seq("epochSeq")}
		epoch := d.u64("epoch")
		if k := len(b.epochs); epoch >= 1<<32 || k > 0 && (e.seq <= b.epochs[k-1].seq || uint32(epoch) <= b.epochs[k-1].epoch) {
			d.fail("epoch", epoch, "rising, below 4294967296")
			return
		}
		e.epoch = uint32(epoch)
		b.epochs = append(b.epochs, e)
	}
}

func (d *stateDecoder) session(t *sessionTable, slot uint32) {
	flags := d.u64("generation")
	id := [2]uint64{d.u64("idHi"), d.u64("idLo")}
	last, touched, n := d.u64("last"), d.seq("touched"), d.u64("nReplies")
	switch open := flags >> 32; {
	case d.err != nil:
		return
	case open > 1:
		d.fail("open", open, "0, 1")
		return
	case n > d.window || n > last || n*8 > uint64(len(d.b)) || n != 0 && n != min(last, d.window):
		d.fail("nReplies", n, "0, or the window's, and no more than the bytes that follow")
		return
	case open == 0:
		if flags != 0 || id != [2]uint64{} || last != 0 || touched != 0 {
			d.fail("open", open, "1 for a session that has a state")
		}
		if int(slot) >= len(t.slots) {
			t.slots = append(t.slots, session{})
		}
		return
	}
	if _, twice := t.byID[id]; twice {
		d.fail("idLo", id[1], "an id that no other session has")
		return
	}
	t.openSlot(slot, uint32(flags), id, touched)
	s := &t.slots[slot]
	s.last = last
	if n == 0 {
		return
	}
	s.ring = make([]uint64, d.window)
	for c := last - n + 1; n > 0; n, c = n-1, c+1 {
		s.ring[c&(d.window-1)] = d.seq("reply")
	}
}
