package report

import (
	"fmt"
	"math"
)

// Verdicts of a row.
const (
	OK        = "ok"
	Invalid   = "INVALID"
	Contended = "INVALID-CONTENDED"
	Incorrect = "INCORRECT"
	NoValue   = "n/a"
)

// The guards of the scenarios (published.Data.Guards), in numbers.
const (
	maxLagP99Ns      = 1_000_000 // schedule: p99 of created - intended
	maxLateShare     = 0.01      // schedule: orders created more than 1 ms late
	minCreatedShare  = 0.99      // rate: created in the measured time, of what was asked for
	minAckedShare    = 0.97      // rate: acknowledged in the measured time; a stall at its end moves some out of it
	maxProbePct      = 80        // generator: probe's use of its cores
	maxPressurePct   = 20        // host: tasks waiting for a core ...
	maxStealPct      = 2         // ... together with time stolen by the hypervisor
	maxForeignPct    = 15        // host: use of the cores by neither probe nor grid
	maxScaleBusyPct  = 70        // stac-scale on shared cores
	minSamplesOfARun = 20
	minBurstFano     = 6 // arrival: Fano factor at 100 ms of bursts as in the record
	maxBurstFano     = 14
)

// worst verdict of reasons that are at least one.
func worst(reasons []Reason) string {
	for _, why := range reasons {
		if why.Verdict == Contended {
			return Contended
		}
	}
	return Invalid
}

// guard returns why a run is not valid; nothing if it is.
func guard(r *Result, v run) (reasons []Reason) {
	say := func(guard, verdict, format string, args ...any) {
		reasons = append(reasons, reasonOf(guard, verdict, format, args...))
	}
	// Other load on the machine comes first: the rest follows from it.
	for _, c := range v.conditions {
		guardConditions(r, c, say)
	}
	for _, p := range v.probes {
		guardProbe(r, v, p, say)
	}
	if len(v.probes) < v.step.Probes {
		say("topology", Invalid, "results of %d probes, the step has %d", len(v.probes), v.step.Probes)
	}
	return reasons
}

func reasonOf(guard, verdict, format string, args ...any) Reason {
	return Reason{guard, verdict, fmt.Sprintf(format, args...)}
}

type sayFunc func(guard, verdict, format string, args ...any)

func guardProbe(r *Result, v run, p probeRun, say sayFunc) {
	if lag := p.Lag.Percentile(99); lag > maxLagP99Ns {
		say("schedule", Invalid, "probe %s created 1 %% of orders more than %s us late (allowed 1,000)%s", p.name, micros(float64(lag)), late(p))
	} else if share := ratio(p.LateCreated, p.Intended); share > maxLateShare {
		say("schedule", Invalid, "probe %s created %.1f %% of orders more than 1 ms late (allowed 1 %%)%s", p.name, 100*share, late(p))
	}
	asked := asked(r, v, p)
	if p.CreatedRate < minCreatedShare*asked {
		say("rate", Invalid, "probe %s created %s orders/s of %s", p.name, thousands(p.CreatedRate), thousands(asked))
	} else if p.AckedRate < minAckedShare*asked {
		say("capacity", Invalid, "probe %s: %s orders/s acknowledged of %s offered: the grid did not keep up", p.name, thousands(p.AckedRate), thousands(asked))
	}
	flowGuard(r, v, p, say)
	if p.Samples < minSamplesOfARun {
		say("samples", Invalid, "probe %s has %d samples (at least %d needed)", p.name, p.Samples, minSamplesOfARun)
	}
	if p.Rejected+p.Unknown+p.Unsent > 0 {
		say("answers", Invalid, "probe %s: %d orders refused, %d unanswered, %d never sent: latencies of the rest are too low", p.name, p.Rejected, p.Unknown, p.Unsent)
	}
	if p.Detector != "" {
		say("detector", Invalid, "probe %s: %s", p.name, p.Detector)
	}
	if want := r.Plan.Copies(v.step); p.Acked > 0 && p.MinCopies != want {
		say("topology", Invalid, "probe %s: acknowledged with %d copies, the scenario has %d", p.name, p.MinCopies, want)
	}
}

func guardConditions(r *Result, c Conditions, say sayFunc) {
	if c.ProbePct >= maxProbePct {
		say("generator", Invalid, "the probe used %.0f %% of its cores (allowed %d)", c.ProbePct, maxProbePct)
	}
	if c.StealPct >= maxStealPct && c.PressurePct >= maxPressurePct {
		say("host", Contended, "%.1f %% of CPU time stolen (allowed %d) while tasks waited %.0f %% of the time (allowed %d)",
			c.StealPct, maxStealPct, c.PressurePct, maxPressurePct)
	}
	if c.ForeignPct >= maxForeignPct {
		say("host", Contended, "other processes used %.0f %% of the cores (allowed %d)", c.ForeignPct, maxForeignPct)
	}
	if r.Plan.Scenario == "stac-scale" && r.shared() && c.BusyPct >= maxScaleBusyPct {
		say("host", Contended, "pairs share %d cores that were %.0f %% busy (allowed %d): they slow each other down", c.Cores, c.BusyPct, maxScaleBusyPct)
	}
}

func (r *Result) shared() bool {
	for _, m := range r.Manifests {
		if m.Shared {
			return true
		}
	}
	return false
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
