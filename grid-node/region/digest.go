package region

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Digest returns a digest of the state, equal for equal logs, whether a copy applied the
// entries or restored a snapshot.
func (s *State) Digest() uint64 {
	sum := s.kept
	for _, r := range s.regions {
		sum += r.sum
	}
	return s.digest(sum)
}

// Recount computes Digest from the whole state, for tests of the sums.
func (s *State) Recount() uint64 {
	sum := uint64(0)
	var key, value []byte
	count := func(n uint32) bool {
		b := s.at(n)
		key, value = s.key(key[:0], n), s.value(value[:0], n)
		session := uint32(0)
		if b[4] == blockTaken {
			session = s.place(n)
		}
		sum += sumOf(b[4], s.region(n), session, s.version(n), uint64(s.expire(n)), key, value)
		return true
	}
	for _, r := range s.regions {
		s.scan(r.root, nil, false, count)
	}
	for i := range s.taken {
		for _, n := range s.taken[i].heads {
			count(n)
		}
	}
	return s.digest(sum)
}

func (s *State) digest(sum uint64) uint64 {
	d := mix(sum, s.limit, s.seed) + mix(uint64(s.now), s.last, 1)
	for i, r := range s.regions {
		d += mix(xxhash.Sum64String(r.Name), r.MaxBytes, mix(uint64(r.LifeNs), uint64(i), r.Entries))
		if r.Source != nil {
			d += mix(xxhash.Sum64(r.Source.Text()), uint64(i), 3)
		}
	}
	return d
}

// sumOf is the part of an entry, or of what was taken: number is when it expires, or the
// number of the operation.
func sumOf(kind byte, region uint16, session uint32, version, number uint64, key, value []byte) uint64 {
	return mix(mix(xxhash.Sum64(key), xxhash.Sum64(value), uint64(kind)), mix(version, number, 2), uint64(region)<<32|uint64(session))
}

func mix(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo^0x8ebc6af09c88c6e3, c^0x589965cc75374cc3)
	return hi ^ lo
}
