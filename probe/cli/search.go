package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// searchFlags configure stac-knee.
type searchFlags struct {
	objective      string
	from, to, goal int
}

// searchNames are the flags, which other scenarios refuse.
var searchNames = []string{"objective", "from", "to", "goal"}

func (f *searchFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.objective, "objective", "", "with stac-knee: what the highest rate has to meet, such as mean<=1ms or p99<=500us of create-to-end (default mean<=1ms)")
	set.IntVar(&f.from, "from", 0, "with stac-knee: the lowest rate tried, orders per second of each probe")
	set.IntVar(&f.to, "to", 0, "with stac-knee: the highest rate tried, orders per second of each probe")
	set.IntVar(&f.goal, "goal", 0, "with stac-knee: total orders per second for which pairs of servers are counted (default 15000)")
}

func (f *searchFlags) options(set *pflag.FlagSet, o *scenario.Options) error {
	changed := false
	for _, name := range searchNames {
		if set.Changed(name) {
			changed = true
			if set.Lookup(name).Value.String() == "0" {
				return fmt.Errorf("--%s 0: must be more than 0; leave it out for the scenario's own", name)
			}
		}
	}
	if !changed {
		return nil
	}
	s := scenario.Search{From: f.from, To: f.to, Goal: f.goal}
	if set.Changed("objective") {
		var err error
		if s.Objective, err = scenario.ParseObjective(f.objective); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	o.Search = &s
	return nil
}
