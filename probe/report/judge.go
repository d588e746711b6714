package report

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/probe/published"
)

// Judgement is one of the scenario's verdicts (published.Scenario.Verdict).
type Judgement struct {
	// Name: CORRECT, VALID, SHAPE, LAB-ABS, LAB, SLO.
	Name string `json:"name"`
	// Status: PASS, FAIL, INVALID, INVALID-CONTENDED, or "not judged".
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// Statuses.
const (
	Pass      = "PASS"
	Fail      = "FAIL"
	NotJudged = "not judged"
)

// Limits of the scenarios' verdicts.
const (
	singleShapeLimit = 1.25 // c2e p50 at the highest rate / at the lowest; published 187/171
	pairShapeLimit   = 1.5  // s2e p50 at the highest rate / at the lowest; published 310/246
	sloRate          = 3000 // orders/s per probe
	sloMeanUs        = 1000
	scaleLimitPct    = 8 // |mean vs 1 pair|; published at most 7.0
)

func judge(r *Report, d *published.Data) []Judgement {
	if r.Result.Plan.Search != nil {
		return []Judgement{judgeCorrect(r), judgeValid(r), judgeKnee(r, d)}
	}
	out := []Judgement{judgeCorrect(r), judgeValid(r)}
	if r.Result.isWrite() {
		return append(out, judgeWrites(r, d))
	}
	steady := r.Result.Plan.Arrival == nil || r.Result.Plan.Arrival.IsSteady()
	switch {
	case r.Scenario == "flow-hawkes":
		return append(out, judgeBursts(r))
	case r.Scenario == "flow-day":
		return append(out, judgePeak(r))
	case r.Scenario == "stac-single" && !steady:
		return append(out, notSteady(r, "SHAPE", "LAB-ABS")...)
	case r.Scenario == "stac-pair" && !steady:
		return append(out, notSteady(r, "SHAPE", "SLO", "LAB-ABS")...)
	}
	switch r.Scenario {
	case "stac-single":
		out = append(out, judgeShape(r, "c2e", singleShapeLimit, 6000, 2000, "187/171 = 1.09"), judgeAbsolute(r))
	case "stac-pair":
		out = append(out, judgeShape(r, "s2e", pairShapeLimit, 6000, 100, "310/246 = 1.26"), judgeSLO(r), judgeAbsolute(r))
	case "stac-scale":
		out = append(out, judgeScale(r))
	case published.TimeplotScenario:
		out = append(out, judgeWorst(r))
	}
	return out
}

func judgeCorrect(r *Report) Judgement {
	var l LedgerCounts
	var created, acked, backups int64
	for _, c := range r.Checks {
		created, acked = created+c.Created, acked+c.Acked
		l.Add(c.Ledger)
		l.Add(c.Backups)
		backups += c.Backups.Entries
	}
	where := "the primaries' logs"
	if backups > 0 {
		where = "the logs of primaries and backups"
	}
	j := Judgement{Name: "CORRECT", Status: Pass, Detail: fmt.Sprintf("%s created, %s acknowledged, read back from %s: %d lost, %d duplicates, %d gaps",
		thousands(float64(created)), thousands(float64(acked)), where, l.Lost, l.Duplicates, l.Gaps)}
	if rest := l.Violations() - l.Lost - l.Duplicates - l.Gaps; rest > 0 {
		j.Detail += fmt.Sprintf(", %d other violations", rest)
	}
	if l.Violations() > 0 {
		j.Status = Fail
	}
	return j
}

// judgeShape compares the medians at the highest and the lowest rate.
func judgeShape(r *Report, latency string, limit float64, high, low int, publishedText string) Judgement {
	j := Judgement{Name: "SHAPE", Status: NotJudged}
	first, last := r.groups[0], r.groups[len(r.groups)-1]
	if first == last {
		j.Detail = "needs two rates"
		return j
	}
	var slow, fast float64
	for _, l := range latencies {
		if l.name == latency {
			fast, slow = float64(l.of(first).Percentile(50)), float64(l.of(last).Percentile(50))
		}
	}
	if fast == 0 {
		j.Detail = "no samples at the lowest rate"
		return j
	}
	q := slow / fast
	j.Detail = fmt.Sprintf("%s p50 at %s / at %s = %.2f, limit %.2f (published at %s / %s: %s)",
		latency, thousands(float64(last.rate)), thousands(float64(first.rate)), q, limit, thousands(float64(high)), thousands(float64(low)), publishedText)
	switch {
	case first.invalid() || last.invalid():
		j.Status = Invalid
		j.Detail += disturbed(first, last)
	case q <= limit:
		j.Status = Pass
	default:
		j.Status = Fail
	}
	return j
}

func judgeSLO(r *Report) Judgement {
	j := Judgement{Name: "SLO", Status: NotJudged}
	for _, g := range r.groups {
		if g.rate != sloRate {
			continue
		}
		us := g.c2e.Mean() / 1e3
		j.Detail = fmt.Sprintf("c2e mean %s us at 3,000 orders/s per probe, limit 1,000 (published 987)", short(us))
		switch {
		case g.invalid():
			j.Status = Invalid
			j.Detail += disturbed(g)
		case us <= sloMeanUs:
			j.Status = Pass
		default:
			j.Status = Fail
		}
		return j
	}
	j.Detail = "mean at most 1,000 us at 3,000 orders/s per probe: that rate was not measured"
	return j
}

// judgeAbsolute compares means at equal rates. It does not explain the difference: the machines
// differ, as described in the text of the report.
func judgeAbsolute(r *Report) Judgement {
	j := Judgement{Name: "LAB-ABS", Status: NotJudged}
	compared, slower := 0, []string{}
	invalid := 0
	for _, row := range r.Rows {
		if row.Run != 0 || row.Published == nil || row.Here == nil || !row.Published.SameRate || row.Published.doNotJudge || !strings.HasSuffix(row.Metric, " mean") {
			continue
		}
		if row.Verdict != OK {
			invalid++
			continue
		}
		compared++
		if *row.Here > row.Published.Value {
			slower = append(slower, fmt.Sprintf("%s at %s", row.Metric, thousands(float64(row.Rate))))
		}
	}
	switch {
	case compared == 0 && invalid > 0:
		j.Status, j.Detail = Invalid, "no valid row at a published rate"+disturbed(r.groups...)
	case compared == 0:
		j.Detail = "no row at a published rate"
	case len(slower) > 0:
		j.Status, j.Detail = Fail, "mean above the published one: "+strings.Join(slower, ", ")
	default:
		j.Status, j.Detail = Pass, fmt.Sprintf("mean at or below the published one in all %d rows at a published rate", compared)
	}
	j.Detail += "; indicative: other hardware"
	if r.Result.shared() {
		j.Detail += ", and probes and servers share it"
	}
	return j
}

func judgeScale(r *Report) Judgement {
	j := Judgement{Name: "LAB", Status: NotJudged, Detail: "needs one pair and more pairs at the same rate"}
	worst, n, invalid := 0.0, 0, 0
	for _, row := range r.Rows {
		if row.Metric != "c2e mean vs 1 pair" || row.Here == nil {
			continue
		}
		if row.Verdict != OK {
			invalid++
			continue
		}
		n++
		if abs := max(*row.Here, -*row.Here); abs > worst {
			worst = abs
		}
	}
	switch {
	case n > 0 && worst <= scaleLimitPct:
		j.Status = Pass
	case n > 0:
		j.Status = Fail
	case invalid > 0:
		j.Status, j.Detail = Contended, "pairs were slowed down by each other, not by the grid"
		return j
	default:
		return j
	}
	j.Detail = fmt.Sprintf("mean against one pair differs by at most %.1f %%, limit %d %% (published at most 7.0 %%)", worst, scaleLimitPct)
	if invalid > 0 {
		j.Detail += fmt.Sprintf("; %d rows not valid", invalid)
	}
	return j
}
