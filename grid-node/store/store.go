package store

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Options of New.
type Options struct {
	// Limit in bytes of entries and indexes together; 0 for none. Not used
	// when Budget is given.
	Limit int64
	// Budget is shared with other stores of the process.
	Budget *Budget
	// SessionBytes is the replica's memory of a session beside the log; every session slot
	// is charged to the limit once. 0 charges nothing.
	SessionBytes int64
	// FixBytes is the same of a FIX session.
	FixBytes int64
	// Block is the unit in which the memory of freed entries is released, in bytes: a
	// multiple of the page size; 2 MiB when 0.
	Block int
	// Lends bounds what Lend returns, in bytes; 0 for nothing. It is not of the limit.
	Lends int64
	// Repeatable gives the index of ClOrdIDs the same memory in every process, for
	// simulations: its hash has no seed, so clients could choose keys that collide.
	Repeatable bool
}

// Store is the log of one partition.
type Store struct {
	seg    segments
	seqs   seqIndex
	keys   keyIndex
	budget *Budget

	last     uint64 // seq of the last entry, 0 if none
	lastHash uint64
	used     int64 // bytes of entries and indexes
	granted  int64 // bytes taken from the budget
	orders   uint64
	sessions int64 // slots charged
	perSlot  int64 // bytes each
	fixes    int64 // slots of FIX sessions charged
	perFix   int64 // bytes each

	base     atomic.Uint64 // entries up to here were freed
	baseHash uint64
	lowest   func() uint64 // entries from here on are read elsewhere, 0 for none
	block    int

	committed atomic.Uint64
	tailMark  atomic.Uint64 // tail as of the last SetCommitted, for Prefault
	pagesMark atomic.Uint32 // pages of the ClOrdID index, likewise
	ahead     prefault
	lends     lender
}

// New makes an empty store.
func New(o Options) (*Store, error) {
	s := &Store{budget: o.Budget, perSlot: o.SessionBytes, perFix: o.FixBytes, block: o.Block}
	if s.block == 0 {
		s.block = defaultBlock
	}
	if s.budget == nil {
		s.budget = NewBudget(o.Limit)
	}
	s.keys.same = o.Repeatable
	if err := s.keys.open(); err != nil {
		return nil, err
	}
	s.used = s.keys.bytes()
	s.lends.open(o.Lends)
	return s, nil
}

// Last returns the seq and hash of the last entry; 0, 0 when the store is empty.
func (s *Store) Last() (seq, hash uint64) { return s.last, s.lastHash }

// Orders returns the number of entries of kind order that are held.
func (s *Store) Orders() uint64 { return s.orders }

// Used returns the memory of entries and indexes, in bytes.
func (s *Store) Used() int64 { return s.used }

// Limit returns the memory limit in bytes, 0 or less for none. It is shared when the
// budget is.
func (s *Store) Limit() int64 { return s.budget.limit }

// BudgetUsed returns the memory of all stores of the budget, in bytes.
func (s *Store) BudgetUsed() int64 { return s.budget.Used() }

// Short reports whether only the reserve of AppendEntry is left.
func (s *Store) Short() bool {
	b := s.budget
	return b.limit > 0 && b.Used() > b.limit-b.limit/headroom
}

// Append adds an entry with the next seq. It fills e.Size, e.Seq and e.PrevHash. The
// payload is copied. Orders and sessions may use 31/32 of the limit, what moves positions and
// frees 63/64, and other entries what is midway: freeing must not lack memory because of them.
// Errors are *ErrCapacity or from the operating system; then nothing was written.
func (s *Store) Append(e *order.Entry, payload []byte) error {
	return s.AppendHinted(e, payload, s.hintOf(e, payload), 0)
}

