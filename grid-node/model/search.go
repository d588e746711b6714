package model

import (
	"errors"
	"fmt"
	"time"
)

// Options of a search.
type Options struct {
	Only     Invariant    // check this one alone; Holds: all
	Except   Invariant    // skip this one; Holds: none
	MaxBytes int64        // of the table of states; 0 no limit
	Progress func(Result) // called now and then, nil for never
	Healthy  bool         // check I13, too: it keeps all steps, about four bytes each
}

// Result of a search.
type Result struct {
	States      uint32 // different ones reached
	Transitions uint64
	Depth       int // steps to the farthest state
	Bytes       int64
	Took        time.Duration
	Actions     [kinds]uint64 // how often each kind of step was possible

	AllGone uint32 // states without a live in-sync member: an administrator has to decide
	Stuck   uint32 // with Options.Healthy: states with a live in-sync member and no way back to full health

	Broken Invariant // Holds if none
	Trace  []Step    // the shortest way there
}

// Step of a trace.
type Step struct {
	Action Action
	Text   string
	Fault  bool
	After  State
}

// ErrMemory is for a search that was not finished: the states it did not reach are
// unchecked.
var ErrMemory = errors.New("more states than fit into the memory allowed")

// ErrTooSmall is for a search that met a state that exceeds the sizes of State.
var ErrTooSmall = errors.New("the sizes in state.go are too small for these bounds")

// search is a breadth-first search in progress.
type search struct {
	spec  *Spec
	opt   Options
	t     *table
	res   Result
	edges *edges
	start time.Time

	now          uint32 // state being expanded
	last, broken uint32 // the violating step: from, to
	found        bool
}

// Search tries every behaviour of the protocol within its bounds.
func Search(m *Spec, opt Options) (Result, error) {
	if err := m.Check(); err != nil {
		return Result{}, err
	}
	r := &search{spec: m, opt: opt, t: newTable(), start: time.Now()}
	if opt.Healthy {
		r.edges = &edges{}
	}
	first := m.initial()
	m.settle(&first)
	k := first.pack()
	r.t.add(&k, 0)
	err := r.run()
	r.measure()
	if err == nil && !r.found && opt.Healthy && (opt.Only == Holds || opt.Only == I13) {
		if r.res.Stuck = r.stuck(); r.res.Stuck > 0 {
			r.res.Broken = I13
		}
		r.measure()
	}
	if r.res.Broken != Holds {
		r.res.Trace = r.trace()
	}
	return r.res, err
}

func (r *search) run() (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case tooSmall:
			err = fmt.Errorf("%w: %s, in a state reached after %d others", ErrTooSmall, v, r.now)
		default:
			panic(v)
		}
	}()
	levelEnd := uint32(1)
	for r.now = 0; r.now < r.t.n && !r.found; r.now++ {
		if r.now == levelEnd {
			levelEnd = r.t.n
			r.res.Depth++
		}
		s := r.t.at(r.now).unpack()
		if s.allGone() {
			r.res.AllGone++
		}
		r.edges.next()
		r.spec.next(&s, r.reach)
		if r.now&0xffff == 0 {
			r.measure()
			if r.opt.Progress != nil {
				r.opt.Progress(r.res)
			}
			if r.opt.MaxBytes > 0 && r.res.Bytes > r.opt.MaxBytes {
				return fmt.Errorf("%w: %d MiB after %d states", ErrMemory, r.res.Bytes>>20, r.t.n)
			}
		}
	}
	return nil
}

// reach adds a state that one step leads to.
func (r *search) reach(a Action, s *State) {
	if r.found {
		return
	}
	r.res.Transitions++
	r.res.Actions[a.Kind]++
	k := s.pack()
	n, isNew := r.t.add(&k, r.now)
	r.edges.to(n, a)
	if !isNew && s.Broken == Holds {
		return
	}
	if v := r.spec.check(s, r.opt.Only, r.opt.Except); v != Holds {
		r.found, r.res.Broken = true, v
		r.last, r.broken = r.now, n
	}
}

func (r *search) measure() {
	r.res.States, r.res.Bytes, r.res.Took = r.t.n, r.t.bytes()+r.edges.bytes(), time.Since(r.start)
}

// trace walks back from the violating state, and forward again to name the steps. The last
// step is the violating one: from the state that was expanded.
func (r *search) trace() []Step {
	path := []uint32{}
	for n := r.last; ; n = r.t.parent(n) {
		path = append([]uint32{n}, path...)
		if n == 0 {
			break
		}
	}
	names, out := newNames(), []Step(nil)
	for i, n := range path {
		target := *r.t.at(r.broken)
		last := i == len(path)-1
		if !last {
			target = *r.t.at(path[i+1])
		}
		s := r.t.at(n).unpack()
		var step *Step
		r.spec.next(&s, func(a Action, t *State) {
			if step != nil || t.pack() != target || last && r.found && r.spec.check(t, r.opt.Only, r.opt.Except) == Holds {
				return
			}
			step = &Step{Action: a, Text: names.text(a, t), Fault: a.fault(), After: *t}
		})
		names.follow(&step.After.renamed)
		out = append(out, *step)
	}
	return out
}
