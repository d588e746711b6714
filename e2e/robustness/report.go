package robustness

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Verdict of a run.
type Verdict string

// Verdicts.
const (
	Pass     Verdict = "PASS"     // nothing broken, goals met
	Violated Verdict = "VIOLATED" // a promise about orders was broken
	Missed   Verdict = "MISSED"   // nothing broken, but slower than promised, or orders failed
	Invalid  Verdict = "INVALID"  // the machine or the run does not allow a verdict
)

// Exit codes of the command.
const (
	ExitPass        = 0
	ExitViolated    = 1 // Violated or Missed
	ExitUsage       = 2
	ExitEnvironment = 3 // Invalid, or the environment does not allow a run
)

// Report of one run.
type Report struct {
	Scenario string    `json:"scenario"`
	Target   string    `json:"target"`
	Started  time.Time `json:"started"`
	Seed     uint64    `json:"seed"`
	Rate     int       `json:"rate"`
	Verdict  Verdict   `json:"verdict"`
	Reasons  []string  `json:"reasons"` // why it is not PASS

	Orders     validate.Orders      `json:"orders"`
	Reads      int                  `json:"reads"`   // confirmed reads answered
	Refused    int64                `json:"refused"` // confirmed reads refused by nodes that are not primary
	Partitions []validate.Partition `json:"partitions"`
	Violations []string             `json:"violations"`
	Unread     []string             `json:"unread"`

	Outage      validate.Spread `json:"outage"`    // worst session, per repetition
	FirstServed validate.Spread `json:"first"`     // partition as a whole
	Rejoin      validate.Spread `json:"rejoin"`    // worst session after service was back
	Redundant   validate.Spread `json:"redundant"` // until all copies were in sync
	Noise       validate.Spread `json:"noise"`     // worst session, per calm second
	Before      validate.Spread `json:"before"`    // p99 of orders, per repetition
	During      validate.Spread `json:"during"`
	After       validate.Spread `json:"after"`
	Reps        []Repetition    `json:"repetitions"`
	Stalls      validate.Spread `json:"stalls"` // of the recording process
	Host        history.Host    `json:"host"`
	Notes       []string        `json:"notes"`
	Goals       string          `json:"goals"`
	Took        time.Duration   `json:"tookNanoseconds"`
}

// Repetition with what clients saw of it.
type Repetition struct {
	Number     int             `json:"number"`
	What       string          `json:"what"`
	Outage     validate.Outage `json:"outage"`
	Failed     string          `json:"failed,omitempty"`
	Disturbed  bool            `json:"disturbed"`
	SilentAcks int64           `json:"silentAcks"`         // acknowledged while nothing may be
	At         time.Time       `json:"at"`                 // when the fault was injected
	NodeLogs   []string        `json:"nodeLogs,omitempty"` // where to look when the outage is longer than the goal
}

// NewReport judges a history.
func NewReport(h *history.History) (*Report, *validate.Result, error) {
	if h.Drill != nil {
		return nil, nil, errors.New("this is the history of a drill: order-probe certify judges it")
	}
	s, err := FindScenario(h.Scenario)
	if err != nil {
		return nil, nil, err
	}
	result, timeline := validate.Check(h), validate.NewTimeline(h)
	r := &Report{Scenario: h.Scenario, Target: h.Target, Started: h.Started, Seed: h.Seed, Rate: h.Rate, Goals: s.Goals.String(),
		Orders: result.Orders, Reads: result.Model.Reads, Refused: h.Refused, Partitions: result.Partitions,
		Violations: result.Violations, Unread: result.Unread, Host: h.Host, Notes: h.Notes, Noise: validate.SpreadOf(timeline.Noise())}
	var outage, first, rejoin, redundant, before, during, after, stalls []time.Duration
	for i := range h.Reps {
		rep := &h.Reps[i]
		o := timeline.Outage(rep)
		one := Repetition{Number: rep.Number, What: rep.What, Outage: o, Failed: rep.Failed, Disturbed: o.Disturbed(), SilentAcks: silentAcks(h, rep, s.Goals),
			At: h.Started.Add(time.Duration(rep.From - h.StartedAt))}
		if s.Goals.Outage > 0 && o.Worst > s.Goals.Outage {
			one.NodeLogs = h.NodeLogs
		}
		r.Reps = append(r.Reps, one)
		outage, first, rejoin, redundant = append(outage, o.Worst), append(first, o.First), append(rejoin, o.Rejoin), append(redundant, o.Redundant)
		before, during, after = append(before, o.Before.P99), append(during, o.During.P99), append(after, o.After.P99)
	}
	for _, st := range h.Stalls {
		stalls = append(stalls, time.Duration(st.Len))
	}
	r.Outage, r.FirstServed, r.Rejoin, r.Redundant = validate.SpreadOf(outage), validate.SpreadOf(first), validate.SpreadOf(rejoin), validate.SpreadOf(redundant)
	r.Before, r.During, r.After, r.Stalls = validate.SpreadOf(before), validate.SpreadOf(during), validate.SpreadOf(after), validate.SpreadOf(stalls)
	r.judge(s.Goals, result)
	return r, result, nil
}

