package certificate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// maxLines of violations and steps' timelines in the text; the JSON has them all.
const maxLines = 40

// WriteText prints the certificate. docs/drills.md explains it.
func (c *Certificate) WriteText(w io.Writer) error {
	p := &printer{w: w}
	p.f("LOSS CERTIFICATE  %s\n", strings.ToUpper(string(c.Verdict)))
	for _, r := range c.Reasons {
		p.f("  %s\n", r)
	}
	p.f("\n")
	t := p.table()
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("drill", "%s  suite %s  seed %d", dash(c.Drill), dash(c.Suite), c.Seed)
	row("grid", "%s  %d copies of every order", dash(c.Grid), c.Replicas)
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
	p.flush(t)
	c.spreads(p)
	c.stepTable(p)
	for i := range c.Steps {
		if i < maxLines {
			c.Steps[i].timeline(p)
		}
	}
	if n := len(c.Steps) - maxLines; n > 0 {
		p.f("\n%d more steps: their timelines are in the JSON\n", n)
	}
	p.list("LOST ORDERS", lostLines(l.LostExamples, l.Lost))
	if x := c.Executions; x != nil {
		p.list("LOST EXECUTIONS", x.LostExamples)
		p.list("EXECUTIONS", x.Findings)
	}
	if x := c.Functions; x != nil {
		p.list("FUNCTIONS", x.Findings)
	}
	p.list("VIOLATIONS", c.Violations)
	p.list("NOT READ", c.Unread)
	p.list("notes", c.Notes)
	p.f("\nhistory sha256 %s\n", c.HistorySHA256)
	return p.err
}

func (c *Certificate) warnedText() string {
	if c.Ledger.LostWarned == 0 {
		return ""
	}
	return fmt.Sprintf(", of %d the grid had warned: one copy by their receipts, and reported as not redundant", c.Ledger.LostWarned)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func ms(d time.Duration) string { return validate.Millis(d) }

func (c *Certificate) spreads(p *printer) {
	t := p.table()
	fmt.Fprintf(t, "\nms over %d steps\tp50\tp99\tmax\n", len(c.Steps))
	for _, row := range []struct {
		name string
		s    validate.Spread
	}{
		{"outage, worst session", c.Outage}, {"outage, first served", c.FirstServed}, {"redundant after the fault", c.Redundant},
		{"p99 of orders before", c.P99Before}, {"p99 of orders during", c.P99During}, {"p99 of orders after", c.P99After}, {"longest gap without a fault", c.Noise},
	} {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.name, ms(row.s.P50), ms(row.s.P99), ms(row.s.Max))
	}
	p.flush(t)
}

func (c *Certificate) stepTable(p *printer) {
	t := p.table()
	fmt.Fprintf(t, "\nstep\tfault\tprovider\twitness\toutcome\toutage\tfirst\tlasted\tredundant\tp99 before\tduring\tafter\tfailed\twhat\n")
	for i := range c.Steps {
		s := &c.Steps[i]
		mark := ""
		if s.Disturbed {
			mark = " !"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", s.Index, s.Type, dash(s.Provider), s.Witness.State, s.Outcome, ms(s.Outage), mark, ms(s.FirstServed),
			ms(s.Lasted), ms(s.RedundantAfter), ms(s.Before.P99), ms(s.During.P99), ms(s.After.P99), s.FailedOrders, s.What)
	}
	p.flush(t)
}

func (s *Step) timeline(p *printer) {
	p.f("\nstep %d, %s", s.Index, s.What)
	if s.Witness.Message != "" {
		p.f("; witness: %s", s.Witness.Message)
	}
	p.f("\n")
	t := p.table()
	for _, m := range s.Timeline {
		fmt.Fprintf(t, "  %10.2f ms\t%s\t%s\t%s\n", float64(m.At)/1e6, m.What, m.Partition, m.Who)
	}
	p.flush(t)
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

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) table() *tabwriter.Writer { return tabwriter.NewWriter(p.w, 2, 0, 2, ' ', 0) }

func (p *printer) flush(t *tabwriter.Writer) {
	if err := t.Flush(); p.err == nil {
		p.err = err
	}
}

func (p *printer) list(name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.f("\n%s\n", name)
	for i, l := range lines {
		if i == maxLines {
			p.f("  and %d more\n", len(lines)-i)
			return
		}
		p.f("  %s\n", l)
	}
}
