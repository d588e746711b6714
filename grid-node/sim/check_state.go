package sim

// checkI18: equal logs are equal states. Whoever stores an entry behind the same entries, as
// a primary or from one, and whoever frees it has made the same state of them. The entry's
// hash says that all before it is the same.
func (w *world) checkI18(p *process) {
	if p.spoiled {
		return
	}
	_, last := p.st.Last()
	w.sameState(p, "entries stored", last, p.r.StateDigest())
	_, base := p.st.Base()
	w.sameState(p, "entries freed", base, p.r.BaseDigest())
}

func (w *world) sameState(p *process, of string, hash, digest uint64) {
	if hash == 0 {
		return // nothing, or a log that begins behind entries that never were
	}
	if known, ok := w.check.states[hash]; ok && known != digest {
		w.violation("I18", "%s has made state %016x of the %s; of the same another made %016x", p.name, digest, of, known)
	}
	w.check.states[hash] = digest
}
