package certificate

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/report"
)

// maxLines of violations and steps' timelines in the text; the JSON has them all.
const maxLines = 40

// WriteText prints the certificate. docs/drills.md explains it.
func (c *Certificate) WriteText(w io.Writer) error {
	p := report.NewPage(w)
	p.Say("LOSS CERTIFICATE  %s\n", strings.ToUpper(string(c.Verdict)))
	for _, r := range c.Reasons {
		p.Say("  %s\n", r)
	}
	t := report.NewList("", "")
	row := func(name, format string, args ...any) { t.Add(name, fmt.Sprintf(format, args...)) }
	row("drill", "%s  suite %s  seed %d", cmp.Or(c.Drill, "-"), cmp.Or(c.Suite, "-"), c.Seed)
	row("grid", "%s  %d copies of every order", cmp.Or(c.Grid, "-"), c.Replicas)
	row("time", "%s, %s, %d orders/s", c.Started.Format("2006-01-02 15:04:05 MST"), c.Took.Round(time.Second), c.Rate)
	o, l := c.Orders, c.Ledger
	row("orders", "created %d, acknowledged %d, rejected %d, unknown %d, never sent %d; %d more to single nodes", o.Created, o.Acknowledged, o.Rejected, o.Unknown, o.Unsent, o.Direct)
	row("found", "%d copies of logs compared; downstream %d (%s)", l.Copies, l.Downstream, l.Sink)
	row("LOST", "%d%s", l.Lost, c.warnedText())
	row("missing", "%d not in every copy, %d not downstream", l.MissingInCopies, l.MissingDownstream)
	row("duplicated", "%d", l.Duplicated)
	row("gaps", "%d", l.Gaps)
	row("out of order", "%d", l.OutOfOrder)
	row("else", "misplaced %d, corrupt %d, rejected and there %d, receipts twice %d; without an answer: %d there, %d not", l.Misplaced, l.Corrupt, l.RejectedFound, l.RepeatedReceipts, l.UnknownFound, l.UnknownAbsent)
	row("one copy only", "%d acknowledged orders had such a receipt", o.OneCopy)
	row("control", "%s: %d removed, %d found lost; %d duplicated, %d found duplicated", c.Control.Result, c.Control.Dropped, c.Control.Lost, c.Control.Repeated, c.Control.Duplicated)
	if x := c.Executions; x != nil {
		row("executions", "%d copies compared: %d orders, %d executions, %d trades, %d auctions; %d orders rest", x.Copies, x.Orders, x.Executions, x.Trades, x.Auctions, x.Resting)
		row("LOST of them", "%d of %d that sessions were told", x.Lost, x.Told)
		row("wrong of them", "%d entries not by price and time, %d sums that do not add up", x.Different, x.Unsummed)
		row("their control", "%s: %d trades forged, %d found", x.Control.Result, x.Control.Done, x.Control.Found)
	}
	if x := c.Functions; x != nil {
		for _, r := range x.Rows() {
			row(r[0], "%s", r[1])
		}
	}
	row("clients saw", "%s: %d orders and %d confirmed reads in %d times of faults; %d reads refused by nodes that are not primary", c.Linear.Result, c.Linear.Orders, c.Linear.Reads, c.Linear.Windows, c.Linear.Refused)
	h := c.Host
	row("recorder", "%d cores, busy %.0f %%, itself %.0f %%; own stalls over 2 ms: %d, longest %s ms; longest gap without a fault %s ms", h.Cores, h.Busy, h.Own, c.Stalls.N, ms(c.Stalls.Max), ms(c.Noise.Max))
	p.Table(t)
	p.Table(validate.SpreadTable(fmt.Sprintf("ms over %d steps", len(c.Steps)), "outage, worst session", c.Outage, "outage, first served", c.FirstServed, "redundant after the fault", c.Redundant,
		"p99 of orders before", c.P99Before, "p99 of orders during", c.P99During, "p99 of orders after", c.P99After, "longest gap without a fault", c.Noise))
	p.Table(c.stepTable())
	for i := range c.Steps {
		if i < maxLines {
			p.Table(c.Steps[i].timeline())
		}
	}
	if n := len(c.Steps) - maxLines; n > 0 {
		p.Say("\n%d more steps: their timelines are in the JSON\n", n)
	}
	p.List("LOST ORDERS", lostLines(l.LostExamples, l.Lost), maxLines)
	if x := c.Executions; x != nil {
		p.List("LOST EXECUTIONS", x.LostExamples, maxLines)
		p.List("EXECUTIONS", x.Findings, maxLines)
	}
	if x := c.Functions; x != nil {
		p.List("FUNCTIONS", x.Findings, maxLines)
	}
	p.List("VIOLATIONS", c.Violations, maxLines)
	p.List("NOT READ", c.Unread, maxLines)
	p.List("notes", c.Notes, maxLines)
	p.Say("\nhistory sha256 %s\n", c.HistorySHA256)
	return p.Err()
}

func (c *Certificate) warnedText() string {
	if c.Ledger.LostWarned == 0 {
		return ""
	}
	return fmt.Sprintf(", of %d the grid had warned: one copy by their receipts, and reported as not redundant", c.Ledger.LostWarned)
}

func ms(d time.Duration) string { return validate.Millis(d) }

func (c *Certificate) stepTable() *report.Table {
	t := report.NewList("step", "fault", "provider", "witness", "outcome", "outage", "first", "lasted", "redundant", "p99 before", "during", "after", "failed", "what")
	for i := range c.Steps {
		s := &c.Steps[i]
		mark := ""
		if s.Disturbed {
			mark = " !"
		}
		t.Add(s.Index, s.Type, cmp.Or(s.Provider, "-"), s.Witness.State, s.Outcome, ms(s.Outage)+mark, ms(s.FirstServed),
			ms(s.Lasted), ms(s.RedundantAfter), ms(s.Before.P99), ms(s.During.P99), ms(s.After.P99), s.FailedOrders, s.What)
	}
	return t
}

func (s *Step) timeline() *report.Table {
	t := report.NewList("", "", "", "")
	t.Title = fmt.Sprintf("step %d, %s", s.Index, s.What)
	if s.Witness.Message != "" {
		t.Title += "; witness: " + s.Witness.Message
	}
	for _, m := range s.Timeline {
		t.Add(fmt.Sprintf("  %10.2f ms", float64(m.At)/1e6), m.What, m.Partition, m.Who)
	}
	return t
}

func lostLines(examples []Lost, all int64) (out []string) {
	for _, e := range examples {
		warned := ""
		if e.Warned {
			warned = ", warned"
		}
		out = append(out, fmt.Sprintf("%s  %s/%d epoch %d, receipt of %d copies%s, acknowledged after %s", e.ClOrdID, e.Partition, e.Seq, e.Epoch, e.Copies, warned, e.At.Round(time.Millisecond)))
	}
	if more := all - int64(len(examples)); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}
