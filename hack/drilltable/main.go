// Drilltable prints the steps of saved loss certificates as one Markdown table: a row for each fault of each drill, over its
// repetitions. docs/drills.md has what it printed.
//
//	go run ./hack/drilltable out/drills/*/certificate.json
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
	"github.com/ordergrid/ordergrid/probe/report"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "drilltable:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, paths []string) error {
	if len(paths) == 0 {
		return fmt.Errorf("no certificates; give certificate.json files that kubectl ordergrid drill run --out has written")
	}
	t := report.NewList("drill", "fault", "by", "times", "outage p50, max", "p99 before, during, after", "redundant after, max", "failed", "lost, missing")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c := &certificate.Certificate{}
		if err := json.Unmarshal(text, c); err != nil {
			return fmt.Errorf("%s: is not a certificate: %w", path, err)
		}
		for _, r := range rows(c) {
			t.Add(c.Drill[strings.IndexByte(c.Drill, '/')+1:], fmt.Sprintf("%s (%s)", r.fault, r.kind), r.provider, len(r.outage), median(r.outage)+", "+ms(most(r.outage)),
				median(r.before)+", "+median(r.during)+", "+median(r.after), ms(most(r.redundant)), r.failed, fmt.Sprintf("%d, %d", c.Ledger.Lost, c.Ledger.Missing()-c.Ledger.Lost))
		}
	}
	return t.Markdown(out)
}

// row is one fault of a drill.
type row struct {
	fault, kind, provider                    string
	outage, before, during, after, redundant []time.Duration
	failed                                   int64
}

func rows(c *certificate.Certificate) (all []*row) {
	byName := map[string]*row{}
	for i := range c.Steps {
		s := &c.Steps[i]
		r := byName[s.Fault]
		if r == nil {
			r = &row{fault: s.Fault, kind: s.Type, provider: s.Provider}
			byName[s.Fault], all = r, append(all, r)
		}
		r.outage, r.redundant = append(r.outage, s.Outage), append(r.redundant, s.RedundantAfter)
		r.before, r.during, r.after = append(r.before, s.Before.P99), append(r.during, s.During.P99), append(r.after, s.After.P99)
		r.failed += s.FailedOrders
	}
	return all
}

func median(d []time.Duration) string { return ms(validate.SpreadOf(d).P50) }

func most(d []time.Duration) time.Duration { return validate.SpreadOf(d).Max }

func ms(d time.Duration) string { return validate.Millis(d) }