// AppendHinted is Append of an order with the hint of its ClOrdID. room is how many bytes the
// replica may Hold for the entry once it is stored: without them it is refused.
func (s *Store) AppendHinted(e *order.Entry, payload []byte, hint uint32, room int64) error {
	size := order.HeaderSize + len(payload)
	if len(payload) > order.MaxPayload {
		return fmt.Errorf("order store: payload has %d bytes, allowed: at most %d", len(payload), order.MaxPayload)
	}
	if err := s.reserve(size, e, hint, s.beside(e, payload)+room, s.spare(e.Kind)); err != nil {
		return err
	}
	e.Size, e.Seq, e.PrevHash = uint32(size), s.last+1, s.lastHash
	b := s.seg.at(uint32(s.seg.tail >> 3))
	e.Put(b)
	copy(b[order.HeaderSize:size], payload)
	s.publish(b[:size:size], e, hint)
	return nil
}

// AppendEntry adds an entry made elsewhere; e is its decoded header. Errors are *ErrGap,
// *ErrChain, *ErrCapacity, or from the operating system; then nothing was written.
func (s *Store) AppendEntry(entry []byte, e *order.Entry) error {
	return s.AppendEntryHinted(entry, e, s.hintOf(e, entry[order.HeaderSize:]))
}

// AppendEntryHinted is AppendEntry with the hint of the entry's ClOrdID; the hint is
// ignored for other kinds than orders.
func (s *Store) AppendEntryHinted(entry []byte, e *order.Entry, hint uint32) error {
	if e.Seq != s.last+1 {
		return &ErrGap{Expected: s.last + 1, Got: e.Seq}
	}
	if e.PrevHash != s.lastHash {
		return &ErrChain{Seq: e.Seq, Want: s.lastHash, Got: e.PrevHash}
	}
	if err := s.reserve(len(entry), e, hint, s.beside(e, entry[order.HeaderSize:]), 0); err != nil {
		return err
	}
	b := s.seg.at(uint32(s.seg.tail >> 3))[:len(entry):len(entry)]
	copy(b, entry)
	s.publish(b, e, hint)
	return nil
}

func (s *Store) hintOf(e *order.Entry, payload []byte) uint32 {
	if !e.Kind.IsOrder() {
		return 0
	}
	hint := s.keys.hash(payload[e.Fields.ClOrdIDOff:][:e.Fields.ClOrdIDLen])
	if e.Flags&order.FlagFix != 0 {
		return ofFix(hint, e.Session, e.Flags)
	}
	return hint
}

// spare returns what Append of this kind leaves of the limit.
func (s *Store) spare(k order.Kind) int64 {
	spare := s.budget.limit / headroom
	switch k {
	case order.KindOrder, order.KindExecute, order.KindSessionOpen:
		return spare
	case order.KindNoop, order.KindCursor, order.KindReader, order.KindTruncate:
		return spare / 2
	}
	return spare - spare/4
}

// headroom is the part of the limit (one in 32) that Append leaves to AppendEntry: a
// replica must be able to store whatever its primary accepted, though its index, seeded
// differently, may be a little larger.
const headroom = 32

// reserve reserves space for an entry in all structures, so that publish cannot fail, and
// leaves spare bytes of the limit untouched. beside is what the replica takes for it.
func (s *Store) reserve(size int, e *order.Entry, hint uint32, beside, spare int64) error {
	need := int64(order.Padded(size)) + 4 + beside
	split := int64(0)
	if e.Kind.IsOrder() {
		split = s.keys.growth(hint)
	}
	if over := s.used + need + split - s.granted; over > 0 {
		if err := s.grow(over, spare); err != nil {
			return err
		}
	}
	wasted := s.seg.wasted
	if err := s.seg.reserve(order.Padded(size)); err != nil {
		return err
	}
	s.used += int64(s.seg.wasted - wasted)
	if err := s.seqs.reserve(s.last + 1); err != nil {
		return err
	}
	if split == 0 { // most orders find room in their page
		return nil
	}
	before := s.keys.bytes()
	err := s.keys.reserve(hint)
	s.used += s.keys.bytes() - before
	return err
}

