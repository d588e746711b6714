package certificate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// Orders of the negative control, if there are enough.
const (
	controlDropped  = 64
	controlRepeated = 16
)

// maxExamples of lost orders are in a certificate; their number is exact.
const maxExamples = 16

// New judges the history of a drill. sha256 is the check sum of its file.
func New(h *history.History, sha256 string) (*Certificate, error) {
	if h.Drill == nil {
		return nil, fmt.Errorf("history of scenario %q: not of a drill; `robustness validate` judges those", h.Scenario)
	}
	d, result, accounts, timeline := h.Drill, validate.Check(h), validate.Take(h), validate.NewTimeline(h)
	c := &Certificate{Schema: Schema, Drill: d.Context.Drill, UID: d.Context.UID, Grid: d.Context.Grid, Suite: d.Context.Suite, Seed: d.Context.Seed,
		Started: h.Started.UTC(), Judged: d.Judged.UTC(), Took: d.Judged.Sub(h.Started).Round(time.Millisecond), Replicas: h.Replicas, Rate: h.Rate, HistorySHA256: sha256,
		Violations: orEmpty(result.Violations), Unread: orEmpty(result.Unread), Partitions: result.Partitions, Host: h.Host,
		Context: d.Context, Recorder: d.Recorder, Notes: orEmpty(h.Notes), Reasons: []string{}}
	o := result.Orders
	c.Orders = Orders{Created: o.Created, Acknowledged: o.Acked, Rejected: o.Refused, Unknown: o.Unknown, Unsent: o.Unsent, OneCopy: oneCopy(h), Direct: o.Direct}
	warned := warnedLosses(h, accounts.Lost)
	c.Ledger = ledgerOf(h, accounts, warned)
	seed := uint64(d.Context.Seed)
	k := validate.NegativeControl(h, accounts, controlDropped, controlRepeated, seed)
	c.Control = Control{Result: ControlFailed, Dropped: k.Dropped, Lost: k.Lost, Repeated: k.Repeated, Duplicated: k.Duplicated, Gaps: k.Gaps, Seed: seed}
	switch {
	case k.OK():
		c.Control.Result = ControlPassed
	case k.Dropped == 0:
		c.Control.Result = ControlImpossible
	}
	if x := validate.TakeExecutions(h, seed); x != nil {
		c.executions(x)
	}
	if x := validate.TakeFunctions(h, seed); x != nil {
		c.functions(x)
	}
	c.Linear = Linear{Windows: len(validate.Windows(h)), Orders: result.Model.Orders, Reads: result.Model.Reads, Refused: h.Refused, Result: Linearizable, Violations: len(result.Model.Violations)}
	if len(result.Model.Violations) > 0 {
		c.Linear.Result = NotExplicable
	}
	c.steps(h, timeline)
	judge{h: h, c: c, lost: accounts.Lost, warned: warned}.run()
	return c, nil
}

// orEmpty keeps null out of the JSON.
func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func oneCopy(h *history.History) (n int64) {
	for s := range h.Streams {
		for i := range h.Streams[s].Orders {
			if o := &h.Streams[s].Orders[i]; h.Streams[s].Node < 0 && o.Seq != 0 && o.Copies == 1 {
				n++
			}
		}
	}
	return n
}

func ledgerOf(h *history.History, a *validate.Accounts, warned map[validate.Order]bool) Ledger {
	l := Ledger{Copies: a.Places, Sink: cmp.Or(h.Drill.NoSink, fmt.Sprintf("%d files of %d partitions", len(h.Sinks), a.Sinks)), Downstream: a.Downstream,
		Lost: int64(len(a.Lost)), MissingInCopies: a.MissingInCopies, MissingDownstream: a.MissingDownstream, Duplicated: a.Duplicated, Gaps: a.Gaps,
		OutOfOrder: a.OutOfOrder, UnknownFound: a.UnknownFound, UnknownAbsent: a.UnknownAbsent, RejectedFound: a.RefusedFound, Misplaced: a.Misplaced,
		Corrupt: a.Corrupt, RepeatedReceipts: a.RepeatedReceipts, Unjudged: a.Unjudged}
	for _, at := range a.Lost {
		s := &h.Streams[at.Stream]
		o := &s.Orders[at.Index]
		if warned[at] {
			l.LostWarned++
		}
		if len(l.LostExamples) < maxExamples {
			l.LostExamples = append(l.LostExamples, Lost{ClOrdID: s.ID.ClOrdID(at.Index), Partition: s.Partition.String(), Seq: o.Seq, Epoch: o.Epoch, Copies: o.Copies,
				At: time.Duration(o.T3 - h.StartedAt), Warned: warned[at]})
		}
	}
	return l
}

