package scale

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/report"
)

// row of the table: what it is called, and its figure in one run.
type row struct {
	name  string
	value func(*Result) string
}

func seconds(v float64) string { return numtext.Short(v) + " s" }
func mebibytes(v int64) string { return numtext.Thousands(float64(v)/(1<<20)) + " MiB" }

func milliseconds(values ...float64) string {
	var out []string
	for _, v := range values {
		if v == 0 {
			return "none"
		}
		out = append(out, numtext.Short(v))
	}
	return strings.Join(out, " / ") + " ms"
}

// rate is what a count in the stretch at rest makes in an hour.
func (p *Phase) hourly(n float64) float64 { return n / p.Seconds * 3600 }

var rows = []row{
	{"pods", func(r *Result) string { return numtext.Thousands(float64(r.Pods)) }},
	{"**Creation**: all grids sent to the API server after", func(r *Result) string { return seconds(r.Created) }},
	{"all grids available, redundant and steady after", func(r *Result) string { return seconds(r.Steady) }},
	{"reconciles per grid", func(r *Result) string { return perGrid(r, r.Create.Reconciles) }},
	{"a reconcile, p50 / p99", func(r *Result) string { return milliseconds(r.Create.P50, r.Create.P99) }},
	{"wait in the operator's queue, p50 / p99", func(r *Result) string { return milliseconds(r.Create.QueueP50, r.Create.QueueP99) }},
	{"requests of the operator per grid", func(r *Result) string { return perGrid(r, float64(r.Create.Total(""))) + byVerb(r, &r.Create) }},
	{"failed reconciles", func(r *Result) string { return numtext.Thousands(r.Create.Errors) }},
	{"CPU of the operator", func(r *Result) string { return seconds(r.Create.CPU["operator"]) }},
	{"share of the machine's CPU time used: operator / API server / etcd / the rest", func(r *Result) string { return shares(&r.Create) }},
	{"**At rest**: reconciles per hour", func(r *Result) string { return numtext.Thousands(r.Rest.hourly(r.Rest.Reconciles)) }},
	{"requests of the operator per hour, Lease included", func(r *Result) string { return numtext.Thousands(r.Rest.hourly(float64(r.Rest.Total("")))) }},
	{"of these about grids", func(r *Result) string {
		return numtext.Thousands(r.Rest.hourly(float64(r.Rest.Total("") - r.Rest.Total("get leases") - r.Rest.Total("update leases"))))
	}},
	{"CPU of the operator per hour", func(r *Result) string { return seconds(r.Rest.hourly(r.Rest.CPU["operator"])) }},
	{"memory of the operator: resident / heap", func(r *Result) string { return mebibytes(r.Processes["operator"].RSS) + " / " + mebibytes(r.Heap) }},
	{"memory of the API server / etcd, resident", func(r *Result) string {
		return mebibytes(r.Processes["kube-apiserver"].RSS) + " / " + mebibytes(r.Processes["etcd"].RSS)
	}},
	{"objects the operator follows", func(r *Result) string { return objects(r) }},
	{"**Reaction**: a deleted Service is back after, median / longest of 20", func(r *Result) string {
		sorted := slices.Sorted(slices.Values(r.Reactions))
		return milliseconds(sorted[len(sorted)/2], sorted[len(sorted)-1])
	}},
	{"**Restart**: every grid looked at and nothing to do after", func(r *Result) string { return seconds(r.Restarted) }},
	{"a reconcile, p50 / p99", func(r *Result) string { return milliseconds(r.Restart.P50, r.Restart.P99) }},
	{"requests of the operator, in all", func(r *Result) string {
		return numtext.Thousands(float64(r.Restart.Total(""))) + byVerb(&Result{Grids: 1}, &r.Restart)
	}},
	{"grid nodes asked for their status", func(r *Result) string { return numtext.Thousands(r.Restart.Questions) }},
	{"memory of the operator: resident / heap", func(r *Result) string { return mebibytes(r.RestartRSS) + " / " + mebibytes(r.RestartHeap) }},
}

func perGrid(r *Result, n float64) string { return numtext.Short(n / float64(r.Grids)) }

func byVerb(r *Result, p *Phase) string {
	var parts []string
	for _, verb := range p.Verbs() {
		parts = append(parts, verb+" "+perGrid(r, float64(p.Total(verb+" "))))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func shares(p *Phase) string {
	all := 0.0
	for _, v := range p.CPU {
		all += v
	}
	share := func(names ...string) string {
		sum := 0.0
		for _, n := range names {
			sum += p.CPU[n]
		}
		return fmt.Sprintf("%.0f", 100*sum/max(all, 0.01))
	}
	return share("operator") + " / " + share("kube-apiserver") + " / " + share("etcd") + " / " + share("kube-controller", "kube-scheduler", "kwok", "scale") + " %"
}

func objects(r *Result) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Objects)) {
		parts = append(parts, fmt.Sprintf("%s %s", numtext.Thousands(float64(r.Objects[kind])), kind))
	}
	return strings.Join(parts, ", ")
}

// Table writes the runs side by side in Markdown.
func Table(w io.Writer, results []*Result) error {
	head := []string{"OrderGrids of 3 shards of 2"}
	for _, r := range results {
		head = append(head, numtext.Thousands(float64(r.Grids)))
	}
	t := report.NewTable(head...)
	t.Columns[0].Left = true
	for _, line := range rows {
		cells := []any{line.name}
		for _, r := range results {
			cells = append(cells, line.value(r))
		}
		t.Add(cells...)
	}
	return t.Markdown(w)
}
