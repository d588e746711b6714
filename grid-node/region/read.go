package region

import "github.com/ordergrid/ordergrid/grid-node/order"

// Verdict is whether an operation may become an entry.
type Verdict uint8

// Verdicts.
const (
	Admitted Verdict = iota
	Failed           // the condition does not hold, or there is no value to change
	Full             // the region, or the partition, has no memory left
	Invalid          // a patch that does not fit the value
)

// Condition is what a put, patch, remove or take requires of the present value.
type Condition uint8

// Conditions.
const (
	Always    Condition = 0
	IfAbsent  Condition = 1 // of a put: there is none
	IfVersion Condition = 2 // it has this version
)

// Admit reports whether an operation of a client may become the next entry at this time, and
// the version of the present value, 0 for none. It changes nothing.
func (s *State) Admit(now int64, o *order.RegionOp, c Condition, version uint64) (v Verdict, present uint64) {
	r := s.regions[o.Region]
	if o.Op == order.RegionClear {
		return Admitted, 0
	}
	held := s.find(r.root, o.Key)
	n := s.unless(held, max(s.now, now))
	if n != 0 {
		present = s.version(n)
	}
	switch {
	case c == IfAbsent && n != 0, c == IfVersion && present != version, n == 0 && o.Op != order.RegionPut && o.Op != order.RegionKeep:
		return Failed, present
	case o.Op == order.RegionPatch && !s.patches(n, o):
		return Invalid, present
	}
	if s.Lacks(o.Region, s.needs(o, held, n)) {
		return Full, present
	}
	return Admitted, present
}

// Need is the memory that an operation takes beyond what its key has, in blocks.
type Need struct{ all, own int64 } // of all regions of the partition, with replies, and of the region

// Needs returns what an operation needs at this time.
func (s *State) Needs(now int64, o *order.RegionOp) Need {
	held := s.find(s.regions[o.Region].root, o.Key)
	return s.needs(o, held, s.unless(held, max(s.now, now)))
}

// Lacks reports whether a region has less memory left than an operation needs; the zero Need is none.
func (s *State) Lacks(region uint16, n Need) bool {
	r := s.regions[region]
	return n.all > 0 && s.used+uint64(n.all) > s.limit/blockSize || n.own > 0 && r.MaxBytes != 0 && r.Blocks+uint64(n.own) > r.MaxBytes/blockSize
}

// needs returns what an operation needs. held is the head of the key, n that of its visible
// value, 0 for none.
func (s *State) needs(o *order.RegionOp, held, n uint32) Need {
	had, takes, reply := uint64(0), uint64(0), uint64(0)
	if held != 0 {
		had = blocksOf(s.keyLen(held) + s.valueLen(held))
	}
	switch o.Op {
	case order.RegionPut:
		takes = blocksOf(len(o.Key) + len(o.Value))
	case order.RegionPatch:
		takes = blocksOf(len(o.Key) + max(s.valueLen(n), int(o.Offset)+len(o.Value)))
	case order.RegionKeep:
		takes = had
	}
	if len(o.Reply) > 0 {
		reply = blocksOf(len(o.Reply))
	}
	return Need{int64(takes+reply) - int64(had), int64(takes) - int64(had)}
}

// Value is an entry of a region.
type Value struct {
	Version  uint64 // the log entry that wrote it
	ExpireNs int64  // unix nanoseconds, 0: never
	Key      []byte
	Value    []byte
}

// Get reads the value of a key as of the last entry; key and value are appended to dst. It
// reports whether there is one.
func (s *State) Get(region uint16, key, dst []byte) (v Value, found bool) {
	return s.Present(s.now, region, key, dst)
}

// Present is Get for an operation that becomes an entry at this time: a value that has expired
// by then is none.
func (s *State) Present(now int64, region uint16, key, dst []byte) (v Value, found bool) {
	n := s.visible(s.regions[region], key, max(s.now, now))
	if n == 0 {
		return v, false
	}
	return Value{Version: s.version(n), ExpireNs: s.expire(n), Key: key, Value: s.value(dst, n)}, true
}

// Scan calls f for the entries of a region in the order of their keys: from key from on, or
// behind it, as long as f returns true. What it passes is valid during the call. visits
// bounds how many entries are looked at; it returns the last key that was, nil for the end.
func (s *State) Scan(region uint16, from []byte, behind bool, visits int, f func(v *Value) bool) (last []byte) {
	var v Value
	done := s.scan(s.regions[region].root, from, behind, func(n uint32) bool {
		if visits--; visits < 0 {
			return false
		}
		v.Key = s.key(v.Key[:0], n)
		if s.gone(n, s.now) {
			return true
		}
		v.Version, v.ExpireNs, v.Value = s.version(n), s.expire(n), s.value(v.Value[:0], n)
		return f(&v)
	})
	if done {
		return nil
	}
	return v.Key
}
