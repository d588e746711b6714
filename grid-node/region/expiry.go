package region

import "bytes"

// What expires is in a heap per region, the next one first: by time, then by version, then by
// key, for those of a batch have one version. So every copy removes the same ones first.

// sooner reports whether head x expires before head y.
func (a *arena) sooner(x, y uint32) bool {
	if s, t := a.expire(x), a.expire(y); s != t {
		return s < t
	}
	if v, w := a.version(x), a.version(y); v != w {
		return v < w
	}
	return a.before(x, y)
}

// before reports whether the key of head x is before that of head y.
func (a *arena) before(x, y uint32) bool {
	if n, m := a.keyLen(x), a.keyLen(y); n <= headData && m <= headData {
		return bytes.Compare(a.at(x)[headFixed:][:n], a.at(y)[headFixed:][:m]) < 0
	}
	a.tie = a.key(a.tie[:0], x)
	return a.compare(a.tie, y) < 0
}

func (s *State) push(r *Region, n uint32) {
	r.heap = append(r.heap, n)
	s.up(r.heap, len(r.heap)-1)
}

// drop removes a head from the heap, if it is in it.
func (s *State) drop(r *Region, n uint32) {
	place := s.place(n)
	if place == 0 {
		return
	}
	s.setPlace(n, 0)
	i, last := int(place)-1, len(r.heap)-1
	moved := r.heap[last]
	if r.heap = r.heap[:last]; i < last {
		r.heap[i] = moved
		s.setPlace(moved, uint32(i)+1)
		s.down(r.heap, i)
		s.up(r.heap, i)
	}
}

func (s *State) up(h []uint32, i int) {
	n := h[i]
	for i > 0 {
		above := (i - 1) / 2
		if !s.sooner(n, h[above]) {
			break
		}
		h[i] = h[above]
		s.setPlace(h[i], uint32(i)+1)
		i = above
	}
	h[i] = n
	s.setPlace(n, uint32(i)+1)
}

func (s *State) down(h []uint32, i int) {
	n := h[i]
	for {
		below := 2*i + 1
		if below >= len(h) {
			break
		}
		if below+1 < len(h) && s.sooner(h[below+1], h[below]) {
			below++
		}
		if !s.sooner(h[below], n) {
			break
		}
		h[i] = h[below]
		s.setPlace(h[i], uint32(i)+1)
		i = below
	}
	h[i] = n
	s.setPlace(n, uint32(i)+1)
}
