package function

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// The state of a function is its memory and its globals. That of a Post function is part of
// a partition's state: AppendState, Restore and Digest are for its snapshot and digest. That
// of the others is not replicated.

const stateBlock = 1 << 12 // a block of zeros is left out

// keepImage keeps memory and globals for reset.
func (i *Instance) keepImage() {
	all, _ := i.memory.Read(0, i.memory.Size())
	i.image = append([]byte{}, all...)
	for _, g := range i.globals {
		i.first = append(i.first, g.Get())
	}
}

// reset sets memory and globals to what they were when the instance was made. Memory does
// not shrink; what was added is zero.
func (i *Instance) reset() {
	all, _ := i.memory.Read(0, i.memory.Size())
	clear(all[copy(all, i.image):])
	for k, g := range i.globals {
		g.Set(i.first[k])
	}
}

// Bytes of its memory, which a fault sets back.
func (i *Instance) Bytes() int { return int(i.memory.Size()) }

// AppendState appends the state: pages, number of globals and their values, then for each
// block of memory that is not zero its number and its bytes.
func (i *Instance) AppendState(dst []byte) []byte {
	all, _ := i.memory.Read(0, i.memory.Size())
	dst = le.AppendUint32(dst, uint32(len(all)/pageBytes))
	dst = le.AppendUint32(dst, uint32(len(i.globals)))
	for _, g := range i.globals {
		dst = le.AppendUint64(dst, g.Get())
	}
	for at := 0; at < len(all); at += stateBlock {
		if b := all[at : at+stateBlock]; !zero(b) {
			dst = append(le.AppendUint32(dst, uint32(at/stateBlock)), b...)
		}
	}
	return dst
}

func zero(b []byte) bool {
	for len(b) >= 8 {
		if le.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	return true
}

// Restore sets the state of a new instance of the same module to what AppendState wrote. After an
// error the instance is not to be used.
func (i *Instance) Restore(state []byte) error {
	if len(state) < 8 {
		return fmt.Errorf("state of a function: %d bytes, at least 8 are expected", len(state))
	}
	pages, count := le.Uint32(state), le.Uint32(state[4:])
	have := i.memory.Size() / pageBytes
	if pages < have || pages > i.module.options.Pages || int(count) != len(i.globals) || len(state) < 8+8*len(i.globals) {
		return fmt.Errorf("state of a function: %d pages, %d globals, %d bytes; expected are %d to %d pages and %d globals",
			pages, count, len(state), have, i.module.options.Pages, len(i.globals))
	}
	if _, ok := i.memory.Grow(pages - have); !ok {
		return fmt.Errorf("state of a function: %d pages cannot be had", pages)
	}
	state = state[8:]
	for _, g := range i.globals {
		g.Set(le.Uint64(state))
		state = state[8:]
	}
	all, _ := i.memory.Read(0, i.memory.Size())
	clear(all)
	for last := -1; len(state) > 0; state = state[4+stateBlock:] {
		if len(state) < 4+stateBlock {
			return fmt.Errorf("state of a function: %d bytes at its end, a block has %d", len(state), 4+stateBlock)
		}
		at := le.Uint32(state)
		if uint64(at)*stateBlock >= uint64(len(all)) || int(at) <= last {
			return fmt.Errorf("state of a function: block %d of %d, after block %d", at, len(all)/stateBlock, last)
		}
		last = int(at)
		copy(all[at*stateBlock:], state[4:4+stateBlock])
	}
	return nil
}

// Digest is a hash of the state. It takes time in proportion to the memory: some
// microseconds a page.
func (i *Instance) Digest() uint64 {
	var h xxhash.Digest
	h.Reset()
	var word [8]byte
	for _, g := range i.globals {
		le.PutUint64(word[:], g.Get())
		_, _ = h.Write(word[:])
	}
	all, _ := i.memory.Read(0, i.memory.Size())
	_, _ = h.Write(all)
	return h.Sum64()
}