// grow takes at least n more bytes from the budget.
func (s *Store) grow(n, spare int64) error {
	for _, g := range [2]int64{max(n, grant), n} { // near the limit, to the last byte
		if s.budget.take(g, spare) {
			s.granted += g
			return nil
		}
	}
	return &ErrCapacity{Used: s.budget.Used(), Limit: s.budget.limit}
}

// publish adds the entry that was written at the tail to the log.
func (s *Store) publish(b []byte, e *order.Entry, fp uint32) {
	pos := uint32(s.seg.tail >> 3)
	s.last++
	s.seqs.put(s.last, pos)
	if e.Kind.IsOrder() {
		s.keys.insert(fp, pos)
		s.orders++
	}
	s.took(e, b[order.HeaderSize:])
	n := order.Padded(len(b))
	s.seg.tail += uint64(n)
	s.used += int64(n) + 4
	s.lastHash = order.Hash(b)
}

// SetCommitted makes entries up to seq readable for other goroutines. It never falls.
func (s *Store) SetCommitted(seq uint64) {
	if seq > s.last {
		panic(fmt.Sprintf("order store: committed %d, last is %d", seq, s.last)) // the caller's bug; readers would read garbage
	}
	if seq > s.committed.Load() {
		s.tailMark.Store(s.seg.tail)
		if s.pagesMark.Load() != s.keys.pages {
			s.pagesMark.Store(s.keys.pages)
		}
		s.committed.Store(seq)
	}
}

// Committed returns the seq up to which any goroutine may read.
func (s *Store) Committed() uint64 { return s.committed.Load() }

// Get returns entry seq without padding, or nil if it is not held. The bytes do not change
// until the entry is freed. Writer only; others use Read.
func (s *Store) Get(seq uint64) []byte {
	if seq <= s.base.Load() || seq > s.last {
		return nil
	}
	return s.entry(seq)
}

// Read is Get for any goroutine: nil beyond Committed.
func (s *Store) Read(seq uint64) []byte {
	if seq <= s.base.Load() || seq > s.committed.Load() {
		return nil
	}
	return s.entry(seq)
}

func (s *Store) entry(seq uint64) []byte { return s.entryAt(s.seqs.get(seq)) }

func (s *Store) entryAt(pos uint32) []byte {
	b := s.seg.at(pos)
	n := sizeOf(b)
	return b[:n:n]
}

// HashAt returns the hash of entry seq; 0 for seq 0, and for a freed entry other than the
// base.
func (s *Store) HashAt(seq uint64) uint64 {
	switch base := s.base.Load(); {
	case seq == base && seq != 0:
		return s.baseHash
	case seq < base:
		return 0
	case seq == 0 || seq > s.last:
		return 0
	case seq == s.last:
		return s.lastHash
	}
	return order.PrevHash(s.seg.at(s.seqs.get(seq + 1)))
}

// FindClOrdID returns the seq of the order with this ClOrdID. Writer only.
func (s *Store) FindClOrdID(id []byte) (seq uint64, ok bool) {
	p, ok := s.FindHinted(s.keys.hash(id), id)
	if !ok {
		return 0, false
	}
	return order.Seq(s.At(p)), true
}

func (s *Store) keyAt(pos uint32, key []byte) bool {
	return bytes.Equal(order.ClOrdID(s.seg.at(pos)), key)
}

func sizeOf(b []byte) int {
	return int(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}

// Close releases the memory. No slice of the store may be used after it.
func (s *Store) Close() {
	s.seg.close()
	s.seqs.close()
	s.keys.close()
	s.lends.close()
	s.budget.give(s.granted)
	s.granted, s.used, s.last, s.lastHash, s.orders, s.sessions, s.fixes = 0, 0, 0, 0, 0, 0, 0
	s.committed.Store(0)
	s.base.Store(0)
	s.baseHash = 0
}
