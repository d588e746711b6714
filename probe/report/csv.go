package report

import (
	"encoding/csv"
	"io"
	"strconv"
)

// csvHeader names the columns of CSV, one line a row of the report.
var csvHeader = []string{
	"scenario", "mode", "pairs", "rate_per_probe", "total_rate", "probe", "run",
	"metric", "unit", "published", "published_table", "published_row", "published_same_rate",
	"here", "ratio", "samples", "verdict", "reason", "arrival",
}

// CSV writes every row, also those the text leaves out.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	header := csvHeader
	differIn := r.Result.differIn()
	if differIn != "" {
		header = append(header[:len(header):len(header)], differIn)
	}
	if err := out.Write(header); err != nil {
		return err
	}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'f', 4, 64)
	}
	for _, row := range r.Rows {
		var pub [4]string
		if p := row.Published; p != nil {
			pub = [4]string{strconv.FormatFloat(p.Value, 'f', -1, 64), p.Table, p.Row, strconv.FormatBool(p.SameRate)}
		}
		line := []string{
			r.Scenario, string(r.Result.Plan.Mode), blankZero(row.Pairs), strconv.Itoa(row.Rate), strconv.Itoa(row.TotalRate), row.Probe, blankZero(row.Run),
			row.Metric, row.Unit, pub[0], pub[1], pub[2], pub[3],
			number(row.Here), number(row.Ratio), strconv.FormatInt(row.Samples, 10), row.Verdict, row.Reason, row.Arrival,
		}
		if differIn != "" {
			line = append(line, row.Record)
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func blankZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
