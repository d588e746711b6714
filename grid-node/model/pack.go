package model

// packed is a State in 112 bytes, losslessly: equal packed means equal states.
type packed [packedBytes / 8]uint64

const packedBytes = 112

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
		if p.ID == 0 {
			b.put(0, 5)
			break
		}
		b.put(uint64(p.ID)|uint64(p.Role)<<5|uint64(p.Epoch)<<7|uint64(p.Log)<<11|uint64(p.Prop)<<17|uint64(p.Of)<<20|flag(p.Cut)<<23, 24)
		if p.Role != Primary {
			continue
		}
		b.put(uint64(p.Commit)|uint64(p.Floor)<<2|flag(p.Suspended)<<4|flag(p.Closed)<<5|uint64(p.Read)<<6, 7)
		for _, q := range p.Peers {
			b.put(uint64(q.ID)|flag(q.Acks)<<5|uint64(q.Stored)<<6|flag(q.Lease)<<8|flag(q.Echoed)<<9, 10)
		}
	}
	b.put(uint64(s.Epoch)|uint64(s.Known)<<4|uint64(s.Orders)<<10|uint64(s.Faults)<<12|uint64(s.HandOvers)<<14|
		uint64(s.Retires)<<16|uint64(s.Born[0])<<18|uint64(s.Born[1])<<22|uint64(s.Born[2])<<26, 30)
	b.put(uint64(s.Wanted)|uint64(s.Moves)<<3, 5)
	b.config(s.Late)
	for _, c := range s.Puts {
		b.config(c)
	}
	for e := range s.Epoch {
		b.config(s.Config[e+1])
		a := s.Acked[e+1]
		b.put(uint64(s.Sent[e+1])|uint64(a[0])<<6|uint64(a[1])<<13|uint64(a[2])<<20|flag(s.Cut[e+1])<<27, 28)
	}
	return to
}

func (b *bits) config(c Config) {
	b.put(uint64(c.Primary), 5)
	if c.Primary != 0 {
		b.put(uint64(c.Others[0])|uint64(c.Others[1])<<5|uint64(c.Others[2])<<10, 15)
	}
}

func (b *bits) getConfig() (c Config) {
	if c.Primary = ID(b.get(5)); c.Primary != 0 {
		v := b.get(15)
		c.Others = [maxPods]ID{ID(v & 31), ID(v >> 5 & 31), ID(v >> 10)}
	}
	return c
}

func (k *packed) unpack() (s State) {
	b := bits{to: k}
	for i := range s.Procs {
		id := ID(b.get(5))
		if id == 0 {
			break
		}
		v := b.get(19)
		p := &s.Procs[i]
		*p = Proc{ID: id, Role: Role(v & 3), Epoch: uint8(v >> 2 & 15), Log: Log(v >> 6 & 63), Prop: Purpose(v >> 12 & 7), Of: pods(v >> 15 & 7), Cut: v>>18 == 1}
		if p.Role != Primary {
			continue
		}
		v = b.get(7)
		p.Commit, p.Floor, p.Suspended, p.Closed, p.Read = uint8(v&3), uint8(v>>2&3), v>>4&1 == 1, v>>5&1 == 1, Read(v>>6)
		for k := range p.Peers {
			v := b.get(10)
			p.Peers[k] = Peer{ID: ID(v & 31), Acks: v>>5&1 == 1, Stored: uint8(v >> 6 & 3), Lease: v>>8&1 == 1, Echoed: v>>9 == 1}
		}
	}
	v := b.get(30)
	s.Epoch, s.Known, s.Orders, s.Faults = uint8(v&15), Log(v>>4&63), uint8(v>>10&3), uint8(v>>12&3)
	s.HandOvers, s.Retires = uint8(v>>14&3), uint8(v>>16&3)
	s.Born = [maxPods]uint8{uint8(v >> 18 & 15), uint8(v >> 22 & 15), uint8(v >> 26)}
	v = b.get(5)
	s.Wanted, s.Moves = pods(v&7), uint8(v>>3)
	s.Late = b.getConfig()
	for i := range s.Puts {
		s.Puts[i] = b.getConfig()
	}
	for e := range s.Epoch {
		s.Config[e+1] = b.getConfig()
		v := b.get(28)
		s.Sent[e+1], s.Acked[e+1] = Log(v&63), [maxPods]uint8{uint8(v >> 6 & 127), uint8(v >> 13 & 127), uint8(v >> 20 & 127)}
		s.Cut[e+1] = v>>27 == 1
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
