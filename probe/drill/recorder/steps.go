package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
)

// step is one fault. All fields are guarded by Recorder.mu.
type step struct {
	index   int
	asked   api.Step
	rep     history.Rep
	fault   history.Fault
	gone    map[string]bool // members that must not count for redundancy any more
	since   int64           // redundant without them since; 0: not
	missing string
	over    bool
	worst   time.Duration  // see outage.go
	closed  bool           // worst is final
	counts  traffic.Counts // when it began
	latency traffic.Latencies
	// changes of configuration reported by nodes, see changes.go.
	changes map[changeKey]history.Change
}

// Bounds of a step's fields.
const (
	maxSteps = 1 << 16
	maxOpen  = 16 // at once
	maxText  = 4096
	maxPods  = 4096
	// longestCalm bounds the calm time before a fault that is compared with it.
	longestCalm = int64(30 * time.Second)
)

// errors of steps, which become HTTP statuses.
var (
	errUnknownStep = errors.New("no step of this index was begun")
	errConflict    = errors.New("conflict")
)

// each calls f for the steps under way: one fault may begin during another.
func (r *Recorder) each(f func(*step)) {
	still := r.open[:0]
	for _, s := range r.open {
		if !s.over {
			f(s)
		}
		if !s.over {
			still = append(still, s)
		}
	}
	clear(r.open[len(still):])
	r.open = still
}

// underWay reports whether there is a step that is not over.
func (r *Recorder) underWay() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) > 0
}

func (r *Recorder) find(index int) *step {
	for i := len(r.steps) - 1; i >= 0; i-- {
		if r.steps[i].index == index {
			return r.steps[i]
		}
	}
	return nil
}

// Begin begins a step.
func (r *Recorder) Begin(index int, asked api.Step) (*api.Record, error) {
	if err := checkStep(index, &asked); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	parts, err := r.named(asked.Partitions)
	if s := r.find(index); s != nil {
		if !reflect.DeepEqual(s.asked, asked) {
			return nil, fmt.Errorf("%w: step %d was begun as %q, and differs", errConflict, index, s.asked.What)
		}
		return r.record(s), nil
	}
	if r.phase != api.Running {
		return nil, fmt.Errorf("%w: a step can begin while the recorder is %s, it is %s", errConflict, api.Running, r.phase)
	}
	if err != nil {
		return nil, err
	}
	if len(r.steps) >= maxSteps {
		return nil, fmt.Errorf("%w: %d steps were begun, and that is the limit", errConflict, maxSteps)
	}
	r.each(func(*step) {}) // drops those that are over
	if len(r.open) >= maxOpen {
		return nil, fmt.Errorf("%w: %d steps are under way, and that is the limit", errConflict, maxOpen)
	}
	now := clock.Now()
	s := &step{index: index, asked: asked, counts: r.traffic.Counts(), latency: r.traffic.Latencies(), changes: map[changeKey]history.Change{}}
	ready := r.calmSince()
	if ready == 0 {
		ready = now
	}
	s.rep = history.Rep{Number: len(r.steps) + 1, What: cmp.Or(asked.What, asked.Type), Partitions: parts, Ready: max(ready, now-longestCalm, r.lastOver()), From: now}
	if len(asked.Pods) == 1 {
		s.rep.Pod = asked.Pods[0]
	}
	s.fault = history.Fault{Index: index, Step: asked, Lasts: api.Lasts(asked.Type), Witness: api.Witness{State: api.Pending}}
	if api.EndsProcess(asked.Type) {
		s.gone = members(r.view.rows, asked.Pods)
	}
	if len(r.open) == 0 {
		r.h.Calm = append(r.h.Calm, history.Span{From: s.rep.Ready, To: now})
		r.traffic.ResetGap()
	}
	r.steps, r.open, r.unclosed = append(r.steps, s), append(r.open, s), append(r.unclosed, s)
	r.cfg.Say("step %d begins: %s", index, s.rep.What)
	return r.record(s), nil
}

// lastOver is when the previous step was over: its time after is not this one's time before.
func (r *Recorder) lastOver() int64 {
	if n := len(r.steps); n > 0 {
		return r.steps[n-1].end()
	}
	return 0
}

// end is when the last condition of a step was met.
func (s *step) end() int64 { return max(s.rep.Redundant, s.rep.Served, s.rep.Healed, s.rep.To) }

