package report

// RoundTrip is the time of a Ping to a server and back, measured before the first step, at a rate
// of the plan. The server answers it without its log.
type RoundTrip struct {
	Probe    string    `json:"probe"`
	Replicas int       `json:"replicas"` // copies in the grid it was measured against
	Rate     int       `json:"ratePerProbe"`
	Latency  Histogram `json:"latency"` // of every ping
	Lag      Histogram `json:"lag"`     // created - intended
	// Machine is its state meanwhile. It belongs to no step.
	Machine *Conditions `json:"machine,omitempty"`
}

// verdict of the figures, by the guards that a step has too.
func (t *RoundTrip) verdict(r *Result) (verdict string, reasons []Reason) {
	say := func(guard, verdict, format string, args ...any) {
		reasons = append(reasons, reasonOf(guard, verdict, format, args...))
	}
	if t.Machine != nil {
		guardConditions(r, *t.Machine, say)
	}
	if lag := t.Lag.Percentile(99); lag > maxLagP99Ns {
		say("schedule", Invalid, "probe %s created 1 %% of pings more than %s us late (allowed 1,000)", t.Probe, micros(float64(lag)))
	}
	if len(reasons) == 0 {
		return OK, nil
	}
	return worst(reasons), reasons
}
