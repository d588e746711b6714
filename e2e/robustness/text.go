package robustness

import (
	"io"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/report"
)

// WriteText prints the report for people. docs/robustness.md explains it.
func (r *Report) WriteText(w io.Writer) error {
	p := report.NewPage(w)
	p.Say("\n%s on %s: %s\n", r.Scenario, r.Target, r.Verdict)
	for _, reason := range r.Reasons {
		p.Say("  %s\n", reason)
	}
	p.Say("\n%s, %d orders/s, seed %d, %d repetitions; goals: %s\n", r.Started.Format("2006-01-02 15:04:05"), r.Rate, r.Seed, len(r.Reps), r.Goals)
	lost, duplicates, gaps, lostSunk, repeats := r.counts()
	o := r.Orders
	p.Say("orders      created %d, acknowledged %d, refused %d, unknown %d, never sent %d; %d more by direct probers, %d acknowledged\n", o.Created, o.Acked, o.Refused, o.Unknown, o.Unsent, o.Direct, o.DirectAcked)
	p.Say("copies      lost %d, duplicates %d, gaps %d", lost, duplicates, gaps)
	for _, part := range r.Partitions {
		p.Say("; %s: %d entries in %d copies, epoch %d", part.ID, part.Entries, part.Copies, part.Epoch)
	}
	p.Say("\ndownstream  lost %d; %d entries written twice around failovers, equal\n", lostSunk, repeats)
	p.Say("reads       %d confirmed, %d refused by nodes that are not primary; with all orders %s\n", r.Reads, r.Refused, linearizable(r.Violations))
	h := r.Host
	p.Say("machine     %d cores, busy %.0f %%, this process %.0f %%, stolen %.1f %%, waiting for a core %.0f %%, load %.1f; own stalls over 2 ms: %d of %d looks, p99 %s, longest %s\n",
		h.Cores, h.Busy, h.Own, h.Steal, h.Pressure, h.Load1, r.Stalls.N, h.Ticks, ms(r.Stalls.P99), ms(r.Stalls.Max))
	p.Table(validate.SpreadTable("ms over repetitions", "outage, worst session", r.Outage, "outage, first served", r.FirstServed, "longest gap until redundant", r.Rejoin,
		"no fault: longest gap", r.Noise, "time to redundancy", r.Redundant, "p99 of orders before", r.Before, "p99 of orders during", r.During, "p99 of orders after", r.After))
	r.repetitions(p)
	p.List("VIOLATIONS", r.Violations, 0)
	p.List("NOT READ", r.Unread, 0)
	p.List("notes", r.Notes, 0)
	return p.Err()
}

func linearizable(violations []string) string {
	if len(violations) > 0 {
		return "NOT explained, see VIOLATIONS"
	}
	return "linearizable"
}

func (r *Report) repetitions(p *report.Page) {
	t := report.NewList("ms", "outage", "first", "until redundant", "redundant", "p50/p99 before", "during", "after", "max during", "failed", "own stall", "what")
	for _, rep := range r.Reps {
		o, mark := rep.Outage, ""
		if rep.Disturbed {
			mark = " !"
		}
		t.Add(rep.Number, num(o.Worst), num(o.First), num(o.Rejoin), num(o.Redundant), pair(o.Before), pair(o.During), pair(o.After), num(o.During.Max), o.Failed, num(o.Stall)+mark, rep.What)
	}
	p.Table(t)
	for _, rep := range r.Reps {
		if len(rep.NodeLogs) > 0 {
			p.Say("repetition %d: outage %s, longer than the goal; what the nodes said from %s on (look for \"held up\"): %s\n", rep.Number, ms(rep.Outage.Worst),
				rep.At.Format("15:04:05.000"), strings.Join(rep.NodeLogs, ", "))
		}
	}
}

func pair(l validate.Latency) string { return num(l.P50) + "/" + num(l.P99) }

func num(d time.Duration) string { return validate.Millis(d) }

func ms(d time.Duration) string { return num(d) + " ms" }
