package server

// heldBytes is how much of one connection is held until an interval ends: beyond it messages wait in queues of the hub,
// which share the bytes of a message.
const heldBytes = 1 << 10

// holds are buffers of heldBytes for what connections hold.
type holds struct {
	free  [][]byte
	spare int // of them that were not in use since shrink
}

func (h *holds) take() []byte {
	last := len(h.free) - 1
	if last < 0 {
		return make([]byte, 0, heldBytes)
	}
	b := h.free[last]
	h.free[last] = nil
	h.free = h.free[:last]
	h.spare = min(h.spare, last)
	return b
}

func (h *holds) put(b []byte) { h.free = append(h.free, b[:0]) }

// shrink frees half of the buffers that have been spare for a time.
func (h *holds) shrink() {
	rest := len(h.free) - (h.spare+1)/2
	clear(h.free[rest:])
	h.free = h.free[:rest]
	h.spare = rest
}
