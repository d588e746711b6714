package sim

// checkI18: equal logs are equal states. Storing an entry after the same entries, as a
// primary or from one, and freeing it, gives the same state. The entry's hash shows that
// all entries before it are the same.
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
		return // nothing, or a log that begins after entries that never existed
	}
	if known, ok := w.check.states[hash]; ok && known != digest {
		w.violation("I18", "%s has state %016x after the %s; another has %016x after the same", p.name, digest, of, known)
	}
	w.check.states[hash] = digest
}
