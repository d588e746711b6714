package region

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// A batch is applied as its items one after the other, all or none. It becomes an entry with
// those keys that have a value, or with all of a put.

// AdmitBatch is Admit for the batch that a client asks for, and makes it the one that may become
// the next entry: without keys that have no value, and with a reply that counts those. Its items
// are valid until the next call. It is Failed if no key has a value, and then, or if refused for
// another reason, as it was; key is the one that is to blame of an Invalid one.
func (s *State) AdmitBatch(now int64, o *order.RegionOp) (v Verdict, need Need, key []byte) {
	r := s.regions[o.Region]
	now = max(s.now, now)
	items, n, skipped := s.items[:0], uint32(0), uint32(0)
	var one order.RegionOp
	f := s.search(r)
	for rest := o.Value; len(rest) > 0; {
		rest = o.Next(&one, rest)
		held := f.find(one.Key)
		visible := s.unless(held, now)
		switch {
		case visible == 0 && one.Op != order.RegionPut:
			skipped++
			continue
		case one.Op == order.RegionPatch && !s.patches(visible, &one):
			return Invalid, Need{}, one.Key
		}
		of := s.needs(&one, held, visible)
		need.all, need.own = need.all+of.all, need.own+of.own
		if one.Op != order.RegionPut {
			items = order.AppendItem(items, o.Op, one.Key, nil)
		}
		n++
	}
	end := len(items)
	items = order.AppendSkipped(items, skipped)
	reply := items[end:]
	if s.items = items; n == 0 {
		return Failed, Need{}, nil
	}
	if len(reply) > 0 {
		need.all += int64(blocksOf(len(reply)))
	}
	if s.Lacks(o.Region, need) {
		return Full, need, nil
	}
	if o.Reply = reply; o.Op != order.RegionPutAll {
		o.Items, o.Value = n, items[:end:end]
	}
	return Admitted, need, nil
}

// checkBatch rejects a batch of patches or removes that no primary makes in this state.
func (s *State) checkBatch(e *order.Entry, o *order.RegionOp) error {
	f, now := s.search(s.regions[o.Region]), max(s.now, e.TimeNs)
	var one order.RegionOp
	for rest := o.Value; len(rest) > 0; {
		rest = o.Next(&one, rest)
		n := s.unless(f.find(one.Key), now)
		if n == 0 {
			return fmt.Errorf("entry %d: %s: key is %.60q, allowed: those that the region has", e.Seq, o.Op, one.Key)
		}
		if one.Op == order.RegionPatch && !s.patches(n, &one) {
			return fmt.Errorf("entry %d: %s: offset is %d, allowed: within the value of %.60q, and with what is written no more than the bytes of a pair", e.Seq, o.Op, o.Offset, one.Key)
		}
	}
	return nil
}

// applyBatch applies the items of a batch.
func (s *State) applyBatch(r *Region, e *order.Entry, o *order.RegionOp) {
	var one order.RegionOp
	f := s.search(r)
	for rest := o.Value; len(rest) > 0; {
		rest = o.Next(&one, rest)
		n := f.find(one.Key)
		s.change(r, e, &one, n)
		if n == 0 || one.Op == order.RegionRemove { // the tree is another one now
			f.from(r.root)
		}
	}
}

// search begins a look-up of rising keys.
func (s *State) search(r *Region) *finger {
	s.finger.a = &s.arena
	s.finger.from(r.root)
	return &s.finger
}
