package sim

import "github.com/ordergrid/ordergrid/grid-node/replica"

// checkFreed: I14. Freed entries are downstream, and a committed entry allows it. A
// learner that begins after them has the committed history.
func (w *world) checkFreed(p *process, st *replica.Status) {
	t := w.shown(w.logLineage(st))
	base, hash := p.st.Base()
	switch {
	case base > uint64(len(t.hashes)) || t.hashes[base-1] != hash:
		w.violation("I6", "%s begins behind entry %d with hash %016x; %d are committed, and not with this one", p.name, base, hash, len(t.hashes))
	case base > t.freeable:
		w.violation("I14", "%s has freed entries up to %d; a committed entry allows up to %d", p.name, base, t.freeable)
	}
	for _, s := range w.sinks { // a later lineage's sink holds what that began with
		if first, began := t.readers[s.name]; began && s.lineage <= st.Config.Lineage && base > max(first, uint64(len(s.hashes))) {
			w.violation("I14", "%s has freed entries up to %d; the sink%s holds %d", p.name, base, s, len(s.hashes))
		}
	}
	for _, f := range w.followers { // a reader begins behind what may be freed already
		if first, began := t.readers[f.name]; f.name != "" && began && base > max(first, f.advanced) {
			w.violation("I14", "%s has freed entries up to %d; reader %s outside has said that it holds entry %d", p.name, base, f.name, f.advanced)
		}
	}
	w.checkI22(p, base)
	if w.stopped {
		return
	}
	w.stats.Freed += base - p.status.FreedSeq
	if held := uint64(len(p.log.hashes)); held < base {
		w.stats.Snapshots++
		p.log.hashes = append(p.log.hashes, t.hashes[held:base]...)
		p.log.epochs = append(p.log.epochs, t.epochs[held:base]...)
	}
}

// checkFreedRead: an answer that an entry is freed is given only where it is, and does not
// cover later orders.
func (w *world) checkFreedRead(p *process, freed uint64, lineage uint64) {
	if t := w.shown(lineage); freed == 0 || freed > t.freeable {
		w.violation("I14", "%s reports that entries up to %d are freed; a committed entry allows up to %d", p.name, freed, t.freeable)
	}
}

// freedAt reports whether "freed up to" is the complete answer about an order.
func (t *timeline) freedAt(key string, freed uint64) bool {
	seq := t.orders[key]
	return seq != 0 && seq <= freed
}

// inherit adopts what was freed before a lineage began: it can no longer be read.
func (t *timeline) inherit(from *timeline, base uint64) {
	t.hashes = append(t.hashes, from.hashes[:base]...)
	t.epochs = append(t.epochs, from.epochs[:base]...)
	t.freeable = max(t.freeable, base)
	for _, r := range from.begins {
		if r.seq <= base {
			t.readerBegins(r)
		}
	}
	for id, seq := range from.orders {
		if seq <= base {
			t.orders[id] = seq
		}
	}
	for key, seq := range from.applied {
		if seq <= base {
			t.applied[key] = seq
		}
	}
	t.fix.inherit(&from.fix, base)
	for _, o := range from.opens {
		if o.seq > base {
			break
		}
		for int(o.slot) >= len(t.sessions) {
			t.sessions = append(t.sessions, 0)
		}
		t.sessions[o.slot] = o.generation
		t.opens = append(t.opens, o)
	}
}

// cameFrom returns the timeline in which a process's freed entries were committed: the
// record of a lineage may have failed, or been overtaken by a later one.
func (w *world) cameFrom(p *process, lineage uint64) *timeline {
	base, hash := p.st.Base()
	for l := lineage - 1; l > 0; l-- {
		if t := w.timeline(l); base > 0 && base <= uint64(len(t.hashes)) && t.hashes[base-1] == hash {
			return t
		}
	}
	return &timeline{}
}