func (c *Certificate) executions(x *validate.Executions) {
	e := &Executions{Copies: x.Copies, Orders: x.Orders, Executions: x.Records, Trades: x.Trades, Auctions: x.Auctions, Resting: x.Resting, Told: x.Told, Lost: x.Lost,
		Different: x.Different, Unsummed: x.Unsummed, LostExamples: x.LostExamples, Findings: x.Words}
	e.Control = ExecutionControl{Result: ControlFailed, Done: x.Control.Done, Found: x.Control.Found}
	switch {
	case x.Control.OK():
		e.Control.Result = ControlPassed
	case x.Control.Done == 0:
		e.Control.Result = ControlImpossible
	}
	c.Executions, c.Unread = e, append(c.Unread, x.Unread...)
}

func (c *Certificate) functions(x *validate.Functions) {
	f := &Functions{Pre: orEmpty(x.Pre), Chains: orEmpty(x.Chains), Stamp: x.Stamp, Decided: x.Decided, Unstamped: x.Unstamped, Post: orEmpty(x.Post), Copies: x.Copies, Records: x.Records,
		Failed: x.Failed, Linked: x.Linked, Different: x.Different, Missing: x.Missing, Broken: x.Broken, LeftOut: x.LeftOut, Findings: x.Words}
	for _, v := range x.Values {
		f.Values = append(f.Values, SetValue(v))
	}
	f.Control = FunctionControl{Result: ControlFailed, Done: x.Control.Done, Found: x.Control.Found}
	switch {
	case x.Control.OK():
		f.Control.Result = ControlPassed
	case x.Control.Done == 0:
		f.Control.Result = ControlImpossible
	}
	c.Functions, c.Unread, c.Notes = f, append(c.Unread, x.Unread...), slices.Concat(c.Notes, x.Notes)
}

// steps evaluates every fault of the history.
func (c *Certificate) steps(h *history.History, t *validate.Timeline) {
	var outage, first, redundant, before, during, after, stalls []time.Duration
	c.Steps = []Step{}
	for i := range h.Reps {
		s := stepOf(h, i, t)
		c.Steps = append(c.Steps, s)
		outage, first, redundant = append(outage, s.Outage), append(first, s.FirstServed), append(redundant, s.RedundantAfter)
		before, during, after = append(before, s.Before.P99), append(during, s.During.P99), append(after, s.After.P99)
	}
	for _, st := range h.Stalls {
		stalls = append(stalls, time.Duration(st.Len))
	}
	c.Outage, c.FirstServed, c.Redundant = validate.SpreadOf(outage), validate.SpreadOf(first), validate.SpreadOf(redundant)
	c.P99Before, c.P99During, c.P99After = validate.SpreadOf(before), validate.SpreadOf(during), validate.SpreadOf(after)
	c.Noise, c.Stalls = validate.SpreadOf(t.Noise()), validate.SpreadOf(stalls)
}

func stepOf(h *history.History, i int, t *validate.Timeline) Step {
	rep, f := &h.Reps[i], &h.Drill.Faults[i]
	o := t.Outage(rep)
	s := Step{Index: f.Index, Repetition: f.Step.Repetition, Fault: f.Step.Fault, Type: f.Step.Type, Provider: f.Step.Provider, What: rep.What,
		Targets: orEmpty(f.Step.Pods), At: h.Started.Add(time.Duration(rep.From - h.StartedAt)).UTC(), Witness: f.Witness, Outcome: StepPassed, Message: f.Message,
		FirstServed: o.First, Stall: o.Stall, Disturbed: o.Disturbed(), FailedOrders: o.Failed, Before: o.Before, During: o.During, After: o.After}
	if s.Witness.State == "" {
		s.Witness.State = api.NotSeen
	}
	s.Outage = t.Unserved(rep, f.Lasts, nextOf(h, i))
	if rep.Served == 0 {
		s.unserved(h, i, t)
	}
	end := rep.To
	if f.Lasts && rep.Healed > 0 {
		s.Lasted, end = time.Duration(rep.Healed-rep.To), rep.Healed
	}
	if rep.Redundant > 0 {
		s.RedundantAfter = max(0, time.Duration(rep.Redundant-end))
	}
	s.Partitions = []string{}
	for _, p := range rep.Partitions {
		s.Partitions = append(s.Partitions, p.String())
	}
	s.Timeline = timelineOf(rep, f, &o)
	s.Detected, s.TakenOver = reaction(f.Changes, beginOf(rep, &o))
	return s
}

