package selftest

import (
	"fmt"
	"io"

	"github.com/ordergrid/ordergrid/probe/report"
)

// Text writes the outcome for a terminal.
func (o *Outcome) Text(w io.Writer) error {
	p := report.NewPage(w)
	p.Say(`self-test: a server that answers an order after %v, and once a second nothing for %v; %d orders/s, %d threads
then one that answers %d orders/s and is offered more. Way there and back: %v
`, Service, Stall, Rate, Threads, Rate, o.RoundTrip)
	t := report.NewTable("by hand", "measured", "tolerated", "", "")
	t.Columns[4].Left = true
	for _, l := range o.Lines {
		verdict := "ok"
		if !l.OK() {
			verdict = "OFF"
		}
		t.Add(fmt.Sprintf("%.0f", l.Expected), fmt.Sprintf("%.0f", l.Measured), fmt.Sprintf("%.0f to %.0f %s", max(0, l.Low), l.High, l.Unit), verdict, l.What)
	}
	p.Table(t)
	p.Say("\noverload, second by second: create-to-end mean, send-to-end mean (us)\n")
	for _, b := range o.Overload.Series.Whole {
		if int64(b.AtMs)%1000 == 0 {
			p.Say("  %3.0f s  %9.0f  %6.0f\n", b.AtMs/1000, b.CreateToEnd.MeanUs, b.SendToEnd.MeanUs)
		}
	}
	return p.Err()
}
