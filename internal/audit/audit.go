// Package audit is the arithmetic of "is everything there, once, in order?": judges that read logs, sinks and receipts each
// in their own way compare the numbers with it.
package audit

import (
	"math/bits"
	"slices"
)

// Dense follows numbers that rise by one.
type Dense struct {
	Next uint64 // the number that has to come
}

// See takes the number that comes: how many were skipped before it, and whether it is not above the ones before.
func (d *Dense) See(n uint64) (missing uint64, back bool) {
	if n < d.Next {
		return 0, true
	}
	missing, d.Next = n-d.Next, n+1
	return missing, false
}

// Twice sorts the numbers and calls f for each that is there again.
func Twice(numbers []uint64, f func(n uint64)) {
	slices.Sort(numbers)
	for i := 1; i < len(numbers); i++ {
		if numbers[i] == numbers[i-1] {
			f(numbers[i])
		}
	}
}

// Set is numbers from 0, a bit each; it grows as needed.
type Set struct{ words []uint64 }

// Add reports whether the number was there already.
func (s *Set) Add(n uint64) bool {
	w := n / 64
	if w >= uint64(len(s.words)) {
		grown := make([]uint64, max(w+1, uint64(2*len(s.words))))
		copy(grown, s.words)
		s.words = grown
	}
	was := s.words[w]>>(n%64)&1 == 1
	s.words[w] |= 1 << (n % 64)
	return was
}

// Has reports whether the number is there.
func (s *Set) Has(n uint64) bool {
	w := n / 64
	return w < uint64(len(s.words)) && s.words[w]>>(n%64)&1 == 1
}

// Room is up to which number memory is allocated.
func (s *Set) Room() uint64 { return uint64(len(s.words)) * 64 }

// Holes is how many numbers below the greatest are not there.
func (s *Set) Holes() int64 {
	taken, end := 0, 0
	for i, w := range s.words {
		if w != 0 {
			taken, end = taken+bits.OnesCount64(w), i*64+64-bits.LeadingZeros64(w)
		}
	}
	return int64(end - taken)
}
