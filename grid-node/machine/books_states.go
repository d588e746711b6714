package machine

import "github.com/ordergrid/ordergrid/grid-node/match"

// What is known of the states of books, and since when. It is for those who watch, beside the
// state of the log: no digest and no snapshot has it, and a copy that was restored knows
// nothing older than the last operation before its snapshot.

// BookState is the state of a book. It is of all entries that are stored.
type BookState struct {
	Book  uint16
	State match.State
	Since int64 // time of the entry with which it began, Unix ns; of an auction that of its call
	Until int64 // of a halt: when it ends, 0 for never
}

// bookState is a BookState, and what follows a halt.
type bookState struct {
	since, until  int64
	state, resume match.State
}

// follow looks at the state of a book after a record by which it may have changed.
func (b *Books) follow(n uint16) {
	p, there := b.engine.Phase(n)
	if !there {
		return
	}
	s := &b.states[n]
	if s.state != p.State && (s.state != match.Call || p.State != match.Uncrossing) {
		s.since = b.engine.Now()
	}
	s.state, s.until, s.resume = p.State, p.Until, p.Resume
}

// followAll begins anew, after a restore.
func (b *Books) followAll() {
	b.states = make([]bookState, len(b.instruments))
	for n := range b.states {
		if b.states[n].since = b.engine.Now(); !mutant(mutStatesUnrestored) {
			b.follow(uint16(n))
		}
	}
}

// EachState calls f with each book at a time, in Unix ns. A halt with an end is over then, though
// the book changes with its next operation only.
func (b *Books) EachState(now int64, f func(BookState)) {
	for n := range b.states {
		s := &b.states[n]
		x := BookState{Book: uint16(n), State: s.state, Since: s.since, Until: s.until}
		if s.state == match.Halted && s.until != 0 && now >= s.until {
			x.State, x.Since, x.Until = s.resume, s.until, 0
		}
		f(x)
	}
}
