package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/probe/published"
)

// differences are the parameters that are not those of the published run, in words.
func (p *Plan) differences(exact published.Params) (out []string) {
	say := func(differs bool, format string, args ...any) {
		if differs {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	whose := "published run"
	if IsFlow(p.Scenario) || p.Scenario == published.WriteScenario {
		whose = "at full size"
	}
	say(p.speeds == nil && p.Search == nil && !slices.Equal(p.Rates, exact.RatesPerProbe), "rates %s orders/s per probe (%s: %s)", list(p.Rates), whose, list(exact.RatesPerProbe))
	say(p.Warmup != int64(exact.WarmupS)*1000, "warm-up %v (%d s)", p.WarmupTime(), exact.WarmupS)
	say(p.Measure != int64(exact.MeasureS)*1000, "measured %v a run (%d s)", p.MeasureTime(), exact.MeasureS)
	say(p.Repeats != exact.Repeats, "%d %s a rate (%d)", p.Repeats, Plural(p.Repeats, "run", "runs"), exact.Repeats)
	say(p.Threads != exact.Threads, "%d publishing %s (%d)", p.Threads, Plural(p.Threads, "thread", "threads"), exact.Threads)
	if len(p.Pairs) == 0 {
		say(p.Probes != max(exact.Probes, 1), "%d %s (%d)", p.Probes, Plural(p.Probes, "probe", "probes"), max(exact.Probes, 1))
	}
	if p.Arrival != nil && !IsFlow(p.Scenario) {
		say(!p.Arrival.IsSteady(), "arrival %s (steady)", p.Arrival)
	}
	say(p.Varied && !IsFlow(p.Scenario), "orders varied, with cancels and replaces (one and the same order)")
	if p.Search != nil {
		say(p.Search.differs != "", "objective %s (%s)", p.Search.Objective, p.Search.differs)
	}
	return out
}

// Plural is the word for one, or for another number.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func list(v []int) string {
	s := make([]string, len(v))
	for i, n := range v {
		s[i] = fmt.Sprint(n)
	}
	return strings.Join(s, ", ")
}
