package machine

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// The state in Snapshot frames, see docs/protocol.md: a head in the first part, then
// a record per slot of a FIX session, then one per drop copy, then the limits, then one per session
// slot. Without FIX sessions it has the bytes that releases without them write.

// hasDropCopies in the counts of the head is set where FIX sessions get copies of reports of
// others. Releases that do not know it refuse the head.
const hasDropCopies = 1 << 60

// snapshotPart is the approximate size of a part in bytes: one session may exceed it.
const snapshotPart = 64 << 10

// SnapshotSlots is how many slots a snapshot has.
func (m *Machine) SnapshotSlots() int {
	return m.regionsFrom() + m.regionSlots()
}

// AppendSnapshot appends the part of the state that begins with slot from: 0 first, then
// next of the part before, until that is SnapshotSlots.
func (m *Machine) AppendSnapshot(dst []byte, from uint32) (part []byte, next uint32) {
	if from == 0 {
		dst = m.appendHead(dst)
	}
	fix, text := uint32(len(m.Fix.slots)), m.Functions.text()
	copies := fix + uint32(m.Fix.DropCopies())
	guard := copies + uint32(m.Guard.snapshotSlots())
	functions := guard + functionsSlots(uint64(len(text)))
	sessions := functions + uint32(len(m.Sessions.slots))
	slots := uint32(m.regionsFrom())
	if from >= slots && m.Regions != nil {
		part, n := m.Regions.AppendSlots(dst, int(from-slots), snapshotPart)
		return part, slots + uint32(n)
	}
	for next = from; next < slots && (next == from || len(dst) < snapshotPart); next++ {
		switch {
		case next < fix:
			dst = m.Fix.slots[next].appendTo(dst)
		case next < copies: // each ends its part
			return m.Fix.copies.targets[next-fix].appendTo(dst), next + 1
		case next < guard: // likewise
			return m.Guard.appendSlot(dst, int(next-copies)), next + 1
		case next < functions:
			at := int(next-guard) * functionsSlot
			dst = append(dst, text[at:min(at+functionsSlot, len(text))]...)
		case next < sessions:
			dst = m.Sessions.slots[next-functions].appendTo(dst, m.Sessions.window)
		default: // each ends its part
			return m.Books.appendSlot(dst, int(next-sessions)), next + 1
		}
	}
	return dst, next
}

// Restore adds the part with slots from..next of the state up to base: first the
// one from 0, to a machine after Begin, then those that follow. After an error the machine
// is unusable. Parts are untrusted input.
func (m *Machine) Restore(part []byte, base uint64, from, next uint32) *SnapshotError {
	d := decoder{b: part, base: base, window: m.Sessions.window}
	if from == 0 {
		d.head(m)
	}
	copies := m.Fix.expected + m.Fix.copies.expected
	guard := copies + m.Guard.expected()
	functions := guard + m.functionsSlots()
	for slot := from; slot < next && d.err == nil; slot++ {
		switch {
		case m.Regions != nil && slot >= m.regionsAt:
			d.regions(m, next)
			return d.err
		case slot < m.Fix.expected:
			d.fix(&m.Fix, slot)
		case slot < copies:
			d.dropCopy(&m.Fix)
		case slot < guard:
			d.guard(m, slot-copies, slot+1 == next)
		case slot < functions:
			d.functions(m.Functions, slot-guard)
		case m.Books == nil || slot < functions+m.Books.sessions():
			d.session(&m.Sessions, slot-functions)
		default:
			d.books(m.Books, slot-functions-m.Books.sessions(), slot+1 == next)
		}
	}
	if len(d.b) != 0 {
		d.fail("tail", uint64(len(d.b)), "no bytes behind the last session")
	}
	return d.err
}

