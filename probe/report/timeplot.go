package report

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/probe/published"
)

// pausesOfOne is how often a server without replication pauses, by how often one with it does.
const pausesOfOne = "server pauses, 1 server / 2"

// waitedEach is how many orders of each thread must have waited for a spike to be judged: a fall of fewer may be chance.
const waitedEach = 4

func (r *Result) isTimeplot() bool { return r.Plan.Scenario == published.TimeplotScenario }

// differIn names what steps of one rate differ in, beside the kind of arrival; "" for nothing.
func (r *Result) differIn() string {
	switch {
	case r.isWrite():
		return "record"
	case r.isTimeplot():
		return "servers"
	}
	return ""
}

// runsThatCount are the runs whose figures count: the valid ones, or all where none is.
func (g *group) runsThatCount() (out []run) {
	for _, r := range g.runs {
		if len(r.reasons) == 0 || g.invalid() {
			out = append(out, r)
		}
	}
	return out
}

// spikes of all probes, the worst first.
func (g *group) spikes() (all []Spike) {
	for _, p := range g.counted() {
		all = append(all, p.Spikes...)
	}
	slices.SortStableFunc(all, func(a, b Spike) int {
		switch {
		case a.CreateToEndUs > b.CreateToEndUs:
			return -1
		case a.CreateToEndUs < b.CreateToEndUs:
			return 1
		}
		return 0
	})
	return all
}

// pauses are those of the probe and of the servers a second; negative where they are not known.
func (g *group) pauses(measureMs int64) (probe, servers float64) {
	runs := g.runsThatCount()
	for _, r := range runs {
		for _, c := range r.conditions {
			for _, s := range c.PauseSources {
				sum := &servers
				if s.Of == "probe" {
					sum = &probe
				}
				if s.Count < 0 || *sum < 0 {
					*sum = -1
				} else {
					*sum += float64(s.Count)
				}
			}
		}
	}
	per := float64(len(runs)) * float64(measureMs) / 1000
	for _, sum := range []*float64{&probe, &servers} {
		if *sum > 0 {
			*sum /= per
		}
	}
	return probe, servers
}

// fell are the threads that worked off what had waited in one descent, how many orders these had, and the middle one of
// their slopes.
func (s *Spike) fell() (threads, orders int, slope float64) {
	var slopes []float64
	for _, d := range s.Descents {
		threads, orders, slopes = threads+1, orders+d.Orders, append(slopes, d.SlopeUsPerMs)
	}
	if slices.Sort(slopes); threads > 0 {
		slope = slopes[threads/2]
	}
	return threads, orders, slope
}

// worstTable has how often runtimes paused, and what the worst moment of each rate was made of.
func (r *Report) worstTable() *Table {
	t := &Table{Name: "worst", Title: "pauses of runtimes, all by collections; the worst moment, and how threads worked off what had waited",
		Columns: append(r.rateColumns(), Column{Group: "pauses/s", Name: "probe", gap: 3}, Column{Group: "pauses/s", Name: "servers"},
			Column{Group: "spikes", Name: "number", gap: 3}, Column{Group: "the worst", Name: "c2e us", gap: 3}, Column{Group: "the worst", Name: "stall ms"},
			Column{Group: "the worst", Name: "waited"}, Column{Group: "the worst", Name: "pauses near"}, Column{Group: "descents", Name: "threads", gap: 3},
			Column{Group: "descents", Name: "orders"}, Column{Group: "descents", Name: "us/ms"})}
	for _, g := range r.groups {
		probe, servers := g.pauses(r.Result.Plan.Measure)
		all := g.spikes()
		cells := append(r.rateCells(g), knownCell("%.1f", probe), knownCell("%.1f", servers), Cell{Text: fmt.Sprint(len(all))})
		if len(all) == 0 {
			for range 7 {
				cells = append(cells, Cell{Text: "-", Style: "dim"})
			}
			t.add(cells...)
			continue
		}
		s := &all[0]
		threads, orders, slope := s.fell()
		for _, text := range []string{short(s.CreateToEndUs), fmt.Sprintf("%.2f", s.StallToMs-s.StallFromMs), fmt.Sprint(s.Queued), fmt.Sprint(len(s.Pauses)), fmt.Sprint(threads), fmt.Sprint(orders), fmt.Sprintf("%.0f", slope)} {
			cells = append(cells, Cell{Text: text})
		}
		t.add(cells...)
	}
	return t
}

// pauseRatio adds the pauses of the single server by those of one of two, at the highest rate of each.
func (b *builder) pauseRatio(gs []*group) {
	if !b.res.isTimeplot() {
		return
	}
	var of [3]*group // by servers
	for _, g := range gs {
		if of[g.replicas] == nil || g.total > of[g.replicas].total {
			of[g.replicas] = g
		}
	}
	one, two := of[1], of[2]
	if one == nil || two == nil {
		return
	}
	_, single := one.pauses(b.res.Plan.Measure)
	_, pair := two.pauses(b.res.Plan.Measure)
	if single < 0 || pair <= 0 {
		return
	}
	verdict, reason := one.verdict()
	if verdict == OK {
		verdict, reason = two.verdict()
	}
	row := valueRow(one.row(verdict, reason), pausesOfOne, "x", single/(pair/2))
	row.Published = &Published{Value: b.data.PauseRatio(), Table: "prose", Row: "stac.gcpauses", SameRate: true, differs: true,
		notes: []string{"published: pauses of a collector that stops the world for all of its work; here collections mark beside the program, and stop it for their beginning and their end"}}
	b.add(row)
}

// judgeWorst is SHAPE: after a stall each publishing thread works off its orders in one descent, as in figure 3-4.
func judgeWorst(r *Report) Judgement {
	j := Judgement{Name: "SHAPE", Status: Pass}
	least := int64(waitedEach * r.Result.Plan.Threads)
	judged, disturbed, first := 0, "", ""
	for _, g := range r.groups {
		if g.invalid() {
			disturbed = g.why()
			continue
		}
		for _, s := range g.spikes() {
			if s.Queued < least {
				continue
			}
			judged++
			if threads, orders, _ := s.fell(); threads < r.Result.Plan.Threads || int64(2*orders) < s.Queued {
				j.Status = Fail
				if first == "" {
					first = fmt.Sprintf("; at %s/s %d orders waited, and %d threads worked off %d of them so", thousands(float64(g.total)), s.Queued, threads, orders)
				}
			}
		}
	}
	j.Detail = fmt.Sprintf("after each of %d stalls in which %d orders or more waited, every one of %d threads works off its own in one descent, at least half of them together (published: four descents, of four threads)%s",
		judged, least, r.Result.Plan.Threads, first)
	switch {
	case judged == 0 && disturbed != "":
		j.Status, j.Detail = Invalid, disturbed
	case judged == 0:
		j.Status, j.Detail = NotJudged, fmt.Sprintf("no stall in which %d orders or more waited, so no descents to be compared with the published four of four threads", least)
	}
	return j
}
