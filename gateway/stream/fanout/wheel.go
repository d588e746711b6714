package fanout

import "time"

// wheel finds subscriptions whose interval ends, by the millisecond.
type wheel struct {
	slots [1024][]*Sub // in the order in which they were added
	at    int64        // milliseconds that are done
	count int
}

const ms = int64(time.Millisecond)

// keepSlot is how many places a slot without subscriptions keeps.
const keepSlot = 512

// add puts a subscription, which is not in the wheel, where it is due at a time.
func (w *wheel) add(s *Sub, due int64) {
	at := max((due+ms-1)/ms, w.at+1) // not before it is due: its slot comes again late
	slot := &w.slots[at%int64(len(w.slots))]
	s.timed, s.due = true, uint32(at)
	*slot = append(*slot, s)
	w.count++
}

func (w *wheel) advance(now int64, due func(*Sub)) {
	to := now / ms
	if w.at == 0 || to-w.at > int64(len(w.slots)) {
		w.at = max(w.at, to-int64(len(w.slots)))
	}
	for w.at < to {
		w.at++
		if slot := &w.slots[w.at%int64(len(w.slots))]; len(*slot) > 0 {
			*slot = w.end(*slot, uint32(to), due)
		}
	}
}

// end is at a slot: it calls due for those of its subscriptions that are due by then, and returns the others.
func (w *wheel) end(slot []*Sub, by uint32, due func(*Sub)) []*Sub {
	kept := slot[:0]
	for i, s := range slot {
		if i%ahead == 0 {
			touchSubs(slot[i:min(i+ahead, len(slot))])
		}
		if int32(s.due-by) > 0 && !s.gone {
			kept = append(kept, s)
			continue
		}
		w.count--
		due(s)
	}
	clear(slot[len(kept):])
	if len(kept) == 0 && cap(kept) > keepSlot {
		return nil
	}
	return kept
}