// Restored ends a restore, after the last part.
func (m *Machine) Restored() *SnapshotError {
	if n := uint32(len(m.Fix.slots)); n != m.Fix.expected {
		return &SnapshotError{Field: "nFix", Value: uint64(n), Allowed: fmt.Sprint(m.Fix.expected, ", as the head has")}
	}
	if err := m.Books.restored(); err != nil {
		return err
	}
	if err := m.Guard.restored(); err != nil {
		return err
	}
	if err := m.Functions.restored(); err != nil {
		return err
	}
	if err := m.restoredRegions(); err != nil {
		return err
	}
	if n := uint32(m.Fix.DropCopies()); n != m.Fix.copies.expected {
		return &SnapshotError{Field: "nDropCopies", Value: uint64(n), Allowed: fmt.Sprint(m.Fix.copies.expected, ", as the head has")}
	}
	m.Fix.expected, m.Fix.copies.expected = 0, 0
	if mutant(mutCopyUnsnapshotted) {
		for m.Fix.DropCopies() > 0 {
			m.Fix.setSources(m.Fix.copies.targets[0].slot, nil, 0)
		}
	}
	if mutant(mutFixRestoreless) {
		m.Fix = Fix{}
	}
	return nil
}

func (m *Machine) appendHead(dst []byte) []byte {
	dst = le.AppendUint64(dst, m.Cursors.Sink.To)
	dst = le.AppendUint64(dst, m.Orders.Lineage)
	counts := uint64(len(m.Orders.epochs)) | uint64(len(m.Cursors.Readers))<<32 | uint64(len(m.Fix.slots))<<40
	if m.Books != nil {
		counts |= hasBooks
	}
	if m.Guard != nil {
		counts |= hasGuard
	}
	if m.Functions != nil {
		counts |= hasFunctions
	}
	if m.Regions != nil {
		counts |= hasRegions
	}
	if m.Fix.DropCopies() > 0 {
		counts |= hasDropCopies
	}
	if dst = le.AppendUint64(dst, counts); m.Books != nil {
		dst = le.AppendUint64(dst, uint64(len(m.Sessions.slots)))
	}
	if m.Functions != nil {
		dst = le.AppendUint64(dst, uint64(len(m.Functions.text())))
	}
	if m.Regions != nil {
		dst = le.AppendUint64(dst, uint64(m.regionsFrom()))
	}
	if m.Guard != nil {
		dst = le.AppendUint64(dst, uint64(m.Guard.snapshotSlots()))
	}
	if m.Fix.DropCopies() > 0 {
		dst = le.AppendUint64(dst, uint64(m.Fix.DropCopies()))
	}
	for _, e := range m.Orders.epochs {
		dst = le.AppendUint64(dst, e.seq)
		dst = le.AppendUint64(dst, uint64(e.epoch))
	}
	for i := range m.Cursors.Readers {
		r := &m.Cursors.Readers[i]
		dst = le.AppendUint64(le.AppendUint64(dst, r.To), uint64(len(r.Name)))
		dst = append(dst, r.Name...)
		dst = append(dst, make([]byte, order.Padded(len(r.Name))-len(r.Name))...)
	}
	return dst
}

func (s *Session) appendTo(dst []byte, window uint64) []byte {
	open := uint32(0)
	if s.Open {
		open = 1
	}
	dst = le.AppendUint32(dst, s.Generation)
	dst = le.AppendUint32(dst, open)
	dst = le.AppendUint64(dst, s.ID[0])
	dst = le.AppendUint64(dst, s.ID[1])
	dst = le.AppendUint64(dst, s.Last)
	dst = le.AppendUint64(dst, s.Touched)
	n := uint64(0)
	if s.ring != nil {
		n = min(s.Last, window)
	}
	dst = le.AppendUint64(dst, n)
	for c := s.Last - n + 1; n > 0; n, c = n-1, c+1 {
		dst = le.AppendUint64(dst, s.ring[c&(window-1)])
	}
	return dst
}

// SnapshotError names the invalid field of a snapshot.
type SnapshotError struct {
	Field   string
	Value   uint64
	Allowed string
}

func (e *SnapshotError) Error() string {
	return fmt.Sprintf("snapshot: %s is %d, allowed: %s", e.Field, e.Value, e.Allowed)
}

// decoder decodes the state of another process.
type decoder struct {
	b      []byte
	base   uint64
	window uint64
	err    *SnapshotError
}

func (d *decoder) fail(field string, v uint64, allowed string) {
	if d.err == nil {
		d.err = &SnapshotError{Field: field, Value: v, Allowed: allowed}
	}
}

