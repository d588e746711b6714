package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/gateway/load"
	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// maxTrial is how many orders are measured: beyond it the file is not read on.
const maxTrial = 1_000_000

// trial is a function called with the orders of a file.
type trial struct {
	inst    *function.Instance
	kind    function.Kind
	onError function.OnError
	nanos   []int64
	fuel    []int64
	report  trialReport
}

// trialReport is what the command prints.
type trialReport struct {
	SHA256   string         `json:"sha256"`
	Kind     string         `json:"kind"`
	Orders   int            `json:"orders"`
	Invalid  int            `json:"invalid"` // not valid FIX: left out
	Accepted int            `json:"accepted"`
	Refused  int            `json:"refused"`
	Changed  int            `json:"changed"`
	Records  int            `json:"records"`
	Failed   int            `json:"failed"` // of those above, by onError
	Reasons  map[string]int `json:"reasons"`
	Failures map[string]int `json:"failures"`
	Nanos    quantiles      `json:"nanosecondsPerCall"`
	Fuel     quantiles      `json:"fuelPerCall"`
}

type quantiles struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

func newTrial(ctx context.Context, m *function.Module, onError function.OnError) (*trial, error) {
	inst, err := m.Instance(ctx)
	if err != nil {
		return nil, err
	}
	t := &trial{inst: inst, kind: m.Kind(), onError: onError}
	t.report = trialReport{SHA256: fmt.Sprintf("%x", m.Digest()), Kind: m.Kind().String(), Reasons: map[string]int{}, Failures: map[string]int{}}
	return t, nil
}

func (t *trial) orders(ctx context.Context, src load.Source) error {
	for t.report.Orders < maxTrial {
		row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var parsed order.Order
		if row.Err != nil {
			t.report.Invalid++
			continue
		}
		if err := order.Parse(row.Message, &parsed); err != nil {
			t.report.Invalid++
			continue
		}
		t.report.Orders++
		o := function.Order{Time: time.Now().UnixNano(), Raw: row.Message, Places: parsed.Places(), Parsed: &parsed}
		if t.kind == function.Post {
			o.Seq = uint64(t.report.Orders)
			t.post(ctx, &o)
		} else {
			t.pre(ctx, &o)
		}
		t.fuel = append(t.fuel, t.inst.Used())
	}
	return nil
}

func (t *trial) post(ctx context.Context, o *function.Order) {
	began := time.Now()
	record, fault := t.inst.Record(ctx, o)
	t.nanos = append(t.nanos, time.Since(began).Nanoseconds())
	if fault != function.None {
		t.failed(fault)
	} else if len(record) > 0 {
		t.report.Records++
	}
	t.report.Accepted++
}

func (t *trial) pre(ctx context.Context, o *function.Order) {
	began := time.Now()
	d := t.inst.Decide(ctx, o)
	t.nanos = append(t.nanos, time.Since(began).Nanoseconds())
	if d.Fault != function.None {
		t.failed(d.Fault)
	}
	d = t.onError.Apply(d)
	if d.Verdict == function.Change {
		if err := amended(o.Raw, d.Sets); err != nil {
			t.report.Reasons["what it sets makes no valid order: "+err.Error()]++
			t.report.Refused++
			return
		}
	}
	switch d.Verdict {
	case function.Refuse:
		t.report.Refused++
		t.report.Reasons[fmt.Sprintf("103=%d %s", d.Reason, d.Text)]++
	case function.Change:
		t.report.Changed++
	default:
		t.report.Accepted++
	}
}

// amended checks what a grid would: the order with the tags set has to be one.
func amended(raw []byte, sets []function.Set) error {
	out, err := function.Amend(nil, raw, sets)
	if err != nil {
		return err
	}
	var o order.Order
	if err := order.Parse(out, &o); err != nil {
		return err
	}
	return nil
}

func (t *trial) failed(fault function.Fault) {
	t.report.Failed++
	t.report.Failures[fault.String()]++
}

func quantilesOf(list []int64) quantiles {
	if len(list) == 0 {
		return quantiles{}
	}
	slices.Sort(list)
	return quantiles{P50: list[len(list)/2], P99: list[len(list)*99/100], Max: list[len(list)-1]}
}

func (t *trial) print(w io.Writer, output string) error {
	r := &t.report
	r.Nanos, r.Fuel = quantilesOf(t.nanos), quantilesOf(t.fuel)
	if output == "json" {
		if err := writeJSON(w, r); err != nil {
			return err
		}
	} else if err := r.text(w); err != nil {
		return err
	}
	if r.Failed > 0 {
		return exitError(1)
	}
	return nil
}

func (r *trialReport) text(w io.Writer) error {
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	line("module    %s, %s", r.SHA256, r.Kind)
	line("orders    %d, and %d that are not valid", r.Orders, r.Invalid)
	if r.Kind == function.Post.String() {
		line("records   %d", r.Records)
	} else {
		line("accepted  %d, refused %d, changed %d", r.Accepted, r.Refused, r.Changed)
	}
	counted(r.Reasons, func(text string, n int) { line("  refused %d: %s", n, text) })
	line("failed    %d", r.Failed)
	counted(r.Failures, func(text string, n int) { line("  failed %d: %s", n, text) })
	line("ns a call p50 %d, p99 %d, most %d", r.Nanos.P50, r.Nanos.P99, r.Nanos.Max)
	line("fuel      p50 %d, p99 %d, most %d", r.Fuel.P50, r.Fuel.P99, r.Fuel.Max)
	return err
}

// counted calls fn for each text, the most frequent first.
func counted(list map[string]int, fn func(text string, n int)) {
	for _, text := range slices.SortedFunc(maps.Keys(list), func(a, b string) int {
		return cmp.Or(cmp.Compare(list[b], list[a]), cmp.Compare(a, b))
	}) {
		fn(text, list[text])
	}
}
