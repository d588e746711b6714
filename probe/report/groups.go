package report

// Group is all runs at one rate with one number of pairs and one kind of arrival: its valid runs
// merged, or all of them if none is valid (see Verdict).
type Group struct {
	Pairs, Rate, TotalRate int
	Arrival                string // as Row.Arrival, or Row.Record: the kind of arrival, the record or the servers, empty where all were alike
	Verdict, Reason        string // as Row.Verdict

	CreateToEnd, SendToEnd, IntendedToEnd, Lag Histogram

	Runs []GroupRun // all, valid or not
}

// GroupRun is one step over all its probes.
type GroupRun struct {
	Run        int // from 1
	Valid      bool
	Probes     []NamedStep
	Conditions []Conditions
}

// NamedStep is one probe's share of a run.
type NamedStep struct {
	Probe string
	ProbeStep
}

// Groups of the report, in order of pairs and rate.
func (r *Report) Groups() []Group {
	out := make([]Group, 0, len(r.groups))
	for _, g := range r.groups {
		verdict, reason := g.verdict()
		x := Group{Pairs: g.pairs, Rate: g.rate, TotalRate: g.total, Arrival: g.label, Verdict: verdict, Reason: reason,
			CreateToEnd: g.c2e, SendToEnd: g.s2e, IntendedToEnd: g.i2e, Lag: g.lag}
		for _, v := range g.runs {
			run := GroupRun{Run: v.step.Run, Valid: len(v.reasons) == 0, Conditions: v.conditions}
			for _, p := range v.probes {
				run.Probes = append(run.Probes, NamedStep{p.name, p.ProbeStep})
			}
			x.Runs = append(x.Runs, run)
		}
		out = append(out, x)
	}
	return out
}

// Figure is the merged row of a group, such as "c2e mean"; not ok if there is none.
func (r *Report) Figure(g Group, metric string) (Row, bool) {
	return r.figureOf(&group{pairs: g.Pairs, rate: g.Rate, label: g.Arrival}, metric)
}

// Shared reports that probes and servers ran on the same cores.
func (r *Report) Shared() bool { return r.Result.shared() }