func (d *decoder) u64(field string) uint64 {
	if len(d.b) < 8 {
		d.fail(field, uint64(len(d.b)), "8 bytes")
		d.b = nil
		return 0
	}
	v := le.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

// seq reads a sequence number that must be freed, or 0.
func (d *decoder) seq(field string) uint64 {
	v := d.u64(field)
	if v > d.base {
		d.fail(field, v, "at most base")
	}
	return v
}

func (d *decoder) head(m *Machine) {
	m.Cursors = cursorsAt(d.base, d.u64("cursor"))
	if mutant(mutRestoreCursorless) {
		m.Cursors.Sink.To = 0
	}
	m.Orders.Lineage = d.u64("lineage")
	n := d.u64("nEpochs")
	d.booksHead(m, n&hasBooks != 0)
	d.functionsHead(m, n&hasFunctions != 0)
	d.regionsHead(m, n&hasRegions != 0)
	d.guardHead(m, n&hasGuard != 0)
	d.dropCopiesHead(m, n&hasDropCopies != 0)
	n &^= hasBooks | hasGuard | hasFunctions | hasRegions | hasDropCopies
	readers, fix := n>>32&0xff, n>>40
	if n &= 1<<32 - 1; n > maxEpochs || n*16 > uint64(len(d.b)) {
		d.fail("nEpochs", n, "0..1024, and no more than the bytes that follow")
		return
	}
	m.Orders.epochs, m.Orders.sum = m.Orders.epochs[:0], 0
	for range n {
		e := epochStart{seq: d.seq("epochSeq")}
		epoch := d.u64("epoch")
		if k := len(m.Orders.epochs); epoch >= 1<<32 || k > 0 && (e.seq <= m.Orders.epochs[k-1].seq || uint32(epoch) <= m.Orders.epochs[k-1].epoch) {
			d.fail("epoch", epoch, "rising, below 4294967296")
			return
		}
		e.epoch = uint32(epoch)
		if !mutant(mutRestoreEpochless) {
			m.Orders.add(e)
		}
	}
	if d.readers(m, readers); fix > MaxFix {
		d.fail("nFix", fix, "0..131072")
	}
	m.Fix.expected = uint32(fix)
}

func (d *decoder) readers(m *Machine, n uint64) {
	if n > MaxReaders {
		d.fail("nReaders", n, "0..16")
		return
	}
	for last := ""; n > 0; n-- {
		to, size := d.seq("readerSeq"), d.u64("readerName")
		padded := uint64(order.Padded(int(min(size, order.MaxReaderName))))
		switch {
		case d.err != nil:
			return
		case size > order.MaxReaderName || padded > uint64(len(d.b)) || !order.IsReaderName(d.b[:size]) || string(d.b[:size]) <= last ||
			len(bytes.Trim(d.b[size:padded], "\x00")) != 0:
			d.fail("readerName", size, "1..32 lowercase letters, digits and hyphens, padded with zero bytes to 8, in rising order")
			return
		}
		last = string(d.b[:size])
		if !mutant(mutRestoreReaderless) {
			m.Cursors.set(0, to, d.b[:size])
		}
		d.b = d.b[padded:]
	}
}

func (d *decoder) session(t *Sessions, slot uint32) {
	flags := d.u64("generation")
	id := [2]uint64{d.u64("idHi"), d.u64("idLo")}
	last, touched, n := d.u64("last"), d.seq("touched"), d.u64("nReplies")
	switch open := flags >> 32; {
	case d.err != nil:
		return
	case open > 1:
		d.fail("open", open, "0, 1")
		return
	case n*8 > uint64(len(d.b)) || n != min(last, d.window):
		d.fail("nReplies", n, "last, at most the window, and no more than the bytes that follow")
		return
	case open == 0:
		if flags != 0 || id != [2]uint64{} || last != 0 || touched != 0 {
			d.fail("open", open, "1 for a session that has a state")
		}
		if int(slot) >= len(t.slots) {
			t.slots = append(t.slots, Session{})
		}
		return
	}
	if _, twice := t.byID[id]; twice {
		d.fail("idLo", id[1], "an id that no other session has")
		return
	}
	t.open(slot, uint32(flags), id, touched)
	s := &t.slots[slot]
	s.Last = last
	if n > 0 {
		s.ring = make([]uint64, d.window)
	}
	for c := last - n + 1; n > 0; n, c = n-1, c+1 {
		if seq := d.seq("reply"); !mutant(mutRestoreLastReply) || c == last {
			s.ring[c&(d.window-1)] = seq
		}
	}
	t.sum -= s.sum
	s.sum = s.recount(slot)
	t.sum += s.sum
}