// beginOf is the origin of a step's times: the last acknowledgement before the longest gap, or the
// beginning of the step if there was none in it.
func beginOf(rep *history.Rep, o *validate.Outage) int64 {
	if o.Gap.From != 0 && o.Gap.To > rep.From {
		return o.Gap.From
	}
	return rep.From
}

// reaction is the time until a node first removed a failed one, and until the last configuration
// without it was written.
func reaction(changes []history.Change, begin int64) (detected, takenOver time.Duration) {
	for i := range changes {
		ch := &changes[i]
		if ch.Cause != nodestatus.CauseTakeOver && ch.Cause != nodestatus.CauseShrink || ch.Accepted <= begin {
			continue
		}
		if d := time.Duration(ch.Suspected - begin); ch.Suspected > begin && (detected == 0 || d < detected) {
			detected = d
		}
		takenOver = max(takenOver, time.Duration(ch.Accepted-begin))
	}
	return detected, takenOver
}

// unserved sets the figures of a step after which service never came back, up to the next step or
// the end: they are lower bounds.
func (s *Step) unserved(h *history.History, i int, t *validate.Timeline) {
	rep := &h.Reps[i]
	until := t.Until(nextOf(h, i))
	s.FirstServed = max(s.FirstServed, t.Silence(rep.Partitions, until))
	s.During, s.FailedOrders = t.Latency(history.Span{From: rep.From, To: until + 1})
}

// nextOf is when the step after one began; 0: there is none.
func nextOf(h *history.History, i int) int64 {
	if i+1 < len(h.Reps) {
		return h.Reps[i+1].From
	}
	return 0
}

// newPrimary are the causes of a change that lead to another primary.
var newPrimary = map[string]bool{nodestatus.CauseClaim: true, nodestatus.CauseTakeOver: true, nodestatus.CauseHandOver: true, nodestatus.CauseAcceptLoss: true}

// timelineOf merges the observations of the recorder and the reports of the nodes.
func timelineOf(rep *history.Rep, f *history.Fault, o *validate.Outage) []Moment {
	zero := beginOf(rep, o)
	var out []Moment
	add := func(at int64, what, partition, who string) {
		if at != 0 {
			out = append(out, Moment{At: time.Duration(at - zero), What: what, Partition: partition, Who: who})
		}
	}
	if o.Gap.From != 0 && o.Gap.To > rep.From {
		add(o.Gap.From, "last acknowledgement before the longest gap", "", "recorder")
		add(o.Gap.To, "first acknowledgement after it", "", "recorder")
	}
	add(rep.From, "step begins to inject", "", "recorder")
	add(rep.To, "provider says: injected", "", "recorder")
	add(rep.Healed, "provider says: recovered", "", "recorder")
	add(rep.Served, "every session has had a new order acknowledged", "", "recorder")
	add(rep.Redundant, "redundant again", "", "recorder")
	for i := range f.Changes {
		ch := &f.Changes[i]
		how := "connection ended"
		if !ch.Reset && ch.Silent > 0 {
			how = fmt.Sprintf("no heartbeat for %s ms", validate.Millis(time.Duration(ch.Silent)))
		}
		add(ch.Suspected, "detected: "+how, ch.Partition, ch.By)
		add(ch.Proposed, fmt.Sprintf("%s to epoch %d requested (CAS)", ch.Cause, ch.Epoch), ch.Partition, ch.By)
		add(ch.Accepted, fmt.Sprintf("%s to epoch %d accepted, %d in sync", ch.Cause, ch.Epoch, ch.InSync), ch.Partition, ch.By)
		if newPrimary[ch.Cause] {
			add(ch.Serving, "serving as primary", ch.Partition, ch.By)
			add(ch.FirstOrder, "first order acknowledged", ch.Partition, ch.By)
		}
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	return shortened(out)
}

// maxMoments of a timeline are in the certificate; the history has all changes.
const maxMoments = 64

// shortened keeps the recorder's observations and the first reports of nodes: a step that hits a
// machine with many partitions makes hundreds.
func shortened(all []Moment) []Moment {
	more := len(all) - maxMoments
	if more <= 0 {
		return all
	}
	out := slices.Clone(all)
	for i := len(out) - 1; i >= 0 && more > 0; i-- {
		if out[i].Who != "recorder" {
			out, more = slices.Delete(out, i, i+1), more-1
		}
	}
	return out
}
