package report

import (
	"fmt"
	"slices"
	"strings"
)

// judgeValid reports whether the guards accept the figures, and confirms that orders were created
// on schedule.
func judgeValid(r *Report) Judgement {
	j := Judgement{Name: "VALID", Status: Pass}
	bad, guards := 0, []string{}
	lag, late := 0.0, 0.0
	for _, c := range r.Checks {
		if len(c.Reasons) == 0 {
			lag, late = max(lag, c.LagP99Us), max(late, c.LatePct)
			continue
		}
		bad++
		for _, why := range c.Reasons {
			if !slices.Contains(guards, why.Guard) {
				guards = append(guards, why.Guard)
			}
		}
	}
	rates, status, reason := r.invalidRates()
	switch {
	case bad == 0:
		j.Detail = fmt.Sprintf("all %d runs met the guards", len(r.Checks))
	case rates == 0:
		j.Detail = fmt.Sprintf("%d of %d runs did not meet the guards (%s) and are left out; every rate has a valid run", bad, len(r.Checks), strings.Join(guards, ", "))
	default:
		j.Status = status
		j.Detail = fmt.Sprintf("%d of %d rates have no valid run; guards not met: %s; %s", rates, len(r.groups), strings.Join(guards, ", "), reason)
	}
	if bad < len(r.Checks) {
		j.Detail += fmt.Sprintf("; orders were created on schedule: in the worst valid run 99 %% within %s us, %.2f %% more than 1 ms late", short(lag), late)
	}
	return j
}

// invalidRates counts the rates without a valid run, and returns the reason of the first.
func (r *Report) invalidRates() (n int, status, reason string) {
	for _, g := range r.groups {
		if !g.invalid() || r.beyondKnee(g) {
			continue
		}
		var all []Reason
		for _, run := range g.runs {
			all = append(all, run.reasons...)
		}
		if n++; n == 1 {
			reason = fmt.Sprintf("at %s: %s", thousands(float64(g.rate)), g.why())
		}
		if status != Contended {
			status = worst(all)
		}
	}
	return n, status, reason
}

// Failed are the judgements that failed: the figures are valid, but outside the limits of the
// scenario.
func (r *Report) Failed() (names []string) {
	for _, j := range r.Judgements {
		if j.Status == Fail {
			names = append(names, j.Name)
		}
	}
	return names
}

// disturbed is why a group of runs cannot be judged, to be added to a detail.
func disturbed(groups ...*group) string {
	for _, g := range groups {
		if g.invalid() {
			return fmt.Sprintf("; at %s not valid: %s", thousands(float64(g.rate)), g.why())
		}
	}
	return ""
}
