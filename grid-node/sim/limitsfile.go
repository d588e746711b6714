package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The operator's file of limits (docs/adr/0102), in half of the worlds with limits. It changes some
// times: the RiskProfile gets a later generation, is made anew, or the grid is switched to another one and
// back. Each pod reads each content at a time of its own, so that a take-over finds files that are behind.

// sourced decides whether limits come from an operator, with a random source of its own.
func sourced(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x736f75726365)); p.guards != nil && p.match == nil && rng.IntN(2) == 0 {
		p.sources = rng
	}
}

const limitsContents = 8

// makeLimitsFiles makes the contents, oldest first.
func (w *world) makeLimitsFiles() {
	rng := w.profile.sources
	if rng == nil {
		return
	}
	object, since := 0, int64(1000)
	generations := map[int]int64{0: 1}
	for n := range limitsContents {
		switch {
		case n == 0:
		case rng.IntN(2) == 0:
			generations[object] += 1 + rng.Int64N(3)
		default: // another RiskProfile: one of before, or a new one, which begins with generation 1
			next := (object + 1 + rng.IntN(2)) % 3
			if generations[next] == 0 || rng.IntN(3) == 0 {
				next = 3 + n
				generations[next] = 1
			}
			object, since = next, since+1+rng.Int64N(2)
		}
		w.limitsFiles = append(w.limitsFiles, canonicalLimits(fmt.Sprintf(
			`{"maxMessages":{"perSecond":%d,"burst":%d},"source":{"grid":"g","object":"u%d","sinceMs":%d,"generation":%d}}`,
			20<<rng.IntN(4), 4+n, object, since, generations[object])))
	}
}

// scheduleLimitsFiles has every pod read every content, some later than others.
func (w *world) scheduleLimitsFiles() {
	w.scheduleFiles("limits", w.profile.sources, limitsContents, func(p *pod) *int { return &p.limitsFile }, (*process).readLimits)
}

// scheduleFiles has every pod read every content of a file, some later than others. has is which one a pod has; without an
// rng the world has no such file.
func (w *world) scheduleFiles(what string, rng *rand.Rand, contents int, has func(*pod) *int, read func(*process)) {
	if rng == nil {
		return
	}
	for n := 1; n < contents; n++ {
		at := w.profile.chaos * int64(n) / int64(contents)
		for _, p := range w.pods {
			w.after(at+rng.Int64N(2*second), func() {
				if file := has(p); *file < n {
					*file = n
					w.logf("%s has file %d of %s", p.name, n, what)
					if p.proc != nil {
						proc := p.proc
						proc.deliver(func() { read(proc) })
					}
				}
			})
		}
	}
}

func (p *process) readLimits() {
	if p.alive && !p.w.stopped {
		p.r.SetProfile(p.pod.limitsText())
		p.step(&replica.Event{Kind: replica.EventTick})
	}
}

// checkSource: I53, once a profile with its source is in force none that was given before it comes into force.
func (w *world) checkSource(m *limitsModel, e *order.Entry, text []byte) {
	if w.profile.sources == nil {
		return
	}
	file := 0
	for i := range w.limitsFiles {
		if bytes.Equal(w.limitsFiles[i], text) {
			file = i + 1
		}
	}
	if file <= m.file && m.file > 0 {
		w.violation("I53", "entry %d puts limits %d of %d in force again, those in force are %d: %s", e.Seq, file, limitsContents, m.file, text)
		return
	}
	if m.file = file; file > 0 {
		w.stats.Profiles++
	}
}

// limitsAwaited returns which copy has not the last limits that the operator gave.
func (w *world) limitsAwaited() string {
	if w.profile.sources == nil {
		return ""
	}
	last := w.limitsFiles[limitsContents-1]
	for _, p := range w.placed() {
		if text, _, _ := p.proc.r.Limits(); !bytes.Equal(text, last) {
			return fmt.Sprintf("%s has the limits %s, and was given %s", p.proc.name, text, last)
		}
	}
	return ""
}
