package replica

// flushDrain reports once that everything accepted before EventDrain was
// answered. Submits are refused from then on (admitLoad); a hand-over, when
// there is somebody to hand over to, begins here.
func (r *Replica) flushDrain() {
	if !r.draining || r.drained {
		return
	}
	if r.role == RolePrimary {
		if last, _ := r.store.Last(); last != r.commit || !r.primary.reads.empty() {
			return
		}
	}
	r.drained = true
	r.out.add(Action{Kind: ActionDrained})
}
