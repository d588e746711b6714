package recorder

import (
	"cmp"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// The reported outage of a step is derived from the times of acknowledgements, by the same rule as
// in the certificate. During the step its end is now, and the present silence counts. Once it is
// over, the figure is the certificate's as soon as every session has had another acknowledgement.

// outage of a step, from a timeline that goes back to its beginning. next is when the next step
// began, 0 for none.
func (s *step) outage(t *validate.Timeline, next, now int64) time.Duration {
	if s.closed {
		return s.worst
	}
	if !s.over {
		rep := s.rep
		rep.To, rep.Healed, rep.Redundant = cmp.Or(rep.To, now), cmp.Or(rep.Healed, now), now
		return max(t.Unserved(&rep, s.fault.Lasts, 0), t.Silence(rep.Partitions, min(now, t.Until(0))))
	}
	s.worst = t.Unserved(&s.rep, s.fault.Lasts, next)
	s.closed = t.Passed(&s.rep) && (s.rep.Served != 0 || next != 0 && t.Until(next) == next)
	return s.worst
}

// outageOf is outage from the present traffic.
func (r *Recorder) outageOf(s *step, now int64) time.Duration {
	if s.closed {
		return s.worst
	}
	next := int64(0)
	for i := len(r.steps) - 1; i >= 0 && r.steps[i] != s; i-- {
		next = r.steps[i].rep.From
	}
	return s.outage(validate.LiveTimeline(r.traffic.Acks()), next, now)
}

// closeOutages finalizes what can be finalized, and drops unneeded data.
func (r *Recorder) closeOutages(now int64) {
	before, still := now, r.unclosed[:0]
	for i, s := range r.unclosed {
		r.outageOf(s, now)
		if s.closed = s.closed || s.over && i < len(r.unclosed)-maxOpen; !s.closed {
			before, still = min(before, s.rep.From), append(still, s)
		}
	}
	clear(r.unclosed[len(still):])
	r.unclosed = still
	r.traffic.Forget(before)
}
