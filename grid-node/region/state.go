package region

import (
	"fmt"
	"runtime"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Limits of a step: what one entry does beside its own operation.
const (
	expireBatch = 64   // expired entries that go with an entry
	drainBatch  = 1024 // blocks of cleared regions that are freed with an entry, and one more for each item: more than it can take
)

// State is the state of all regions of a partition after an entry.
type State struct {
	arena
	limit   uint64 // bytes
	seed    uint64
	now     int64  // the latest time of an entry of kind region
	last    uint64 // the last entry of kind region
	config  uint64 // the entry of limit, 0: before this copy began; not part of the state
	regions []*Region
	taken   []replies // by session slot
	garbage []uint32  // roots of trees that were cleared
	kept    uint64    // sum of what was taken
	keyBuf  []byte    // scratch
	valBuf  []byte
	items   []byte
	finger  finger
	readers []*Reader

	restoring *restoring // nil unless a snapshot is being restored
	twin      *State     // of a restore: what Clone returns
}

// Region is one of the regions. Its fields are read-only.
type Region struct {
	Name     string
	MaxBytes uint64         // what its entries may take, in whole blocks; 0: no bound of its own
	LifeNs   int64          // of a value whose put names no other; 0: it does not expire
	Source   *limits.Source // which state of which GridRegion its bounds are of; nil: no entry says so
	Entries  uint64
	Blocks   uint64 // that they take, of BlockSize bytes
	Expired  uint64 // entries whose time was over, since this copy began; not part of the state
	Defined  uint64 // the entry that gave it its bounds, 0: before this copy began; not part of the state
	sum      uint64 // of its entries
	era      uint32 // how often it was cleared here: older entries are being freed
	root     uint32
	heap     []uint32 // of the heads that expire, the next one first
}

// replies are the values that a session has taken and not said that it received, by rising
// number.
type replies struct{ heads []uint32 }

// New returns a partition without regions; the first entry is its RegionConfig.
func New() *State {
	s := &State{}
	runtime.SetFinalizer(s, func(s *State) { s.close() }) // its blocks are outside the Go heap
	return s
}

// Is reports whether the region has the bounds of a configuration.
func (r *Region) Is(s *Spec) bool { return r.MaxBytes == uint64(s.MaxBytes) && r.LifeNs == s.LifeNs }

// Ready reports whether the bounds of the partition are known.
func (s *State) Ready() bool { return s.limit > 0 }

// Limit returns how many bytes all regions may take.
func (s *State) Limit() uint64 { return s.limit }

// Configured returns the entry of the limit, 0 if it is from before this copy began.
func (s *State) Configured() uint64 { return s.config }

// Seed returns the seed of the trees.
func (s *State) Seed() uint64 { return s.seed }

// Used returns how many bytes are taken, with replies and what is being cleared.
func (s *State) Used() uint64 { return s.used * blockSize }

// Last returns the last entry of kind region.
func (s *State) Last() uint64 { return s.last }

// Now returns the latest time of an entry of kind region: what expires by then is gone.
func (s *State) Now() int64 { return s.now }

// Regions returns the regions by number. They must not be modified.
func (s *State) Regions() []*Region { return s.regions }

// Find returns the number of a region.
func (s *State) Find(name []byte) (uint16, bool) {
	for i, r := range s.regions {
		if r.Name == string(name) {
			return uint16(i), true
		}
	}
	return 0, false
}

// NextExpiry returns when the next entry expires, 0 for none.
func (s *State) NextExpiry() int64 {
	next := int64(0)
	for _, r := range s.regions {
		if len(r.heap) > 0 {
			if t := s.expire(r.heap[0]); next == 0 || t < next {
				next = t
			}
		}
	}
	return next
}

// Busy reports whether memory of cleared regions is still to be freed, which entries do.
func (s *State) Busy() bool { return len(s.garbage) > 0 }

// Check rejects an entry that no primary makes in this state. It changes nothing.
func (s *State) Check(e *order.Entry, o *order.RegionOp) error {
	fail := func(field string, v uint64, allowed string) error {
		return fmt.Errorf("entry %d: %s: %s is %d, allowed: %s", e.Seq, o.Op, field, v, allowed)
	}
	switch {
	case o.Op == order.RegionConfig:
		if le.Uint64(o.Value) == 0 || s.limit != 0 && le.Uint64(o.Value[8:]) != s.seed {
			return fail("bytes", le.Uint64(o.Value), "1 or more, and the seed of the first one")
		}
		return nil
	case !s.Ready():
		return fail("op", uint64(o.Op), "config, as the first one of a partition")
	case o.Op == order.RegionDefine:
		at, known := s.Find(o.Key)
		if known && at != o.Region || !known && int(o.Region) != len(s.regions) || int64(le.Uint64(o.Value[8:])) < 0 {
			return fail("region", uint64(o.Region), "the number that the name has, or the next one")
		}
		if _, err := limits.ParseSource(o.Value[16:]); err != nil {
			return fmt.Errorf("entry %d: %s: %w", e.Seq, o.Op, err)
		}
		return nil
	case o.Op == order.RegionTick:
		return nil
	case int(o.Region) >= len(s.regions):
		return fail("region", uint64(o.Region), "one that is defined")
	case o.Op == order.RegionPut || o.Op == order.RegionClear || o.Op == order.RegionKeep || o.Op == order.RegionPutAll:
		return nil
	case o.Op.Batch():
		return s.checkBatch(e, o)
	}
	n := s.visible(s.regions[o.Region], o.Key, max(s.now, e.TimeNs))
	if n == 0 {
		return fail("key", uint64(len(o.Key)), "one that the region has")
	}
	if o.Op == order.RegionPatch && !s.patches(n, o) {
		return fail("offset", uint64(o.Offset), "within the value, and with it no more than the bytes of a pair")
	}
	return nil
}

// patches reports whether a patch fits a value: it may go beyond its end, not begin there.
func (s *State) patches(n uint32, o *order.RegionOp) bool {
	return int(o.Offset) <= s.valueLen(n) && s.keyLen(n)+int(o.Offset)+len(o.Value) <= order.MaxRegionPair
}

// visible returns the head of a key, 0 for none or one that is expired at this time.
func (s *State) visible(r *Region, key []byte, now int64) uint32 {
	return s.unless(s.find(r.root, key), now)
}

// unless returns head n, 0 if it is expired at this time.
func (s *State) unless(n uint32, now int64) uint32 {
	if n != 0 && s.gone(n, now) {
		return 0
	}
	return n
}

func (s *State) gone(n uint32, now int64) bool {
	t := s.expire(n)
	return t != 0 && t <= now
}

// Apply applies the next entry of kind region, which must pass Check.
func (s *State) Apply(e *order.Entry, o *order.RegionOp) {
	s.now, s.last = max(s.now, e.TimeNs), e.Seq
	s.drain(drainBatch + int(o.Items))
	switch o.Op {
	case order.RegionConfig:
		s.limit, s.seed, s.config = le.Uint64(o.Value), le.Uint64(o.Value[8:]), e.Seq
		return
	case order.RegionDefine:
		s.define(e, o)
		return
	case order.RegionTick:
		s.expired(0)
		return
	}
	s.received(e.Session, o.Received)
	r := s.regions[o.Region]
	if o.Op.Batch() {
		s.applyBatch(r, e, o)
	} else {
		s.change(r, e, o, s.find(r.root, o.Key))
	}
	if len(o.Reply) > 0 {
		s.reply(e, o)
	}
	s.expired(int(o.Items))
}

// change applies what an operation of a client does to a key, whose head is n, or to all.
func (s *State) change(r *Region, e *order.Entry, o *order.RegionOp, n uint32) {
	switch o.Op {
	case order.RegionPut:
		s.put(r, n, e.Seq, o)
	case order.RegionPatch:
		s.patch(r, n, e.Seq, o)
	case order.RegionRemove:
		s.detach(r, n, o.Key)
		s.release(n)
	case order.RegionTake:
		s.detach(r, n, o.Key)
		s.keep(n, e)
	case order.RegionClear:
		s.wipe(r)
	}
}

func (s *State) define(e *order.Entry, o *order.RegionOp) {
	if int(o.Region) == len(s.regions) {
		s.regions = append(s.regions, &Region{Name: string(o.Key)})
	}
	r := s.regions[o.Region]
	r.MaxBytes, r.LifeNs, r.Defined = le.Uint64(o.Value), int64(le.Uint64(o.Value[8:])), e.Seq
	r.Source, _ = limits.ParseSource(o.Value[16:]) // Check has read it
}

// put sets the value of a key, whose head is n, 0 for none.
func (s *State) put(r *Region, n uint32, seq uint64, o *order.RegionOp) {
	if n == 0 {
		n = s.alloc(blockHead)
		b := s.at(n)
		le.PutUint16(b[52:], o.Region)
		le.PutUint32(b[16:], s.priority(o.Key))
		le.PutUint32(b[56:], r.era)
		s.fill(n, o.Key, nil)
		r.root = s.insert(r.root, n, o.Key)
		r.Entries++
		r.Blocks += blocksOf(len(o.Key))
	} else {
		s.changes(n)
		r.sum -= s.sum(n)
	}
	s.write(r, n, seq, o.ExpireNs, o.Region, o.Key, o.Value)
}

// patch writes over a part of a value, or goes on behind its end.
func (s *State) patch(r *Region, n uint32, seq uint64, o *order.RegionOp) {
	s.changes(n)
	v := s.value(s.valBuf[:0], n)
	if grow := int(o.Offset) + len(o.Value) - len(v); grow > 0 {
		v = append(v, make([]byte, grow)...)
	}
	copy(v[o.Offset:], o.Value)
	s.valBuf = v
	r.sum -= s.sum(n)
	s.write(r, n, seq, s.expire(n), o.Region, o.Key, v)
}

// write gives head n, whose sum is not counted, a version, a time and a value.
func (s *State) write(r *Region, n uint32, seq uint64, expire int64, region uint16, key, value []byte) {
	s.drop(r, n)
	r.Blocks -= blocksOf(len(key) + s.valueLen(n))
	s.fill(n, key, value)
	r.Blocks += blocksOf(len(key) + len(value))
	b := s.at(n)
	le.PutUint64(b[24:], seq)
	le.PutUint64(b[32:], uint64(expire))
	le.PutUint64(b[40:], sumOf(blockHead, region, 0, seq, uint64(expire), key, value))
	r.sum += s.sum(n)
	if expire != 0 {
		s.push(r, n)
	}
}

func (s *State) priority(key []byte) uint32 {
	return uint32(mix(xxhash.Sum64(key), s.seed, 1) >> 32)
}

// detach takes head n out of its region.
func (s *State) detach(r *Region, n uint32, key []byte) {
	s.changes(n)
	s.drop(r, n)
	r.root = s.remove(r.root, key)
	r.Entries--
	r.Blocks -= blocksOf(len(key) + s.valueLen(n))
	r.sum -= s.sum(n)
}

// wipe drops all entries of a region at once. Their memory is freed with entries to come.
func (s *State) wipe(r *Region) {
	s.cleared(r)
	if r.root != 0 {
		s.garbage = append(s.garbage, r.root)
	}
	r.root, r.heap, r.Entries, r.Blocks, r.sum, r.era = 0, nil, 0, 0, 0, r.era+1
}

// drain frees some blocks of cleared trees.
func (s *State) drain(blocks int) {
	for len(s.garbage) > 0 && blocks > 0 {
		n := s.garbage[len(s.garbage)-1]
		s.garbage = s.garbage[:len(s.garbage)-1]
		for _, below := range [2]uint32{s.right(n), s.left(n)} {
			if below != 0 {
				s.garbage = append(s.garbage, below)
			}
		}
		before := s.used
		s.release(n)
		blocks -= int(before - s.used)
	}
}

// expired removes entries whose time is over, some with each entry, and as many more as it has
// items. Others are not seen.
func (s *State) expired(items int) {
	left := expireBatch + items
	for _, r := range s.regions {
		for len(r.heap) > 0 && left > 0 && s.expire(r.heap[0]) <= s.now {
			n := r.heap[0]
			s.keyBuf = s.key(s.keyBuf[:0], n)
			s.detach(r, n, s.keyBuf)
			s.release(n)
			r.Expired++
			left--
		}
	}
}
