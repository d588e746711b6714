package region

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MostBytes bounds what the regions of a partition may take, and so what another replica can
// make this one allocate.
const MostBytes = 1 << 40

// MostSessions bounds the slots of sessions.
const MostSessions = 1 << 16

// Error names the invalid field of a snapshot.
type Error struct {
	Field   string
	Value   uint64
	Allowed string
}

func (e *Error) Error() string {
	return fmt.Sprintf("regions: %s is %d, allowed: %s", e.Field, e.Value, e.Allowed)
}

// restoring is the progress of a restore.
type restoring struct {
	next    int      // slot
	entries []uint64 // that each region has to have
	taken   uint64   // that there have to be
}

// NewRestore returns a state for the parts of a snapshot, with a second one for Clone.
func NewRestore() *State {
	s := New()
	s.restoring = &restoring{}
	s.twin = New()
	s.twin.restoring = &restoring{}
	return s
}

// Restore adds the part of a snapshot that goes up to slot next, of the state up to entry
// base. Parts are untrusted input.
func (s *State) Restore(part []byte, next int, base uint64) *Error {
	if s.restoring == nil {
		return &Error{"slot", uint64(next), "those of a snapshot that is being restored"}
	}
	if s.twin != nil {
		if err := s.twin.Restore(part, next, base); err != nil {
			return err
		}
	}
	d := decoder{b: part, base: base}
	if s.restoring.next == 0 && next > 0 {
		d.head(s)
	}
	for s.restoring.next = next; d.err == nil && len(d.b) > 0; {
		d.entry(s)
	}
	return d.err
}

// Restored ends a restore, after the last part.
func (s *State) Restored() *Error {
	if s == nil || s.restoring == nil {
		return nil
	}
	if s.twin != nil {
		if err := s.twin.Restored(); err != nil {
			return err
		}
	}
	taken := uint64(0)
	for i := range s.taken {
		taken += uint64(len(s.taken[i].heads))
	}
	if s.restoring.next == 0 || taken != s.restoring.taken {
		return &Error{"nTaken", taken, "as the head has"}
	}
	for i, r := range s.regions {
		if r.Entries != s.restoring.entries[i] {
			return &Error{"nEntries", r.Entries, "as the head has"}
		}
	}
	s.restoring = nil
	return nil
}

type decoder struct {
	b    []byte
	base uint64
	err  *Error
}

func (d *decoder) fail(field string, v uint64, allowed string) {
	if d.err == nil {
		d.err = &Error{field, v, allowed}
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

// bytes reads n bytes, which are padded.
func (d *decoder) bytes(field string, n int) []byte {
	padded := order.Padded(n)
	if padded > len(d.b) || len(bytes.Trim(d.b[n:padded], "\x00")) != 0 {
		d.fail(field, uint64(n), "no more than the bytes that follow, padded with zero bytes to 8")
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[padded:]
	return b
}

func (d *decoder) head(s *State) {
	s.limit, s.seed = d.u64("bytes"), d.u64("seed")
	s.now, s.last = int64(d.u64("nowNs")), d.u64("last")
	counts := d.u64("nRegions")
	n := counts & (1<<32 - 1)
	s.restoring.taken = counts >> 32
	switch {
	case d.err != nil:
	case s.limit == 0 || s.limit > MostBytes:
		d.fail("bytes", s.limit, "1..2^40")
	case s.last == 0 || s.last > d.base:
		d.fail("last", s.last, "1..base")
	case n > order.MaxRegions:
		d.fail("nRegions", n, "0..64")
	}
	for ; n > 0 && d.err == nil; n-- {
		r := &Region{MaxBytes: d.u64("maxBytes"), LifeNs: int64(d.u64("lifeNs"))}
		entries, size := d.u64("nEntries"), d.u64("name")
		if d.err != nil {
			return
		}
		sourced := size >> 32
		size &= 1<<32 - 1
		name := d.bytes("name", int(min(size, order.MaxRegionName)))
		if _, twice := s.Find(name); size > order.MaxRegionName || !order.IsRegionName(name) || twice || r.LifeNs < 0 {
			d.fail("name", size, "1..48 lowercase letters, digits and underscores, a letter first, that no other region has")
			return
		}
		r.Name = string(name)
		source, err := limits.ParseSource(d.bytes("source", int(min(sourced, order.MaxRegionSource))))
		if r.Source = source; err != nil || sourced > order.MaxRegionSource {
			d.fail("source", sourced, "0..256 bytes, as the entry has it")
			return
		}
		s.regions = append(s.regions, r)
		s.restoring.entries = append(s.restoring.entries, entries)
	}
}

func (d *decoder) entry(s *State) {
	if len(d.b) < entryFixed {
		d.fail("entry", uint64(len(d.b)), "32 bytes and a key and a value")
		return
	}
	b := d.b[:entryFixed]
	value, key, region := int(le.Uint32(b)), int(le.Uint16(b[4:])), le.Uint16(b[6:])
	version, number := le.Uint64(b[8:]), le.Uint64(b[16:])
	session, kind := le.Uint32(b[24:]), le.Uint32(b[28:])
	switch {
	case int(region) >= len(s.regions):
		d.fail("region", uint64(region), "one that the head has")
	case key == 0 && kind != blockTaken || value > order.MaxRegionPair || key+value > order.MaxRegionPair:
		d.fail("key", uint64(key), "1 byte or more but for a reply, with the value at most 65440")
	case version == 0 || version > d.base:
		d.fail("version", version, "1..base")
	case kind != blockHead && kind != blockTaken || kind == blockHead && (session != 0 || int64(number) < 0) || session >= MostSessions:
		d.fail("kind", uint64(kind), "1, without a session, or 3 with one")
	case kind == blockTaken && (number == 0 || s.holds(session, number)):
		d.fail("clientSeq", number, "1 or more, once in its session")
	}
	if d.err != nil {
		return
	}
	d.b = d.b[entryFixed:]
	pair := d.bytes("value", key+value)
	if d.err != nil {
		return
	}
	o := order.RegionOp{Region: region, ExpireNs: int64(number), Key: pair[:key], Value: pair[key:]}
	if kind == blockTaken {
		s.restoreTaken(&o, session, version)
		return
	}
	r := s.regions[region]
	if s.find(r.root, o.Key) != 0 {
		d.fail("key", uint64(key), "one that the region has once")
		return
	}
	s.put(r, 0, version, &o)
}

func (s *State) holds(session uint32, clientSeq uint64) bool {
	_, found := s.Taken(nil, session, clientSeq)
	return found
}

func (s *State) restoreTaken(o *order.RegionOp, session uint32, version uint64) {
	n := s.alloc(blockHead)
	le.PutUint16(s.at(n)[52:], o.Region)
	s.fill(n, o.Key, o.Value)
	s.keep(n, &order.Entry{Seq: version, Session: session, ClientSeq: uint64(o.ExpireNs)})
}
