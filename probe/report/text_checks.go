package report

import (
	"fmt"
	"strings"
)

// checks prints, run by run, what makes the figures believable.
func (t *text) checks() {
	t.printf("\n%s\n", t.p("head", "every run: what was counted, and whether it is valid (CPU: server in cores, the rest in % of all cores)"))
	g := &grid{columns: append(t.rateColumns(),
		column{name: "run"}, column{group: "orders", name: "created"}, column{group: "orders", name: "acked"}, column{name: "copies"},
		column{group: "against the log", name: "lost"}, column{group: "against the log", name: "dup"}, column{group: "against the log", name: "gaps"}, column{group: "against the log", name: "other"},
		column{group: "sent", name: "orders/s"}, column{group: "created late", name: "p99 us"}, column{group: "created late", name: ">1 ms %"},
		column{group: "CPU", name: "server"}, column{group: "CPU", name: "probe %"}, column{group: "CPU", name: "others %"}, column{group: "CPU", name: "steal %"}, column{name: "pauses/s"},
		column{name: "valid", left: true})}
	for _, c := range t.r.Checks {
		sum := c.Ledger
		sum.Add(c.Backups)
		other := sum.Violations() - sum.Lost - sum.Duplicates - sum.Gaps + c.Disorder
		cells := t.rateCells(&group{pairs: c.Pairs, rate: c.Rate, total: c.TotalRate})
		cells = append(cells, cell{text: fmt.Sprint(c.Run)}, cell{text: thousands(float64(c.Created))}, cell{text: thousands(float64(c.Acked))}, cell{text: fmt.Sprint(c.MinCopies)},
			countCell(sum.Lost), countCell(sum.Duplicates), countCell(sum.Gaps), countCell(other),
			cell{text: thousands(c.AckedRate)}, cell{text: short(c.LagP99Us)}, cell{text: fmt.Sprintf("%.2f", c.LatePct)},
			knownCell("%.2f", c.ServerCores), knownCell("%.0f", c.ProbePct), knownCell("%.0f", c.ForeignPct), knownCell("%.1f", c.StealPct), knownCell("%.1f", c.ServerPauses),
			verdictCell(c.Verdict))
		g.add(cells...)
	}
	t.grid(g)
	for _, row := range t.r.Rows {
		if row.Metric == "server cpu" && row.Published != nil && row.Here != nil && row.Verdict == OK {
			t.printf("  cores busy in a server at %s orders/s in total: published %s | here %s | %.2f\n", thousands(float64(row.TotalRate)),
				t.publishedCell(row).text, short(*row.Here), *row.Ratio)
		}
	}
	for _, c := range t.r.Checks {
		for _, why := range c.Reasons {
			t.printf("  %s %s run %d: %s\n", t.p("doubt", why.Verdict), t.rate(c), c.Run, why.Text)
		}
		for _, v := range c.Violations {
			t.printf("  %s %s run %d: %s\n", t.p("bad", Incorrect), t.rate(c), c.Run, v)
		}
	}
}

func (t *text) rate(c Check) string {
	s := thousands(float64(c.TotalRate)) + " orders/s"
	if c.Pairs > 0 {
		s = fmt.Sprintf("%d pairs, %s", c.Pairs, s)
	}
	return s
}

func countCell(n int64) cell {
	if n == 0 {
		return cell{"0", ""}
	}
	return cell{thousands(float64(n)), "bad"}
}

func knownCell(format string, v float64) cell {
	if v < 0 {
		return cell{NoValue, "dim"}
	}
	return cell{fmt.Sprintf(format, v), ""}
}

func verdictCell(v string) cell {
	switch v {
	case OK:
		return cell{v, "good"}
	case Incorrect:
		return cell{v, "bad"}
	}
	return cell{v, "doubt"}
}

func (t *text) judgements() {
	t.printf("\n")
	for _, j := range t.r.Judgements {
		style := map[string]string{Pass: "good", Fail: "bad", NotJudged: "dim"}[j.Status]
		if strings.HasPrefix(j.Status, Invalid) {
			style = "doubt"
		}
		t.printf("  %-8s %s  %s\n", j.Name, t.p(style, fmt.Sprintf("%-10s", j.Status)), j.Detail)
	}
	style := map[string]string{ReportValid: "good", ReportInvalid: "doubt", ReportIncorrect: "bad"}[t.r.Verdict]
	t.printf("  %-8s %s  %s\n", "RUN", t.p(style, fmt.Sprintf("%-10s", t.r.Verdict)), t.r.Reason)
}
