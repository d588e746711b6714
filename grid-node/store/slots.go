package store

import (
	"encoding/binary"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// fixNumber is the replica's memory for finding the entry of a report by its number, in
// bytes; it lives as long as the entry. A page of 120 numbers has 512 bytes.
const fixNumber = 5

// beside returns the memory that the replica takes for an entry beside the log: of session
// slots that it uses for the first time, and of the number of its report.
func (s *Store) beside(e *order.Entry, payload []byte) int64 {
	switch {
	case e.Kind == order.KindSessionOpen:
		return max(0, int64(e.Session)+1-s.sessions) * s.perSlot
	case e.Kind == order.KindFix:
		return s.numberBytes(e) + max(0, fixSlots(payload)-s.fixes)*s.perFix
	}
	return s.numberBytes(e)
}

// Hold charges n bytes that the replica takes beside the log, and takes them back if n is negative.
// It has the room that AppendHinted left for them; where an entry came by AppendEntry, the limit
// is enforced with the next.
func (s *Store) Hold(n int64) { s.used += n }

func (s *Store) numberBytes(e *order.Entry) int64 {
	if s.perFix > 0 && (e.Kind == order.KindFix || e.Flags&order.FlagFix != 0) {
		return fixNumber
	}
	return 0
}

// fixSlots returns how many slots of FIX sessions there are at least, by an opening.
func fixSlots(payload []byte) int64 {
	if order.FixOp(payload[16]) != order.FixOpen { // the only record of its entry
		return 0
	}
	return int64(binary.LittleEndian.Uint32(payload)) + 1
}

// took charges what beside returned.
func (s *Store) took(e *order.Entry, payload []byte) {
	s.used += s.beside(e, payload)
	switch e.Kind {
	case order.KindSessionOpen:
		s.sessions = max(s.sessions, int64(e.Session)+1)
	case order.KindFix:
		s.fixes = max(s.fixes, fixSlots(payload))
	}
}
