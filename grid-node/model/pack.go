package model

// packed is a State in 48 bytes. It holds all of it: equal packed means equal
// states, so no state is ever taken for another.
type packed [6]uint64

type bits struct {
	to  *packed
	pos uint
}

func (b *bits) put(v uint64, n uint) {
	word, off := b.pos/64, b.pos%64
	b.to[word] |= v << off
	if off+n > 64 {
		b.to[word+1] |= v >> (64 - off)
	}
	b.pos += n
}

func (b *bits) get(n uint) uint64 {
	word, off := b.pos/64, b.pos%64
	v := b.to[word] >> off
	if off+n > 64 {
		v |= b.to[word+1] << (64 - off)
	}
	b.pos += n
	return v & (1<<n - 1)
}

func flag(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func (s *State) pack() (to packed) {
	b := bits{to: &to}
	for i := range s.Procs {
		p := &s.Procs[i]
		b.put(uint64(p.ID)|uint64(p.Role)<<4|uint64(p.Epoch)<<6|uint64(p.Log)<<10|uint64(p.Prop)<<16|uint64(p.Peer)<<19|
			flag(p.PeerAcks)<<23|uint64(p.Stored)<<24|uint64(p.Commit)<<26|uint64(p.Floor)<<28|flag(p.Suspended)<<30|
			flag(p.Closed)<<31|flag(p.Lease)<<32|flag(p.Read == Stale)<<33, 34)
	}
	b.put(uint64(s.Epoch)|uint64(s.Known)<<4|uint64(s.Orders)<<10|uint64(s.Faults)<<12|uint64(s.HandOvers)<<14|
		uint64(s.Retires)<<16|uint64(s.Born[0])<<18|uint64(s.Born[1])<<21|uint64(s.Late.Primary)<<24|uint64(s.Late.Other)<<28, 32)
	for _, c := range s.Puts {
		b.put(uint64(c.Primary)|uint64(c.Other)<<4, 8)
	}
	for e := 1; e <= maxEpochs; e++ {
		c := s.Config[e]
		b.put(uint64(c.Primary)|uint64(c.Other)<<4|uint64(s.Sent[e])<<8|uint64(s.Acked[e])<<14, 17)
	}
	return to
}

func (k *packed) unpack() (s State) {
	b := bits{to: k}
	for i := range s.Procs {
		v := b.get(34)
		s.Procs[i] = Proc{
			ID: ID(v & 15), Role: Role(v >> 4 & 3), Epoch: uint8(v >> 6 & 15), Log: Log(v >> 10 & 63), Prop: Purpose(v >> 16 & 7),
			Peer: ID(v >> 19 & 15), PeerAcks: v>>23&1 == 1, Stored: uint8(v >> 24 & 3), Commit: uint8(v >> 26 & 3), Floor: uint8(v >> 28 & 3),
			Suspended: v>>30&1 == 1, Closed: v>>31&1 == 1, Lease: v>>32&1 == 1, Read: Read(v >> 33 & 1),
		}
	}
	v := b.get(32)
	s.Epoch, s.Known, s.Orders, s.Faults = uint8(v&15), Log(v>>4&63), uint8(v>>10&3), uint8(v>>12&3)
	s.HandOvers, s.Retires, s.Born = uint8(v>>14&3), uint8(v>>16&3), [2]uint8{uint8(v >> 18 & 7), uint8(v >> 21 & 7)}
	s.Late = Config{Primary: ID(v >> 24 & 15), Other: ID(v >> 28 & 15)}
	for i := range s.Puts {
		v := b.get(8)
		s.Puts[i] = Config{Primary: ID(v & 15), Other: ID(v >> 4)}
	}
	for e := 1; e <= maxEpochs; e++ {
		v := b.get(17)
		s.Config[e] = Config{Primary: ID(v & 15), Other: ID(v >> 4 & 15)}
		s.Sent[e], s.Acked[e] = Log(v>>8&63), uint8(v>>14&7)
	}
	return s
}

// hash mixes all words; splitmix64's finalizer.
func (k *packed) hash() uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range k {
		h ^= w
		h *= 0xbf58476d1ce4e5b9
		h ^= h >> 29
	}
	h *= 0x94d049bb133111eb
	return h ^ h>>32
}
