package selftest

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes the outcome for a terminal.
func (o *Outcome) Text(w io.Writer) error {
	if _, err := fmt.Fprintf(w, `self-test: a server that answers an order after %v, and once a second nothing for %v; %d orders/s, %d threads
then one that answers %d orders/s and is offered more. Way there and back: %v

`, Service, Stall, Rate, Threads, Rate, o.RoundTrip); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "by hand\tmeasured\ttolerated\t\t") //nolint:errcheck // Flush tells
	for _, l := range o.Lines {
		verdict := "ok"
		if !l.OK() {
			verdict = "OFF"
		}
		fmt.Fprintf(t, "%.0f\t%.0f\t%.0f to %.0f %s\t%s\t  %s\n", l.Expected, l.Measured, max(0, l.Low), l.High, l.Unit, verdict, l.What) //nolint:errcheck // Flush tells
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\noverload, second by second: create-to-end mean, send-to-end mean (us)\n"); err != nil {
		return err
	}
	for _, b := range o.Overload.Series.Whole {
		if int64(b.AtMs)%1000 == 0 {
			if _, err := fmt.Fprintf(w, "  %3.0f s  %9.0f  %6.0f\n", b.AtMs/1000, b.CreateToEnd.MeanUs, b.SendToEnd.MeanUs); err != nil {
				return err
			}
		}
	}
	return nil
}
