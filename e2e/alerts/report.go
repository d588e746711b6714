package alerts

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
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
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "alert\thow caused\tfired after\tresolved after")
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
		fmt.Fprintf(t, "%v\t%s\t%s\t%s\n", row.alert, row.how, seconds(row.fired), seconds(row.resolved))
		if row.problem != nil {
			fmt.Fprintf(t, "\t%v\t\t\n", row.problem)
		}
	}
	fmt.Fprintln(t, "\t\t\t")
	fmt.Fprintln(t, "not caused here\tbecause\t\t")
	for _, n := range append(r.not, notCaused...) {
		fmt.Fprintf(t, "%v\t%s\t\t\n", n.alert, n.because)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d alerts did not fire, or did not resolve", bad, len(r.rows))
	}
	return nil
}
