package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// checksTable lists the validity checks, run by run.
func (r *Report) checksTable() *Table {
	g := &Table{Name: "checks", Title: "every run: what was counted, and whether it is valid (CPU: server in cores, the rest in % of all cores)",
		Columns: append(r.rateColumns(),
			Column{Name: "run"}, Column{Group: "orders", Name: "created"}, Column{Group: "orders", Name: "acked"}, Column{Name: "copies"},
			Column{Group: "against the log", Name: "lost"}, Column{Group: "against the log", Name: "dup"}, Column{Group: "against the log", Name: "gaps"}, Column{Group: "against the log", Name: "other"},
			Column{Group: "sent", Name: "orders/s"}, Column{Group: "created late", Name: "p99 us"}, Column{Group: "created late", Name: ">1 ms %"},
			Column{Group: "CPU", Name: "server"}, Column{Group: "CPU", Name: "probe %"}, Column{Group: "CPU", Name: "others %"}, Column{Group: "CPU", Name: "steal %"}, Column{Name: "pauses/s"},
			Column{Name: "valid", Left: true})}
	for _, c := range r.Checks {
		sum := c.Ledger
		sum.Add(c.Backups)
		other := sum.Violations() - sum.Lost - sum.Duplicates - sum.Gaps + c.Disorder
		cells := r.rateCells(&group{pairs: c.Pairs, rate: c.Rate, total: c.TotalRate, label: c.Arrival + c.Record})
		cells = append(cells, Cell{Text: fmt.Sprint(c.Run)}, Cell{Text: thousands(float64(c.Created))}, Cell{Text: thousands(float64(c.Acked))}, Cell{Text: fmt.Sprint(c.MinCopies)},
			countCell(sum.Lost), countCell(sum.Duplicates), countCell(sum.Gaps), countCell(other),
			Cell{Text: thousands(c.AckedRate)}, Cell{Text: short(c.LagP99Us)}, Cell{Text: fmt.Sprintf("%.2f", c.LatePct)},
			knownCell("%.2f", c.ServerCores), knownCell("%.0f", c.ProbePct), knownCell("%.0f", c.ForeignPct), knownCell("%.1f", c.StealPct), knownCell("%.1f", c.ServerPauses),
			verdictCell(c.Verdict))
		g.add(cells...)
	}
	return g
}

// ServerCPU compares the cores used by a server with the one published figure, in words; not ok if
// there is nothing to compare.
func (r *Report) ServerCPU() (text string, ok bool) {
	for _, row := range r.Rows {
		if row.Metric == "server cpu" && row.Published != nil && row.Here != nil && row.Verdict == OK {
			return fmt.Sprintf("cores busy in a server at %s orders/s in total: published %s | here %s | %.2f", thousands(float64(row.TotalRate)),
				publishedCell(row).Text, short(*row.Here), *row.Ratio), true
		}
	}
	return "", false
}

// Remark is why a run is not valid, or what was wrong with its orders.
type Remark struct {
	Verdict string // as Check.Verdict
	Guard   string // as Reason.Guard; empty for what was wrong
	Where   string // such as "6,000 orders/s run 1"
	Text    string
	Advice  string // what to do about the guard, with the last remark of it
}

// guardAdvice is what a person can do, guard by guard: first what is easiest.
var guardAdvice = []struct{ guard, advice string }{
	{"host", "run it again when nothing else uses the machine, or on a machine of its own"},
	{"generator", "give the probe more cores, or ask for fewer probes or a lower rate (--probes, --rates)"},
	{"schedule", "give the probe more cores: the thread that creates orders has to run when they are due"},
	{"rate", "give the probe more cores, or ask for a lower rate (--rates)"},
	{"samples", "measure for longer (--measure)"},
	{"arrival", "measure for longer (--measure): bursts are rare"},
	{"capacity", "ask for a lower rate (--rates), or give the grid more cores"},
	{"answers", "see the log of the grid's nodes for why orders were refused or not answered"},
	{"topology", "wait until every copy is in sync (kubectl ordergrid status), then run it again"},
	{"detector", "see the log of the probe"},
}

// Remarks on all runs: what was wrong, then why runs are not valid, by guard.
func (r *Report) Remarks() (out []Remark) {
	for i := range r.Result.RoundTrips {
		t := &r.Result.RoundTrips[i]
		_, reasons := t.verdict(r.Result)
		for _, why := range reasons {
			out = append(out, Remark{Verdict: why.Verdict, Guard: why.Guard, Where: fmt.Sprintf("%s/s %s", thousands(float64(t.Rate)), scenario.WriteLabel("ping", t.Replicas)), Text: why.Text})
		}
	}
	for _, c := range r.Checks {
		where := fmt.Sprintf("%s run %d", c.where(), c.Run)
		for _, why := range c.Reasons {
			out = append(out, Remark{Verdict: why.Verdict, Guard: why.Guard, Where: where, Text: why.Text})
		}
		for _, v := range c.Violations {
			out = append(out, Remark{Verdict: Incorrect, Where: where, Text: v})
		}
	}
	slices.SortStableFunc(out, func(a, b Remark) int { return cmp.Compare(guardRank(a.Guard), guardRank(b.Guard)) })
	for i := range out {
		if rank := guardRank(out[i].Guard); rank >= 0 && (i+1 == len(out) || out[i+1].Guard != out[i].Guard) {
			out[i].Advice = guardAdvice[rank].advice
		}
	}
	return out
}

// guardRank is the place of a guard in guardAdvice, -1 for none.
func guardRank(guard string) int {
	for i := range guardAdvice {
		if guardAdvice[i].guard == guard {
			return i
		}
	}
	return -1
}

func (c Check) where() string {
	s := thousands(float64(c.TotalRate)) + " orders/s"
	if c.Pairs > 0 {
		s = fmt.Sprintf("%d pairs, %s", c.Pairs, s)
	}
	if label := c.Arrival + c.Record; label != "" {
		s += " " + label
	}
	return s
}

// Style is the colour of a remark's verdict, as Cell.Style.
func (m Remark) Style() string {
	if m.Verdict == Incorrect {
		return "bad"
	}
	return "doubt"
}

// Style is the colour of the status, as Cell.Style.
func (j Judgement) Style() string {
	if strings.HasPrefix(j.Status, Invalid) {
		return "doubt"
	}
	return map[string]string{Pass: "good", Fail: "bad", NotJudged: "dim"}[j.Status]
}

// Style is the colour of the verdict, as Cell.Style.
func (r *Report) Style() string {
	return map[string]string{ReportValid: "good", ReportInvalid: "doubt", ReportIncorrect: "bad"}[r.Verdict]
}

func countCell(n int64) Cell {
	if n == 0 {
		return Cell{Text: "0"}
	}
	return Cell{Text: thousands(float64(n)), Style: "bad"}
}

func knownCell(format string, v float64) Cell {
	if v < 0 {
		return Cell{Text: NoValue, Style: "dim"}
	}
	return Cell{Text: fmt.Sprintf(format, v)}
}

func verdictCell(v string) Cell {
	switch v {
	case OK:
		return Cell{Text: v, Style: "good"}
	case Incorrect:
		return Cell{Text: v, Style: "bad"}
	}
	return Cell{Text: v, Style: "doubt"}
}
