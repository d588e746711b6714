package transport

import "sync/atomic"

// postQueue passes functions to the loop: a lock-free stack, so neither side can block the
// other. It is unbounded by design; everything posted here is bounded by its own protocol
// (one outstanding call per arbiter request, scrape, probe).
type postQueue struct {
	head atomic.Pointer[posted]
	done atomic.Bool
}

type posted struct {
	f    func()
	next *posted
}

// push reports whether it was accepted and whether the loop must be woken.
func (q *postQueue) push(f func()) (ok, wake bool) {
	if q.done.Load() {
		return false, false
	}
	p := &posted{f: f}
	for {
		// Once swapped in, p belongs to the loop: remember what was before it here.
		before := q.head.Load()
		p.next = before
		if q.head.CompareAndSwap(before, p) {
			return true, before == nil
		}
	}
}

// run executes everything pushed so far in the order of pushing.
func (q *postQueue) run() {
	p := q.head.Swap(nil)
	var ordered *posted
	for p != nil {
		p.next, ordered, p = ordered, p, p.next
	}
	for ; ordered != nil; ordered = ordered.next {
		ordered.f()
	}
}
