package region

import "github.com/ordergrid/ordergrid/grid-node/order"

// A snapshot has slots: the first has the bounds and the regions, each of the others the
// entries whose heads are in slotBlocks blocks of memory. Their order has no meaning.

const (
	slotBlocks = 8    // with pairs of 64 KiB a slot has half a frame
	slotsMost  = 4096 // in a part: what a step looks at, if all are empty
)

// Slots returns how many slots a snapshot has.
func (s *State) Slots() int { return 2 + int(s.high)/slotBlocks }

// AppendSlots appends the part of a snapshot that begins with slot from, and returns the slot
// behind it. The slot that makes dst as long as limit is the last.
func (s *State) AppendSlots(dst []byte, from, limit int) (part []byte, next int) {
	next = from
	for most := min(s.Slots(), from+slotsMost); next < most && (next == from || len(dst) < limit); next++ {
		if next == 0 {
			dst = s.appendHead(dst)
			continue
		}
		first := uint32(next-1) * slotBlocks
		for n := max(first, 1); n < first+slotBlocks && n <= s.high; n++ {
			b := s.at(n)
			if b[4] == blockTaken || b[4] == blockHead && s.era(n) == s.regions[s.region(n)].era {
				dst = s.appendEntry(dst, n, b)
			}
		}
	}
	return dst, next
}

func (s *State) appendHead(dst []byte) []byte {
	taken := 0
	for i := range s.taken {
		taken += len(s.taken[i].heads)
	}
	for _, v := range [...]uint64{s.limit, s.seed, uint64(s.now), s.last, uint64(len(s.regions)) | uint64(taken)<<32} {
		dst = le.AppendUint64(dst, v)
	}
	for _, r := range s.regions {
		source := r.Source.Text()
		for _, v := range [...]uint64{r.MaxBytes, uint64(r.LifeNs), r.Entries, uint64(len(r.Name)) | uint64(len(source))<<32} {
			dst = le.AppendUint64(dst, v)
		}
		dst = appendPadded(appendPadded(dst, []byte(r.Name)), source)
	}
	return dst
}

func appendPadded(dst, b []byte) []byte {
	dst = append(dst, b...)
	return append(dst, make([]byte, order.Padded(len(b))-len(b))...)
}

// The fixed part of an entry in a snapshot.
//
//	0  u32  bytes of the value     8  u64  version
//	4  u16  bytes of the key      16  u64  expireNs, or clientSeq
//	6  u16  region                24  u32  session
//	                              28  u32  1 an entry, 3 one that was taken
const entryFixed = 32

func (s *State) appendEntry(dst []byte, n uint32, b []byte) []byte {
	session := uint32(0)
	if b[4] == blockTaken {
		session = s.place(n)
	}
	key, value := s.keyLen(n), s.valueLen(n)
	dst = le.AppendUint32(dst, uint32(value))
	dst = le.AppendUint16(le.AppendUint16(dst, uint16(key)), s.region(n))
	dst = le.AppendUint64(le.AppendUint64(dst, s.version(n)), uint64(s.expire(n)))
	dst = le.AppendUint32(le.AppendUint32(dst, session), uint32(b[4]))
	size := key + value
	dst = s.read(dst, n, 0, size)
	return append(dst, make([]byte, order.Padded(size)-size)...)
}

// Clone returns a copy: the one that was restored beside this state, if there is one. Else
// it takes as long as the state is large.
func (s *State) Clone() *State {
	if s == nil {
		return nil
	}
	if twin := s.twin; twin != nil {
		s.twin = nil
		return twin
	}
	c := NewRestore()
	c.twin = nil
	for next := 0; next < s.Slots(); {
		var part []byte
		part, next = s.AppendSlots(nil, next, 64<<10)
		if err := c.Restore(part, next, s.last); err != nil {
			panic("regions: their own snapshot: " + err.Error())
		}
	}
	if err := c.Restored(); err != nil {
		panic("regions: their own snapshot: " + err.Error())
	}
	return c
}
