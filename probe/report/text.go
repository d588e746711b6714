package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// TextOptions change how Text prints.
type TextOptions struct {
	Color bool
	// PerRun also prints mean and median of every probe and run.
	PerRun bool
}

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer, o TextOptions) error {
	p := paint(plain)
	if o.Color {
		p = coloured
	}
	t := &text{Page: NewPage(w), r: r, p: p}
	t.head()
	for _, table := range r.Tables(o.PerRun) {
		t.table(table)
	}
	t.remarks()
	t.judgements()
	t.notes()
	return t.err
}

type text struct {
	*Page
	r *Report
	p paint
}

func (t *text) table(g *Table) {
	t.Say("\n%s\n", t.p("head", g.Title))
	if t.err == nil {
		t.err = g.write(t.w, t.p)
	}
}

func (t *text) head() {
	r := t.r
	t.Say("%s\n", t.p("head", r.Scenario+": "+r.Reproduces))
	mode := "the parameters of the published run"
	if scenario.IsFlow(r.Scenario) || r.Result.isWrite() {
		mode = "at full size"
	}
	if len(r.Result.Plan.Differences) > 0 {
		mode = strings.Join(r.Result.Plan.Differences, "; ")
	}
	t.Say("  run        %s, %s\n", r.Result.Plan.Mode, mode)
	t.Say("  published  %s\n", r.Source)
	if a := r.Result.Plan.Arrival; a != nil {
		t.Say("  arrival    %s; %s\n", a, ordersText(r.Result.Plan))
	}
	for _, m := range r.Result.Manifests {
		where := fmt.Sprintf("%s, %d cores, %d MiB, Linux %s, order-probe %s, %s", m.CPU, m.Cores, m.MemoryMiB, m.Kernel, m.Version, m.GoVersion)
		if m.Virtual {
			where += ", virtual machine"
		}
		t.Say("  here       probe %s: %s\n", m.Probes, where)
		if m.Through != "" {
			t.Say("  through    FIX sessions of order-gateway at %s, one for each publishing thread: an order ends with its ExecutionReport\n", strings.Join(m.Gateways, ", "))
		}
	}
	if r.Result.isWrite() {
		t.writeHead()
		return
	}
	if r.Result.shared() {
		t.Say("             probes and servers share these cores and communicate over loopback or a local bridge; the published ones had\n" +
			"             a blade each with eight cores and InfiniBand between them\n")
	}
	if r.Result.Plan.Replicas > 1 && !r.Result.isTimeplot() {
		t.Say("  an order   is in the memory of %d servers before it is acknowledged: here as one replicated log, in the report as a\n"+
			"             region and a queue, each replicated\n", r.Result.Plan.Replicas)
	}
}

func (t *text) writeHead() {
	if t.r.Result.shared() {
		t.Say("             probe and servers share these cores and communicate over loopback or a local bridge; the published client had a\n" +
			"             machine of its own and 1 Gbit/s Ethernet between it and the server\n")
	}
	t.Say("  published  says neither how long was measured nor at which rates; rates and times are those of this program\n")
}

// remarks prints why runs are not valid, and what was wrong in the logs.
func (t *text) remarks() {
	if c, ok := t.r.ServerCPU(); ok {
		t.Say("  %s\n", c)
	}
	remarks := t.r.Remarks()
	if slices.ContainsFunc(remarks, func(m Remark) bool { return m.Guard != "" }) {
		t.Say("  %s marks a figure of runs that are not valid: it counts for no ratio and no verdict\n", notCounted)
	}
	for _, m := range remarks {
		t.Say("  %s %s: %s\n", t.p(m.Style(), m.Verdict), m.Where, m.Text)
		if m.Advice != "" {
			t.Say("    what to do: %s\n", m.Advice)
		}
	}
}

func (t *text) judgements() {
	t.Say("\n")
	for _, j := range t.r.Judgements {
		t.Say("  %-8s %s  %s\n", j.Name, t.p(j.Style(), fmt.Sprintf("%-10s", j.Status)), j.Detail)
	}
	t.Say("  %-8s %s  %s\n", "RUN", t.p(t.r.Style(), fmt.Sprintf("%-10s", t.r.Verdict)), t.r.Reason)
}

func (t *text) notes() {
	if len(t.r.Notes) > 0 {
		t.Say("\n")
	}
	for i, n := range t.r.Notes {
		t.Say("  [%s] %s\n", noteLetter(i), n)
	}
}
