package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Limits of gs-write's SHAPE. Medians over rates are judged: the report has one
// figure and names no rate.
const (
	minWriteCopies = 1.3 // published 2.33 (empty) and 2.38 (8 fields)
	maxWriteCopies = 3.0
	// minWriteFields: the empty record must not cost more than eight fields. 100 bytes have little
	// effect, so the noise of the machine is allowed.
	minWriteFields = 0.95
)

// judgeWrites is SHAPE: the relative costs of replication and fields are about those of the report.
func judgeWrites(r *Report, d *published.Data) Judgement {
	j := Judgement{Name: "SHAPE", Status: Pass}
	var parts []string
	judged, disturbed := 0, 0
	say := func(what, metric, label string, pub, low, high float64) {
		v, n, invalid := r.medianOf(metric, label)
		if invalid > 0 && n == 0 {
			disturbed++
			parts = append(parts, what+" not valid")
			return
		}
		if n == 0 {
			return
		}
		judged++
		limits := fmt.Sprintf("at least %.2f", low)
		if high > 0 {
			limits = fmt.Sprintf("%.1f to %.1f", low, high)
		}
		parts = append(parts, fmt.Sprintf("%s %.2f (%s, published %.2f)", what, v, limits, pub))
		if v < low || high > 0 && v > high {
			j.Status = Fail
		}
	}
	one, two := scenario.WriteCopies[0], scenario.WriteCopies[1]
	for _, record := range slices.Backward(fixorder.Records()) {
		fields := record == fixorder.EightFields
		say(fmt.Sprintf("2 copies / 1, %s", record), writeCopies, scenario.WriteLabel(string(record), two),
			d.WriteLatency(fields, true).Value/d.WriteLatency(fields, false).Value, minWriteCopies, maxWriteCopies)
	}
	for _, n := range []int{one, two} {
		say("8 fields / empty, "+copiesText(n), writeFields, scenario.WriteLabel(string(fixorder.EightFields), n),
			d.WriteLatency(true, n > 1).Value/d.WriteLatency(false, n > 1).Value, minWriteFields, 0)
	}
	if len(r.Result.Plan.Grids()) < len(scenario.WriteCopies) {
		parts = append(parts, "replication is not judged: one grid was measured, with "+copiesText(r.Result.Plan.Replicas))
	}
	switch {
	case judged == 0 && disturbed > 0 || j.Status == Pass && disturbed > 0:
		j.Status = Invalid
	case judged == 0:
		j.Status = NotJudged
	}
	j.Detail = fmt.Sprintf("medians over the rates of the best %.0f %%'s means: %s", 100*published.WriteBestShare, strings.Join(parts, "; "))
	return j
}

// medianOf a metric over the rates of a label: n valid ones.
func (r *Report) medianOf(metric, label string) (v float64, n, invalid int) {
	var all []float64
	for i := range r.Rows {
		row := &r.Rows[i]
		switch {
		case row.Metric != metric || row.label() != label || row.Here == nil:
		case row.Verdict != OK:
			invalid++
		default:
			all = append(all, *row.Here)
		}
	}
	if len(all) == 0 {
		return 0, 0, invalid
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, len(all), invalid
}
