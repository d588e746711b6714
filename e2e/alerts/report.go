package alerts

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ordergrid/ordergrid/probe/report"
)

// results of all cases.
type results struct {
	rows []row
	not  []omitted
}

// omitted is an alert that was not caused.
type omitted struct {
	alert   alert
	because string
}

// add records the outcome of a case. One that this machine cannot run is no failure; a failed one does not end the others.
func (r *results) add(alerts []alert, how string, rows []row, err error) {
	var c cannot
	if errors.As(err, &c) {
		for _, a := range alerts {
			r.not = append(r.not, omitted{a, c.because})
		}
		return
	}
	r.rows = append(r.rows, rows...)
	if err != nil {
		for _, a := range alerts {
			r.rows = append(r.rows, row{alert: a, how: how, problem: err})
		}
	}
}

func (r *results) report(out io.Writer) error {
	t := report.NewList("alert", "how caused", "fired after", "resolved after")
	bad := 0
	seconds := func(d time.Duration) string {
		if d == 0 {
			return "NOT"
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	for _, row := range r.rows {
		if row.fired == 0 || row.resolved == 0 || row.problem != nil {
			bad++
		}
		t.Add(row.alert, row.how, seconds(row.fired), seconds(row.resolved))
		if row.problem != nil {
			t.Add("", row.problem)
		}
	}
	t.Add()
	t.Add("not caused here", "because")
	for _, n := range append(r.not, notCaused...) {
		t.Add(n.alert, n.because)
	}
	if err := t.Text(out); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d alerts did not fire, or did not resolve", bad, len(r.rows))
	}
	return nil
}
