package orderprobe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

// maxRows is how many rows status holds; the report has all.
const maxRows = 512

// maxReason is the longest reason of a verdict in status, in bytes.
const maxReason = 1024

// maxReportBytes is how much of a ConfigMap's 1 MiB the report's files may take together.
const maxReportBytes = 1<<20 - 16<<10

// assemble makes the files of the report, and what writes it into status. An error is what is wrong with the results.
func assemble(data *published.Data, o *observation) (content map[string]string, into func(*api.OrderProbeStatus), err error) {
	if o.probe.Spec.Scenario.OwnGrids() {
		own, err := readOwn(o.channels[0])
		if err != nil {
			return nil, nil, err
		}
		return own.files, func(s *api.OrderProbeStatus) { fillOwn(s, own) }, nil
	}
	r, err := build(data, o.channels)
	if err != nil {
		return nil, nil, err
	}
	content, err = files(r)
	return content, func(s *api.OrderProbeStatus) { fill(s, r) }, err
}

// build merges what the pods measured into one report.
func build(data *published.Data, channels []*corev1.ConfigMap) (*report.Report, error) {
	results := make([]*report.Result, 0, len(channels))
	for _, c := range channels {
		result, err := report.ParseResult([]byte(c.Data[pod.KeyResult]))
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s key %s: %w", c.Name, pod.KeyResult, err)
		}
		results = append(results, result)
	}
	merged, err := report.Merge(results...)
	if err != nil {
		return nil, err
	}
	return report.New(data, merged)
}

// files are the report for users and for programs.
func files(r *report.Report) (map[string]string, error) {
	var table, csv, full strings.Builder
	if err := r.Text(&table, report.TextOptions{PerRun: true}); err != nil {
		return nil, err
	}
	if err := r.CSV(&csv); err != nil {
		return nil, err
	}
	if err := r.JSON(&full); err != nil {
		return nil, err
	}
	if table.Len()+csv.Len()+full.Len() > maxReportBytes {
		// The large parts, histograms and time series, are in the pods' ConfigMaps.
		small := *r
		small.Result = nil
		full.Reset()
		if err := small.JSON(&full); err != nil {
			return nil, err
		}
	}
	out := map[string]string{"table.txt": table.String(), "results.csv": csv.String(), "results.json": full.String()}
	if n := table.Len() + csv.Len() + full.Len(); n > maxReportBytes {
		return nil, fmt.Errorf("the report takes %d bytes, a ConfigMap %d: measure fewer rates or repeats", n, maxReportBytes)
	}
	return out, nil
}

// fill copies the report into status: the verdict, the headline, and the rows for all runs and all probes.
func fill(status *api.OrderProbeStatus, r *report.Report) {
	status.Verdict = api.Verdict(r.Verdict)
	status.VerdictReason = messages.Cut(r.Reason, maxReason)
	status.Verdicts = nil
	for _, j := range r.Judgements {
		status.Verdicts = append(status.Verdicts, api.ProbeVerdict{Name: j.Name, Status: j.Status, Reason: messages.Cut(j.Detail, maxReason)})
	}
	status.Mean = headline(r, "c2e mean")
	status.P99 = headline(r, "c2e p99")
	status.Rows = nil
	for _, row := range r.Rows {
		// A figure that was neither published nor measured often enough to be printed is in the report only.
		shown := row.Run == 0 && row.Probe == "" && (row.Here != nil || row.Published != nil)
		if shown && len(status.Rows) < maxRows {
			status.Rows = append(status.Rows, rowOf(row))
		}
	}
}

// headline is a metric at the highest rate at which it is valid.
func headline(r *report.Report, metric string) string {
	var rows []report.Row
	for _, row := range r.Rows {
		if row.Metric == metric && row.Run == 0 && row.Probe == "" && valid(row) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	top := slices.MaxFunc(rows, func(a, b report.Row) int {
		return cmp.Or(cmp.Compare(a.TotalRate, b.TotalRate), cmp.Compare(a.Rate, b.Rate))
	})
	return fmt.Sprintf("%s %s at %d/s", decimal(*top.Here), top.Unit, top.TotalRate)
}

// valid: a figure that the guards reject is not shown as one.
func valid(row report.Row) bool { return row.Here != nil && row.Verdict == report.OK }

func rowOf(row report.Row) api.ProbeRow {
	out := api.ProbeRow{Rate: strconv.Itoa(row.Rate), Metric: row.Metric, Unit: row.Unit, Verdict: row.Verdict}
	if label := row.Arrival + row.Record; label != "" {
		out.Rate += " " + label
	}
	if row.Pairs > 0 {
		out.Pairs = strconv.Itoa(row.Pairs)
	}
	if row.Published != nil && row.Published.SameRate {
		out.Published = decimal(row.Published.Value)
	}
	if valid(row) {
		out.Here = decimal(*row.Here)
	}
	if valid(row) && row.Ratio != nil {
		out.Ratio = strconv.FormatFloat(*row.Ratio, 'f', 2, 64)
	}
	return out
}

// decimal formats a figure with a useful number of digits.
func decimal(v float64) string {
	switch a := max(v, -v); {
	case a >= 100 || v == float64(int64(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
