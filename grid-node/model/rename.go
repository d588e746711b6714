package model

// The protocol only compares epochs and process names. So states that differ in nothing
// but these are one: settle counts epochs from the oldest that a process is in, and
// incarnations of a pod from the first that is still referenced.

// renamed records what settle did, so that a trace can show the true names.
type renamed struct {
	epochs       uint8                       // cut off
	incarnations [maxPods][maxBorn + 1]uint8 // what was incarnation i before
	used         bool
	born         [maxPods]uint8 // the incarnation the step started, before renaming
}

// cutOff forgets the first n epochs, which no process is in.
func (s *State) cutOff(n uint8) {
	for e := uint8(1); e <= maxEpochs; e++ {
		if e+n <= maxEpochs {
			s.Config[e], s.Sent[e], s.Acked[e], s.Cut[e] = s.Config[e+n], s.Sent[e+n], s.Acked[e+n], s.Cut[e+n]
		} else {
			s.Config[e], s.Sent[e], s.Acked[e], s.Cut[e] = Config{}, 0, [maxPods]uint8{}, false
		}
	}
	for i := range s.Procs {
		if p := &s.Procs[i]; p.Epoch != 0 {
			p.Epoch -= n
		}
	}
	s.Epoch -= n
	s.renamed.epochs = n
}

// renumber closes the gaps that forgotten incarnations leave.
func (s *State) renumber() {
	var spoken [maxPods]uint16
	note := func(id *ID) {
		if *id != 0 {
			spoken[podOf(*id)] |= 1 << (int(*id-1) / maxPods)
		}
	}
	s.eachID(note)
	dense := true
	var to [maxPods][maxBorn + 1]uint8
	for pod := range spoken {
		n := uint8(0)
		for i := range to[pod] {
			if spoken[pod]>>i&1 == 1 {
				to[pod][i] = n
				s.renamed.incarnations[pod][n] = uint8(i)
				dense = dense && int(n) == i
				n++
			}
		}
		s.Born[pod] = max(n, 1) - 1
	}
	if s.renamed.used = !dense; dense {
		return
	}
	s.eachID(func(id *ID) {
		if *id != 0 {
			*id = idOf(podOf(*id), to[podOf(*id)][int(*id-1)/maxPods])
		}
	})
}

// eachID calls f with every name in the state.
func (s *State) eachID(f func(*ID)) {
	config := func(c *Config) {
		f(&c.Primary)
		for i := range c.Others {
			f(&c.Others[i])
		}
	}
	for i := range s.Procs {
		p := &s.Procs[i]
		f(&p.ID)
		if p.Role == Primary {
			for k := range p.Peers {
				f(&p.Peers[k].ID)
			}
		}
	}
	for e := uint8(1); e <= s.Epoch; e++ {
		config(&s.Config[e])
	}
	for i := range s.Puts {
		config(&s.Puts[i])
	}
	config(&s.Late)
}

// names are the true epochs and incarnations along a trace.
type names struct {
	epochs int
	real   [maxPods][maxBorn + 1]uint8
	born   [maxPods]uint8
}

func newNames() *names { return &names{} }

func (n *names) id(id ID) ID {
	if id == 0 {
		return 0
	}
	pod, i := podOf(id), int(id-1)/maxPods
	return idOf(pod, n.real[pod][i])
}

// text describes a step that led to a state.
func (n *names) text(a Action, after *State) string {
	for pod, i := range after.renamed.born {
		if i != 0 {
			n.born[pod]++
			n.real[pod][i] = n.born[pod]
		}
	}
	a.P, a.Q, a.Next.Primary = n.id(a.P), n.id(a.Q), n.id(a.Next.Primary)
	for i := range a.Next.Others {
		a.Next.Others[i] = n.id(a.Next.Others[i])
	}
	return a.text(n.epochs)
}

// follow applies what settle renamed after the step.
func (n *names) follow(r *renamed) {
	n.epochs += int(r.epochs)
	if !r.used {
		return
	}
	was := n.real
	for pod := range was {
		for i := range was[pod] {
			n.real[pod][i] = was[pod][r.incarnations[pod][i]]
		}
	}
}
