package robustness

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// WriteText prints the report for people. docs/robustness.md explains it.
func (r *Report) WriteText(w io.Writer) error {
	p := &printer{w: w}
	p.f("\n%s on %s: %s\n", r.Scenario, r.Target, r.Verdict)
	for _, reason := range r.Reasons {
		p.f("  %s\n", reason)
	}
	p.f("\n%s, %d orders/s, seed %d, %d repetitions; goals: %s\n", r.Started.Format("2006-01-02 15:04:05"), r.Rate, r.Seed, len(r.Reps), r.Goals)
	lost, duplicates, gaps, lostSunk, repeats := r.counts()
	o := r.Orders
	p.f("orders      created %d, acknowledged %d, refused %d, unknown %d, never sent %d; %d more by direct probers, %d acknowledged\n", o.Created, o.Acked, o.Refused, o.Unknown, o.Unsent, o.Direct, o.DirectAcked)
	p.f("copies      lost %d, duplicates %d, gaps %d", lost, duplicates, gaps)
	for _, part := range r.Partitions {
		p.f("; %s: %d entries in %d copies, epoch %d", part.ID, part.Entries, part.Copies, part.Epoch)
	}
	p.f("\ndownstream  lost %d; %d entries written twice around failovers, equal\n", lostSunk, repeats)
	p.f("reads       %d confirmed, %d refused by nodes that are not primary; with all orders %s\n", r.Reads, r.Refused, linearizable(r.Violations))
	h := r.Host
	p.f("machine     %d cores, busy %.0f %%, this process %.0f %%, stolen %.1f %%, waiting for a core %.0f %%, load %.1f; own stalls over 2 ms: %d of %d looks, p99 %s, longest %s\n",
		h.Cores, h.Busy, h.Own, h.Steal, h.Pressure, h.Load1, r.Stalls.N, h.Ticks, ms(r.Stalls.P99), ms(r.Stalls.Max))
	r.spreads(p)
	r.repetitions(p)
	list(p, "VIOLATIONS", r.Violations)
	list(p, "NOT READ", r.Unread)
	list(p, "notes", r.Notes)
	return p.err
}

func linearizable(violations []string) string {
	if len(violations) > 0 {
		return "NOT explained, see VIOLATIONS"
	}
	return "linearizable"
}

func (r *Report) spreads(p *printer) {
	t := p.table()
	fmt.Fprintf(t, "\nms over repetitions\tp50\tp99\tmax\n")
	for _, row := range []struct {
		name string
		s    validate.Spread
	}{
		{"outage, worst session", r.Outage}, {"outage, first served", r.FirstServed}, {"longest gap until redundant", r.Rejoin},
		{"no fault: longest gap", r.Noise}, {"time to redundancy", r.Redundant},
		{"p99 of orders before", r.Before}, {"p99 of orders during", r.During}, {"p99 of orders after", r.After},
	} {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.name, num(row.s.P50), num(row.s.P99), num(row.s.Max))
	}
	p.flush(t)
}

func (r *Report) repetitions(p *printer) {
	t := p.table()
	fmt.Fprintf(t, "\nms\toutage\tfirst\tuntil redundant\tredundant\tp50/p99 before\tduring\tafter\tmax during\tfailed\town stall\twhat\n")
	for _, rep := range r.Reps {
		o, mark := rep.Outage, ""
		if rep.Disturbed {
			mark = " !"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s%s\t%s\n", rep.Number, num(o.Worst), num(o.First), num(o.Rejoin), num(o.Redundant),
			pair(o.Before), pair(o.During), pair(o.After), num(o.During.Max), o.Failed, num(o.Stall), mark, rep.What)
	}
	p.flush(t)
	for _, rep := range r.Reps {
		if len(rep.NodeLogs) > 0 {
			p.f("repetition %d: outage %s, longer than the goal; what the nodes said from %s on (look for \"held up\"): %s\n", rep.Number, ms(rep.Outage.Worst),
				rep.At.Format("15:04:05.000"), strings.Join(rep.NodeLogs, ", "))
		}
	}
}

func pair(l validate.Latency) string { return num(l.P50) + "/" + num(l.P99) }

func list(p *printer, name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.f("\n%s\n", name)
	for _, l := range lines {
		p.f("  %s\n", l)
	}
}

func num(d time.Duration) string { return validate.Millis(d) }

func ms(d time.Duration) string { return num(d) + " ms" }

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