func checkStep(index int, s *api.Step) error {
	switch {
	case index < 0 || index >= maxSteps:
		return fmt.Errorf("index %d: must be 0 to %d", index, maxSteps-1)
	case s.Type == "":
		return errors.New(`type "": name the type of the fault, such as PodKill`)
	case s.Repetition < 0:
		return fmt.Errorf("repetition %d: must be 0 or more", s.Repetition)
	case len(s.Pods) > maxPods || len(s.Partitions) > maxPods:
		return fmt.Errorf("%d pods and %d partitions: must be at most %d", len(s.Pods), len(s.Partitions), maxPods)
	}
	for name, text := range map[string]string{"fault": s.Fault, "type": s.Type, "provider": s.Provider, "what": s.What} {
		if len(text) > maxText {
			return fmt.Errorf("%s: %d bytes, must be at most %d", name, len(text), maxText)
		}
	}
	if e := s.Expect.FailedOrders; e != "" && e != api.FailedOrdersNone && e != api.FailedOrdersAllowed {
		return fmt.Errorf("expect.failedOrders %.40q: must be %s or %s", e, api.FailedOrdersNone, api.FailedOrdersAllowed)
	}
	if e := s.Expect.Loss; e != "" && e != api.LossNever && e != api.LossWarned {
		return fmt.Errorf("expect.loss %.40q: must be %s or %s", e, api.LossNever, api.LossWarned)
	}
	return nil
}

// members are the ids of the pods' members in all partitions; of all pods if none is named.
func members(rows []row, pods []string) map[string]bool {
	out := map[string]bool{}
	for _, r := range rows {
		for _, m := range r.Members {
			if len(pods) == 0 {
				out[m.ID] = true
			}
			for _, p := range pods {
				if podOf(m.ID) == p {
					out[m.ID] = true
				}
			}
		}
	}
	return out
}

// Tell handles an event of a step.
func (r *Recorder) Tell(index int, e api.Event, n api.Note) (*api.Record, error) {
	if len(n.Message) > maxText || len(n.Witness.Message) > maxText {
		return nil, fmt.Errorf("message: %d bytes, witness.message: %d bytes, must be at most %d", len(n.Message), len(n.Witness.Message), maxText)
	}
	switch n.Witness.State {
	case "", api.Pending, api.Seen, api.NotSeen:
	default:
		return nil, fmt.Errorf("witness.state %.40q: must be %s, %s or %s", n.Witness.State, api.Pending, api.Seen, api.NotSeen)
	}
	now := clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.find(index)
	if s == nil {
		return nil, fmt.Errorf("step %d: %w", index, errUnknownStep)
	}
	if r.phase != api.Running {
		return nil, fmt.Errorf("%w: the recorder is %s", errConflict, r.phase)
	}
	switch e {
	case api.Injected:
		s.rep.To = cmp.Or(s.rep.To, now)
	case api.Recovered:
		s.rep.To = cmp.Or(s.rep.To, now) // a provider that reports both at once
		s.rep.Healed = cmp.Or(s.rep.Healed, now)
	case api.Abandoned:
		if !s.over {
			s.abandon(cmp.Or(n.Message, "abandoned without a reason"), now)
		}
	default:
		return nil, fmt.Errorf("event %.40q: must be %s, %s or %s", e, api.Injected, api.Recovered, api.Abandoned)
	}
	if n.Message != "" {
		s.fault.Message = n.Message
	}
	if s.fault.Witness.State != api.Seen && n.Witness.State != "" {
		s.fault.Witness = n.Witness
	}
	s.look(r, now)
	return r.record(s), nil
}

// Step returns the state of a step.
func (r *Recorder) Step(index int) (*api.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.find(index)
	if s == nil {
		return nil, fmt.Errorf("step %d: %w", index, errUnknownStep)
	}
	return r.record(s), nil
}

func (s *step) lacks(missing string) { s.since, s.missing = 0, missing }

// waits returns what a step waits for.
func (s *step) waits() string {
	switch {
	case s.rep.To == 0:
		return "the fault was not injected"
	case s.rep.Healed == 0:
		return "the fault was not recovered"
	case s.rep.Served == 0:
		return "a session was still without service"
	}
	return "not redundant: " + s.missing
}

func (s *step) abandon(why string, now int64) {
	if s.rep.To == 0 {
		s.rep.To = now
	}
	s.over, s.rep.Failed = true, why
}

// look checks whether service and redundancy are back.
func (s *step) look(r *Recorder, now int64) {
	if s.over || s.rep.To == 0 {
		return
	}
	if s.rep.Served == 0 && r.traffic.Served(s.rep.Partitions) > s.rep.To {
		s.rep.Served = now
	}
	if s.rep.Healed == 0 {
		return
	}
	ended := s.rep.To
	if s.fault.Lasts {
		ended = s.rep.Healed
	}
	if s.since != 0 {
		s.rep.Redundant = max(s.since, ended)
	} else {
		s.rep.Redundant = 0
	}
	if s.over = s.rep.Served != 0 && s.rep.Redundant != 0; s.over {
		r.cfg.Say("step %d is over: longest gap %s, redundant %s after the fault", s.index, r.outageOf(s, now).Round(100*time.Microsecond), time.Duration(s.rep.Redundant-ended).Round(time.Millisecond))
	}
}
