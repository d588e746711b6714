package certificate

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// judge determines the verdict.
type judge struct {
	h       *history.History
	c       *Certificate
	lost    []validate.Order
	warned  map[validate.Order]bool
	reasons *[]reason
}

type reason struct {
	verdict Verdict
	text    string
}

func rank(v Verdict) int { return slices.Index([]Verdict{Pass, Missed, Invalid, Violated}, v) }

func (j judge) say(v Verdict, format string, args ...any) {
	*j.reasons = append(*j.reasons, reason{v, fmt.Sprintf(format, args...)})
}

func (j judge) run() {
	j.reasons = &[]reason{}
	j.losses()
	j.proof()
	j.course()
	for i := range j.c.Steps {
		j.step(i)
	}
	slices.SortStableFunc(*j.reasons, func(a, b reason) int { return cmp.Compare(rank(b.verdict), rank(a.verdict)) })
	j.c.Verdict = Pass
	for _, r := range *j.reasons {
		j.c.Verdict = max2(j.c.Verdict, r.verdict)
		j.c.Reasons = append(j.c.Reasons, r.text)
	}
}

func max2(a, b Verdict) Verdict {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// losses checks which orders are there, and which are not.
func (j judge) losses() {
	l := &j.c.Ledger
	excused := j.excused()
	if n := l.Lost - excused; n > 0 {
		j.say(Violated, "%d acknowledged orders are lost: in no copy in sync, and not downstream%s", n, j.because(excused))
	}
	for _, x := range []struct {
		n    int64
		what string
	}{
		{l.Duplicated, "orders are there twice"},
		{l.OutOfOrder, "entries are out of order"},
		{l.RejectedFound, "orders were refused or never sent, and are there"},
		{l.Misplaced, "orders are not where their receipts say"},
		{l.Corrupt, "orders are not what was sent"},
		{l.RepeatedReceipts, "receipts name the place of another order"},
	} {
		if x.n > 0 {
			j.say(Violated, "%d %s", x.n, x.what)
		}
	}
	if x := j.c.Executions; x != nil {
		j.executions(x)
	}
	if x := j.c.Functions; x != nil {
		j.functions(x)
	}
	if n := j.c.Linear.Violations; n > 0 {
		j.say(Violated, "%d answers to clients cannot be explained by one log, see VIOLATIONS", n)
	}
	missing, gaps, violations := l.MissingInCopies, l.Gaps, j.c.Violations
	if l.Lost == excused && j.allowed() {
		// Downstream orders of a partition without any process are in no copy, and its log cannot
		// be compared with anything: that is what the excuse is for.
		missing, gaps, violations = j.beside(missing, gaps, violations)
	}
	if missing > 0 {
		j.say(Violated, "%d acknowledged orders are not in every copy in sync", missing)
	}
	if l.MissingDownstream > 0 {
		j.say(Violated, "%d acknowledged orders are not downstream", l.MissingDownstream)
	}
	if gaps > 0 {
		j.say(Violated, "%d sequence numbers are missing", gaps)
	}
	if n := len(violations); n > 0 {
		j.say(Violated, "%d guarantees about orders were violated, see VIOLATIONS", n)
	}
}

// executions checks what became of trades.
func (j judge) executions(x *Executions) {
	if x.Lost > 0 {
		j.say(Violated, "%d executions that sessions were told are lost: not in the log, or there as other ones", x.Lost)
	}
	if x.Different > 0 {
		j.say(Violated, "%d entries were executed otherwise than by price and time, see EXECUTIONS", x.Different)
	}
	if x.Unsummed > 0 {
		j.say(Violated, "%d orders, positions or sums of executions do not add up, see EXECUTIONS", x.Unsummed)
	}
	switch k := x.Control; k.Result {
	case ControlPassed:
	case ControlImpossible:
		j.say(Invalid, "there is no negative control of executions: no order trades with two others, so none could be forged")
	default:
		j.say(Invalid, "the negative control of executions failed: %d trades were forged, and %d found", k.Done, k.Found)
	}
}

// functions checks what functions decided, and what is there of their records.
func (j judge) functions(x *Functions) {
	for _, y := range []struct {
		n    int64
		what string
	}{
		{x.Unstamped, "orders do not have the stamp of the functions that nodes decide by"},
		{x.Different, "entries have other records of functions in another copy in sync"},
		{x.Missing, "orders have no record of an audit trail, or one of a call that failed"},
		{x.Broken, "records of an audit trail are not linked to the one before"},
	} {
		if y.n > 0 {
			j.say(Violated, "%d %s, see FUNCTIONS", y.n, y.what)
		}
	}
	inForce := slices.ContainsFunc(j.h.Functions.Post, func(f history.PostFunction) bool { return !f.Changed })
	switch k := x.Control; {
	case k.Result == ControlFailed:
		j.say(Invalid, "the negative control of records failed: %d were forged, and %d found", k.Done, k.Found)
	case k.Result == ControlImpossible && inForce:
		j.say(Invalid, "there is no negative control of records: no copy has four of them, so none could be forged")
	}
}

// allowed reports whether the drill, or a fault of it, expects losses that were warned of.
func (j judge) allowed() bool {
	return j.h.Drill.Context.Expect.Loss == api.LossWarned || slices.ContainsFunc(j.h.Drill.Faults, func(f history.Fault) bool { return f.Step.Expect.Loss == api.LossWarned })
}

// beside leaves out violations of partitions that no process holds any more.
func (j judge) beside(missing, gaps int64, violations []string) (int64, int64, []string) {
	rest := *j.h
	rest.Partitions = slices.DeleteFunc(slices.Clone(j.h.Partitions), func(p wire.PartitionID) bool { return gone(j.h, p) })
	if len(rest.Partitions) == len(j.h.Partitions) {
		return missing, gaps, violations
	}
	r, a := validate.Check(&rest), validate.Take(&rest)
	return a.MissingInCopies, a.Gaps, r.Violations
}

// gone reports whether no process holds the log of a partition: there is none, or only new ones
// without any of it.
func gone(h *history.History, p wire.PartitionID) bool {
	if h.NoHolder(p) {
		return true
	}
	empty := false
	for i := range h.Logs {
		l := &h.Logs[i]
		switch {
		case l.Partition != p || !l.InSync:
		case l.Error != "" || len(l.Entries) > 0:
			return false
		default:
			empty = l.Short != ""
		}
	}
	return empty
}

// because adds to losses what would have excused them.
func (j judge) because(excused int64) string {
	switch {
	case j.c.Replicas < 2:
		return "; the grid has one copy of every order, so every lost process loses data"
	case excused > 0:
		return fmt.Sprintf("; %d more are lost that the grid had warned of", excused)
	case j.c.Ledger.LostWarned > 0:
		return fmt.Sprintf("; of %d the grid had warned, and the drill does not allow it (expect.loss)", j.c.Ledger.LostWarned)
	}
	return ""
}

// excused counts the lost orders that the grid had warned of, and that the drill, or the next
// fault, allows to be lost then.
func (j judge) excused() (n int64) {
	for _, at := range j.lost {
		if !j.warned[at] {
			continue
		}
		o := &j.h.Streams[at.Stream].Orders[at.Index]
		next := sort.Search(len(j.h.Reps), func(i int) bool { return j.h.Reps[i].From > o.T3 })
		allowed := j.h.Drill.Context.Expect.Loss
		for i := max(0, next-1); i <= next && i < len(j.h.Reps); i++ { // the fault it was acknowledged in, or the one after
			if j.h.Drill.Faults[i].Step.Expect.Loss == api.LossWarned {
				allowed = api.LossWarned
			}
		}
		if allowed == api.LossWarned {
			n++
		}
	}
	return n
}

// proof checks that the certificate proves anything.
func (j judge) proof() {
	c := j.c
	if len(c.Unread) > 0 {
		j.say(Invalid, "not everything could be read: %s", c.Unread[0])
	}
	if c.Ledger.Unjudged > 0 {
		j.say(Invalid, "%d acknowledged orders are of partitions of which no copy in sync could be read", c.Ledger.Unjudged)
	}
	switch k := c.Control; k.Result {
	case ControlPassed:
	case ControlImpossible:
		j.say(Invalid, "there is no negative control: no acknowledged order is in every copy and downstream, so none could be removed")
	default:
		j.say(Invalid, "the negative control failed: %d orders were removed and %d found lost, %d were duplicated and %d found duplicated", k.Dropped, k.Lost, k.Repeated, k.Duplicated)
	}
	if c.Orders.Acknowledged == 0 {
		j.say(Invalid, "no order was acknowledged")
	}
}

// course checks that the drill ran as planned.
func (j judge) course() {
	d := j.h.Drill
	if d.Full {
		j.say(Invalid, "ledger full: the traffic ended with %d orders, which is what the recorder has memory for (--max-orders); give it more memory, or the drill a lower rate or fewer repetitions", d.MaxOrders)
	}
	if d.Aborted != "" {
		j.say(Invalid, "the drill was ended early: %s", d.Aborted)
	}
	switch done := len(j.c.Steps); {
	case done == 0:
		j.say(Invalid, "no fault was injected")
	case done < d.Context.StepsAsked:
		j.say(Invalid, "%d of %d faults were begun", done, d.Context.StepsAsked)
	}
}

// step compares a fault with its expectations.
func (j judge) step(i int) {
	rep, f, s := &j.h.Reps[i], &j.h.Drill.Faults[i], &j.c.Steps[i]
	e := expected(j.h.Drill.Context.Expect, f.Step.Expect)
	say := func(v Verdict, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		j.say(v, "step %d (%s): %s", s.Index, cmp.Or(s.Fault, s.Type), text)
		s.Reasons = append(s.Reasons, text)
		switch {
		case v == Invalid:
			s.Outcome = StepInvalid
		case s.Outcome == StepPassed:
			s.Outcome = StepMissed
		}
	}
	if s.Witness.State != api.Seen {
		say(Invalid, "the fault was not shown to have hit (witness %s: %s)", s.Witness.State, cmp.Or(s.Witness.Message, "nothing was said"))
	}
	if rep.Failed != "" {
		say(Missed, "%s", rep.Failed)
	} else if rep.Served == 0 {
		say(Missed, "service was not back")
	}
	if rep.Failed == "" && rep.Redundant == 0 {
		say(Missed, "redundancy was not back")
	}
	excuse := func(limit time.Duration) string {
		return validate.Excuse{Disturbed: count(s.Disturbed), Of: 1, Busy: j.c.Host.Busy, Noise: j.c.Noise.P99, Limit: limit}.String()
	}
	late := func(what string, got, limit time.Duration, why string) {
		switch {
		case limit == 0 || got <= limit:
		case why != "":
			say(Invalid, "%s %s ms, wanted at most %s ms; but %s", what, validate.Millis(got), validate.Millis(limit), why)
		default:
			say(Missed, "%s %s ms, wanted at most %s ms", what, validate.Millis(got), validate.Millis(limit))
		}
	}
	late("outage", s.Outage, e.Outage, excuse(e.Outage))
	busy := validate.Excuse{Of: 1, Busy: j.c.Host.Busy}.String()
	late("p99 of orders before the fault", s.Before.P99, e.SteadyP99, busy)
	late("p99 of orders during the fault", s.During.P99, e.P99, busy)
	late("p99 of orders after the fault", s.After.P99, e.SteadyP99, busy)
	late("redundant after", s.RedundantAfter, e.RedundantWithin, "")
	if e.FailedOrders == api.FailedOrdersNone && s.FailedOrders > 0 {
		say(Missed, "%d orders were not acknowledged, allowed: none", s.FailedOrders)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// expected is the fault's expectation, otherwise the drill's.
func expected(drill, fault api.Expect) api.Expect {
	return api.Expect{Outage: cmp.Or(fault.Outage, drill.Outage), P99: cmp.Or(fault.P99, drill.P99), SteadyP99: cmp.Or(fault.SteadyP99, drill.SteadyP99), RedundantWithin: cmp.Or(fault.RedundantWithin, drill.RedundantWithin),
		FailedOrders: cmp.Or(fault.FailedOrders, drill.FailedOrders), Loss: cmp.Or(fault.Loss, drill.Loss)}
}
