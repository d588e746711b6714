package htmlreport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

// fact is one line of the manifest.
type fact struct {
	Name   string
	Values []string
}

// manifest is the configuration and environment of a run.
func manifest(r *report.Report) []fact {
	plan := r.Result.Plan
	out := []fact{
		{"Run", []string{r.Result.RunID + ", started " + started(r.Result.StartedAt)}},
		{"Parameters", []string{
			"mode " + string(plan.Mode),
			fmt.Sprintf("%s of %s each; %s of %s each", countText(plan.Probes, "probe"), countText(plan.Threads, "publishing thread"), countText(plan.Shards, "shard"), countText(plan.Replicas, "server")),
			fmt.Sprintf("rates %s orders/s of each probe; %s warm-up, %s measured, %s a rate", joinRates(plan.Rates), plan.WarmupTime(), plan.MeasureTime(), countText(plan.Repeats, "run")),
		}},
	}
	differs := plan.Differences
	if len(differs) == 0 {
		differs = []string{"none"}
	}
	out = append(out, fact{"Differs from the published run in", differs})
	write := r.Scenario == published.WriteScenario
	if r.Shared() {
		machines := "the published ones had a blade each with eight cores and InfiniBand between them"
		if write {
			machines = "the published client had a machine of its own and 1 Gbit/s Ethernet between it and the server"
		}
		out = append(out, fact{"Shared cores", []string{"Probes and servers share these cores and talk over loopback or a local bridge; " + machines + "."}})
	}
	if plan.Replicas > 1 && !write {
		out = append(out, fact{"An order", []string{fmt.Sprintf("is in the memory of %d servers before it is acknowledged: here as one replicated log, in the published report as a region and a queue, each replicated.", plan.Replicas)}})
	}
	for _, m := range r.Result.Manifests {
		out = append(out, machine(m, len(r.Result.Manifests) > 1)...)
	}
	if ms := r.Result.Manifests; len(ms) > 0 && ms[0].Through != "" {
		out = append(out, fact{"Through", []string{"FIX sessions of order-gateway at " + strings.Join(ms[0].Gateways, ", ") + ", one for each publishing thread: an order ends with its ExecutionReport"}})
	}
	for _, p := range r.Result.Probes {
		out = append(out, fact{"Probe " + p.Name, []string{"partition " + p.Partition + "; logs read back from " + strings.Join(p.Copies, ", ")}})
	}
	return out
}

func joinRates(rates []int) string {
	words := make([]string, len(rates))
	for i, v := range rates {
		words[i] = numtext.Thousands(float64(v))
	}
	return strings.Join(words, "; ")
}

func machine(m report.Manifest, several bool) []fact {
	suffix := ""
	if several {
		suffix = " of probe " + m.Probes
	}
	kind := "physical machine"
	if m.Virtual {
		kind = "virtual machine"
	}
	version := "order-probe " + m.Version
	if m.Revision != "" {
		version += ", revision " + m.Revision
	}
	out := []fact{
		{"Machine" + suffix, []string{fmt.Sprintf("%s, %d cores, %s MiB, %s, host %s", m.CPU, m.Cores, numtext.Thousands(float64(m.MemoryMiB)), kind, m.Host)}},
		{"Kernel" + suffix, []string{fmt.Sprintf("%s %s, governor %s", m.OS, m.Kernel, orUnknown(m.Governor))}},
		{"Versions" + suffix, []string{fmt.Sprintf("%s, %s, GOMAXPROCS %d, FIX %s", version, m.GoVersion, m.GoMaxProcs, m.FIX)}},
		{"Grid" + suffix, []string{orUnknown(m.Grid)}},
		{"Flags" + suffix, []string{orUnknown(strings.Join(m.Flags, " "))}},
	}
	if len(m.Settings) == 0 {
		return out
	}
	var settings []string
	for name, value := range m.Settings {
		settings = append(settings, name+" = "+value)
	}
	slices.Sort(settings)
	return append(out, fact{"Kernel settings" + suffix, settings})
}

func orUnknown(s string) string {
	if s == "" {
		return "not known"
	}
	return s
}
