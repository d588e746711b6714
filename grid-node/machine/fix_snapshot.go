package machine

import "github.com/ordergrid/ordergrid/grid-node/order"

// appendTo appends the record of a slot in a snapshot, 64 bytes.
func (s *FixSession) appendTo(dst []byte) []byte {
	for _, v := range [...]uint64{
		s.ID[0], s.ID[1], s.In, s.Out, s.Touched, uint64(s.Generation)<<32 | uint64(s.Attempt),
		uint64(s.Day)<<32 | uint64(s.GraceMs)<<16 | uint64(s.Form)<<8 | uint64(s.bits()), uint64(s.LogonNs),
	} {
		dst = le.AppendUint64(dst, v)
	}
	return dst
}

// bits are open 1, mode 2 and 4, left 8, lapsed 16.
func (s *FixSession) bits() (b uint8) {
	for i, is := range [...]bool{0: s.Open, 3: s.Left, 4: s.Lapsed} {
		if is {
			b |= 1 << i
		}
	}
	return b | uint8(s.Mode)<<1
}

// fix reads the record of a slot.
func (d *decoder) fix(x *Fix, slot uint32) {
	s := FixSession{ID: [2]uint64{d.u64("fixIDHi"), d.u64("fixIDLo")}, In: d.u64("fixIn"), Out: d.u64("fixOut"), Touched: d.seq("fixTouched")}
	attempts, rest := d.u64("fixGeneration"), d.u64("fixDay")
	s.LogonNs = int64(d.u64("fixLogonNs"))
	s.Generation, s.Attempt = uint32(attempts>>32), uint32(attempts)
	s.Day, s.GraceMs, s.Form, s.Open = uint32(rest>>32), uint16(rest>>16), uint8(rest>>8), rest&1 != 0
	s.Mode, s.Left, s.Lapsed = order.LapseMode(rest>>1&3), rest&8 != 0, rest&16 != 0
	if mutant(mutFixLapseUnsnapshotted) {
		s.Mode, s.GraceMs, s.Left, s.Lapsed = 0, 0, false, false
	}
	_, twice := x.byID[s.ID]
	switch {
	case d.err != nil:
		return
	case rest&0xe0 != 0 || !order.CheckLapse(s.Mode, s.GraceMs) || s.Mode == order.LapseNever && (s.Left || s.Lapsed):
		d.fail("fixOpen", rest&0xffff00ff, "bits of an open session, its mode and grace, and no others")
	case !s.Open && s != FixSession{Generation: s.Generation, Attempt: s.Attempt, Day: s.Day}:
		d.fail("fixOpen", 0, "1 for a session that has a state")
	case s.Open && (s.In == 0 || s.In > maxFixSeq):
		d.fail("fixIn", s.In, "1..2^62")
	case s.Open && (s.Out == 0 || s.Generation == 0):
		d.fail("fixOut", s.Out, "1 or more, and the generation too")
	case s.Open && twice:
		d.fail("fixIDLo", s.ID[1], "an id that no other FIX session has")
	default:
		x.put(slot, s)
	}
}

// put adds the session of a slot, after those of the slots before it.
func (x *Fix) put(slot uint32, s FixSession) {
	x.slots = append(x.slots, s)
	x.modes += s.lapsing()
	x.sum += s.hash(slot)
	if !s.Open {
		return
	}
	if x.byID == nil {
		x.byID = map[[2]uint64]uint32{}
	}
	x.byID[s.ID] = slot
}
