package report

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// writeMetrics are the figures of gs-write that other scenarios do not have.
const (
	writeBest     = "s2e best80"                // mean of the best 80 %, the published statistic
	writeSkew     = "s2e mean/best80"           // the part that it leaves out
	writeOver     = "s2e best80 - rtt"          // over the round trip, both of the best 80 %
	writeCopies   = "s2e best80 2 copies/1"     // cost of replication
	writeFields   = "s2e best80 8 fields/empty" // cost of eight fields
	writeCopiesUs = "s2e best80 2 copies-1"
	writeFieldsUs = "s2e best80 8 fields-empty"
	rttMean       = "rtt mean"
)

func (r *Result) isWrite() bool { return r.Plan.Scenario == published.WriteScenario }

// roundTrip is the round trip to a grid at a rate, of all probes, and why it is not valid.
func (r *Result) roundTrip(rate, replicas int) (h Histogram, reasons []Reason) {
	for i := range r.RoundTrips {
		if t := &r.RoundTrips[i]; t.Rate == rate && t.Replicas == replicas {
			h.Merge(t.Latency)
			_, why := t.verdict(r)
			reasons = append(reasons, why...)
		}
	}
	return h, reasons
}

// writes adds a group's own figures.
func (b *builder) writes(g *group, base Row) {
	if !b.res.isWrite() {
		return
	}
	fields := g.record == fixorder.EightFields
	cell := b.data.WriteLatency(fields, g.replicas > 1)
	pub := func(v float64, notes ...string) *Published {
		return &Published{Value: v, Table: cell.Table, Row: cell.Row, SameRate: true, notes: notes}
	}
	row := figure(base, "s2e", best80, g.s2e)
	row.Published = pub(cell.Value, noteRate, b.noteRecord(fields))
	b.add(row)
	best := best80.value(g.s2e)
	if best == 0 {
		return
	}
	b.add(valueRow(base, writeSkew, "", g.s2e.Mean()/best))
	if way, reasons := b.res.roundTrip(g.rate, g.replicas); way.Count() > 0 {
		if base.Verdict == OK && len(reasons) > 0 {
			base.Verdict, base.Reason = worst(reasons), reasons[0].Text
		}
		row := valueRow(base, writeOver, "us", (best-best80.value(way))/1e3)
		row.Published = pub(cell.Value-b.data.WriteRoundTrip(), notePing)
		row.Published.differs = true
		b.add(row)
	}
}

// writeRatios adds the costs of replication and of eight fields at each rate.
func (b *builder) writeRatios(gs []*group) {
	if !b.res.isWrite() {
		return
	}
	peer := func(g *group, record fixorder.Record, replicas int) *group {
		for _, o := range gs {
			if o.rate == g.rate && o.record == record && o.replicas == replicas {
				return o
			}
		}
		return nil
	}
	for _, g := range gs {
		fields := g.record == fixorder.EightFields
		above := b.data.WriteLatency(fields, g.replicas > 1).Value
		if o := peer(g, g.record, scenario.WriteCopies[0]); o != nil && o != g {
			below := b.data.WriteLatency(fields, false).Value
			n := b.data.WriteOverheadNote()
			b.against(g, o, writeCopies, "x", above/below, true, n.Finding+" (here: "+n.Action+")")
			b.against(g, o, writeCopiesUs, "us", above-below, false)
		}
		if o := peer(g, fixorder.Empty, g.replicas); o != nil && fields {
			below := b.data.WriteLatency(false, g.replicas > 1).Value
			b.against(g, o, writeFields, "x", above/below, true)
			b.against(g, o, writeFieldsUs, "us", above-below, false)
		}
	}
}

// against adds the quotient or the difference of two groups' best 80 %.
func (b *builder) against(g, below *group, metric, unit string, pub float64, quotient bool, notes ...string) {
	verdict, reason := g.verdict()
	if verdict == OK {
		verdict, reason = below.verdict()
	}
	x, y := best80.value(g.s2e)/1e3, best80.value(below.s2e)/1e3
	if x == 0 || y == 0 {
		return
	}
	v := x - y
	if quotient {
		v = x / y
	}
	row := valueRow(g.row(verdict, reason), metric, unit, v)
	row.Published = &Published{Value: pub, Table: published.WriteTable, Row: "best 80 %", SameRate: true, notes: notes, differs: true}
	b.add(row)
}

// wayThere adds the round trips, which belong to no group.
func (b *builder) wayThere() {
	for i := range b.res.RoundTrips {
		t := &b.res.RoundTrips[i]
		base := Row{Rate: t.Rate, TotalRate: t.Rate * b.res.Plan.Probes, Record: scenario.WriteLabel("ping", t.Replicas)}
		verdict, reasons := t.verdict(b.res)
		if base.Verdict = verdict; len(reasons) > 0 {
			base.Reason = reasons[0].Text
		}
		for _, m := range append(metrics, best80) {
			row := figure(base, "rtt", m, t.Latency)
			if row.Metric == rttMean {
				row.Published = &Published{Value: b.data.WriteRoundTrip(), Table: "prose", Row: "gs.rtt", SameRate: true, notes: []string{notePing}, differs: true}
			}
			if row.Here != nil || row.Published != nil {
				b.add(row)
			}
		}
	}
}

const (
	noteRate = "the report names no rate of its table, and its chart over rates is lost: the same figure stands at every rate"
	notePing = "the published round trip is that of an object of 1 KB; a Ping here carries nothing, so this is not compared"
)

// noteRecord describes the record used here.
func (b *builder) noteRecord(fields bool) string {
	v := fixorder.FIX42
	if len(b.res.Manifests) > 0 && b.res.Manifests[0].FIX != "" {
		v = fixorder.Version(b.res.Manifests[0].FIX)
	}
	if !fields {
		return fmt.Sprintf("published: an object without fields. Here: an order with the fields that FIX %s cannot do without, %d bytes; every order must be found again in the log, so its ClOrdID has %d bytes and its times milliseconds",
			v, fixorder.RecordSize(v, fixorder.Empty), fixorder.IDSize)
	}
	indexed := "which of them the grid indexes (spec.orderIndex) is not known to this program"
	if names := b.res.Plan.Indexed; names != nil {
		indexed = fmt.Sprintf("views of every copy index %d of them (--order-index %s)", len(names), strings.Join(names, ","))
	}
	return fmt.Sprintf("published: 4 strings, 2 longs, 2 integers, 3 of them indexed. Here: the same order with 8 such fields more, %d bytes; %s",
		fixorder.RecordSize(v, fixorder.EightFields), indexed)
}
