package machine

import (
	"fmt"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MaxSessions bounds what another replica can make this one allocate.
const MaxSessions = 1 << 16

// SessionBytes returns the memory of a session with this window.
func SessionBytes(window int) int64 {
	return int64(unsafe.Sizeof(Session{})) + int64(window)*8 + 64
}

// Session is the exactly-once state of one client session.
type Session struct {
	ID         [2]uint64
	Generation uint32 // of the slot: sessions that used it, this one included
	Open       bool
	Last       uint64   // highest clientSeq applied
	Touched    uint64   // the last entry that belongs to it
	ring       []uint64 // entry per clientSeq & mask, 0 for one that was refused; nil before the first
	sum        uint64   // its part of the digest
}

// Sessions has a session per slot.
type Sessions struct {
	slots  []Session
	byID   map[[2]uint64]uint32
	window uint64
	sum    uint64 // of all sessions
}

// Window is how many replies a session keeps.
func (t *Sessions) Window() uint64 { return t.window }

// Slots is how many slots were ever used.
func (t *Sessions) Slots() int { return len(t.slots) }

// Open is how many sessions there are.
func (t *Sessions) Open() int { return len(t.byID) }

// At returns the session of a slot, open or not.
func (t *Sessions) At(slot uint32) *Session { return &t.slots[slot] }

// Find returns the session of a slot in this generation, nil if it was evicted.
func (t *Sessions) Find(slot, generation uint32) *Session {
	if int(slot) >= len(t.slots) {
		return nil
	}
	if s := &t.slots[slot]; s.Open && s.Generation == generation {
		return s
	}
	return nil
}

// SlotOf finds a session by its id.
func (t *Sessions) SlotOf(id [2]uint64) (slot uint32, ok bool) {
	slot, ok = t.byID[id]
	return slot, ok
}

// Applied returns the entry of a clientSeq, 0 for none, or one outside the window.
func (t *Sessions) Applied(s *Session, c uint64) uint64 {
	if s.ring == nil || c > s.Last || s.Last-c >= t.window {
		return 0
	}
	return s.ring[c&(t.window-1)]
}

// Verdict classifies a clientSeq.
type Verdict uint8

// Verdicts.
const (
	New     Verdict = iota // not applied
	Applied                // applied as entry seq
	TooOld                 // forgotten; seq is the lowest clientSeq kept
	Gap                    // clientSeqs between are missing; seq is the one expected
)

// Admit classifies a clientSeq. A rejected one took no entry; it may be retried and is
// then checked anew. expected is the next one that this primary has not seen, 0 before the
// first. It changes nothing.
func (t *Sessions) Admit(s *Session, c, expected uint64) (v Verdict, seq uint64) {
	if c <= s.Last {
		if s.Last-c >= t.window && !(mutant(mutWindowEdge) && s.Last-c == t.window) {
			return TooOld, s.Last - t.window + 1
		}
		if seq := s.ring[c&(t.window-1)]; seq != 0 {
			return Applied, seq
		}
		return New, 0
	}
	if expected != 0 {
		// An older clientSeq that had been refused may have come first.
		if next := max(expected, s.Last+1); c > next {
			return Gap, next
		}
	} else if c > s.Last+t.window { // the first frame since this primary took over
		return Gap, s.Last + 1
	}
	return New, 0
}

func (t *Sessions) check(e *order.Entry) error {
	if int(e.Session) >= len(t.slots) || !t.slots[e.Session].Open || e.ClientSeq == 0 {
		return fmt.Errorf("entry %d: session is %d, allowed: one that is open", e.Seq, e.Session)
	}
	if verdict, seq := t.Admit(&t.slots[e.Session], e.ClientSeq, 0); verdict == Applied {
		return fmt.Errorf("entry %d: session %d clientSeq %d was applied as entry %d already", e.Seq, e.Session, e.ClientSeq, seq)
	}
	return nil
}

func (t *Sessions) apply(e *order.Entry, payload []byte) {
	switch e.Kind {
	case order.KindOrder, order.KindExecute:
		t.put(e.Session, e.ClientSeq, e.Seq)
	case order.KindSessionOpen:
		t.open(e.Session, uint32(e.ClientSeq), [2]uint64{le.Uint64(payload), le.Uint64(payload[8:])}, e.Seq)
	}
}

// put records that clientSeq c became entry seq.
func (t *Sessions) put(slot uint32, c, seq uint64) {
	s, mask := &t.slots[slot], t.window-1
	before := s.sum
	s.sum -= s.place(slot)
	if s.ring == nil {
		s.ring = make([]uint64, t.window)
	}
	for x := max(s.Last+1, c-min(c, t.window)+1); x < c; x++ {
		s.set(slot, x&mask, 0)
	}
	if c > s.Last || s.Last-c < t.window {
		s.set(slot, c&mask, seq)
	}
	s.Last, s.Touched = max(s.Last, c), seq
	s.sum += s.place(slot)
	t.sum += s.sum - before
}

// set changes one place of the ring.
func (s *Session) set(slot uint32, pos, seq uint64) {
	s.sum += reply(slot, pos, seq) - reply(slot, pos, s.ring[pos])
	s.ring[pos] = seq
}

// open gives slot to the session id, replacing any previous one.
func (t *Sessions) open(slot, generation uint32, id [2]uint64, seq uint64) {
	for int(slot) >= len(t.slots) {
		t.slots = append(t.slots, Session{})
	}
	s := &t.slots[slot]
	if s.Open {
		delete(t.byID, s.ID)
	}
	before := s.sum
	*s = Session{ID: id, Generation: generation, Open: true, Touched: seq}
	s.sum = s.head(slot) + s.place(slot)
	t.sum += s.sum - before
	t.byID[id] = slot
}

// ForgetReplies is for mutants: it drops the replies but not their part of the digest.
func (t *Sessions) ForgetReplies() {
	for i := range t.slots {
		clear(t.slots[i].ring)
	}
}

func (t *Sessions) clone() Sessions {
	c := Sessions{window: t.window, sum: t.sum, slots: append([]Session(nil), t.slots...), byID: make(map[[2]uint64]uint32, len(t.byID))}
	for i := range c.slots {
		s := &c.slots[i]
		if !mutant(mutCloneShares) {
			s.ring = append([]uint64(nil), s.ring...)
		}
		if s.Open {
			c.byID[s.ID] = uint32(i)
		}
	}
	return c
}