// silentAcks counts orders sent after the fault and acknowledged before it was
// healed, where there must be none.
func silentAcks(h *history.History, rep *history.Rep, g Goals) (n int64) {
	if !g.Silent || rep.Healed == 0 {
		return 0
	}
	for i := range h.Streams {
		s := &h.Streams[i]
		if !slices.Contains(rep.Partitions, s.Partition) {
			continue
		}
		for j := range s.Orders {
			if o := &s.Orders[j]; o.Fate == load.Acked && o.T2 > rep.To && o.T3 < rep.Healed {
				n++
			}
		}
	}
	return n
}

func (r *Report) judge(g Goals, result *validate.Result) {
	say := func(v Verdict, format string, args ...any) {
		if rank(v) > rank(r.Verdict) {
			r.Verdict = v
		}
		r.Reasons = append(r.Reasons, fmt.Sprintf(format, args...))
	}
	r.Verdict = Pass
	if len(result.Violations) > 0 {
		say(Violated, "%d promises about orders were broken, see VIOLATIONS", len(result.Violations))
	}
	if len(result.Unread) > 0 {
		say(Invalid, "not everything could be read: %s", result.Unread[0])
	}
	if len(r.Reps) == 0 {
		say(Invalid, "no repetition was made")
	}
	disturbed := 0
	for i := range r.Reps {
		rep := &r.Reps[i]
		if rep.Disturbed {
			disturbed++
		}
		if rep.Failed != "" {
			say(Missed, "repetition %d: %s", rep.Number, rep.Failed)
		}
		if rep.SilentAcks > 0 {
			say(Violated, "repetition %d: %d orders were acknowledged while none may be", rep.Number, rep.SilentAcks)
		}
		if g.Steady {
			r.steady(say, &rep.Outage)
		}
	}
	if g.NoFailed && r.Orders.Failed() > 0 {
		say(Missed, "%d of %d orders were not acknowledged (refused %d, unknown %d, never sent %d)", r.Orders.Failed(), r.Orders.Created, r.Orders.Refused, r.Orders.Unknown, r.Orders.Unsent)
	}
	if g.Outage == 0 || len(r.Reps) == 0 || r.Outage.P99 <= g.Outage {
		return
	}
	excuse := validate.Excuse{Disturbed: disturbed, Of: len(r.Reps), Busy: r.Host.Busy, Noise: r.Noise.P99, Limit: g.Outage}.String()
	if excuse != "" {
		say(Invalid, "outage %s at p99, wanted %s; but %s", ms(r.Outage.P99), ms(g.Outage), excuse)
		return
	}
	say(Missed, "outage %s at p99, wanted at most %s (without a fault: %s)", ms(r.Outage.P99), ms(g.Outage), ms(r.Noise.P99))
}

// steadySlack keeps a comparison of two small figures from being one of noise.
const steadySlack = time.Millisecond

func (r *Report) steady(say func(Verdict, string, ...any), o *validate.Outage) {
	if o.During.P99 > 2*o.Before.P99+steadySlack {
		if r.Host.Busy > validate.TooBusy {
			say(Invalid, "p99 of orders was %s during the fault, %s before; but the machine was %.0f %% busy: quiet it and repeat", ms(o.During.P99), ms(o.Before.P99), r.Host.Busy)
			return
		}
		say(Missed, "p99 of orders was %s during the fault, %s before", ms(o.During.P99), ms(o.Before.P99))
	}
}

func rank(v Verdict) int { return slices.Index([]Verdict{Pass, Missed, Invalid, Violated}, v) }

// ExitCode is what the command ends with.
func (r *Report) ExitCode() int {
	switch r.Verdict {
	case Pass:
		return ExitPass
	case Invalid:
		return ExitEnvironment
	}
	return ExitViolated
}

// WriteJSON prints the report as one indented object; times are nanoseconds.
func (r *Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r) }

// Counts over all partitions.
func (r *Report) counts() (lost, duplicates, gaps, lostSunk, repeats int64) {
	for _, p := range r.Partitions {
		lost, duplicates, gaps, lostSunk, repeats = lost+p.Lost, duplicates+p.Duplicates, gaps+p.Gaps, lostSunk+p.LostSunk, repeats+p.Repeats
	}
	return
}
