package robustness

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
)

// Scenario is one named kind of trouble.
type Scenario struct {
	Name     string
	Short    string   // one line
	Targets  []string // where it can run: dev, cluster
	Repeat   int      // default number of repetitions
	Goals    Goals
	NodeArgs []string // more flags of grid-node serve, on dev
	// Memory of each node in MiB; 0: the default.
	MemoryMiB int64
	run       func(ctx context.Context, e *Env, n int) error // one repetition, from redundancy to redundancy
}

// Goals are what the service level promises; safety is judged always.
type Goals struct {
	// Outage is what the p99 over repetitions of the longest time any session was
	// without an acknowledgement must not exceed; 0: not judged.
	Outage time.Duration
	// NoFailed: not one order may fail.
	NoFailed bool
	// Steady: the p99 of orders during the fault must not exceed twice that before.
	Steady bool
	// Silent: from the fault until it was healed nothing may be acknowledged.
	Silent bool
}

// HandOverDelay is what a grid on a cluster is made with: see timing.handOverDelay
// of an OrderGrid. Short only where hand-overs are what it is about.
func (s Scenario) HandOverDelay() time.Duration {
	if s.Name == "hand-over" {
		return 500 * time.Millisecond
	}
	return 10 * time.Minute // the longest there is
}

// String is for lists.
func (g Goals) String() string {
	var out []string
	if g.Outage > 0 {
		out = append(out, fmt.Sprintf("p99 of the outage at most %s", g.Outage))
	}
	if g.NoFailed {
		out = append(out, "no failed order")
	}
	if g.Steady {
		out = append(out, "p99 of orders at most twice that before")
	}
	if g.Silent {
		out = append(out, "no order acknowledged while it cannot be safe")
	}
	if len(out) == 0 {
		return "safety only"
	}
	return strings.Join(out, ", ")
}

var both = []string{"dev", "cluster"}

// Scenarios scenarios, in the order of the list.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "calm", Short: "nothing happens: what this machine adds by itself", Targets: both, Repeat: 5, Goals: Goals{NoFailed: true}, run: calm},
		{Name: "kill-primary", Short: "kill -9 of a primary", Targets: both, Repeat: 20, Goals: Goals{Outage: 50 * time.Millisecond, NoFailed: true}, run: killPrimary},
		{Name: "kill-backup", Short: "kill -9 of a backup", Targets: both, Repeat: 20, Goals: Goals{Outage: 50 * time.Millisecond, NoFailed: true}, run: killBackup},
		{Name: "kill-both-in-turn", Short: "kill -9 of the primary; once redundant again, of the process that took over", Targets: both, Repeat: 20, Goals: Goals{Outage: 50 * time.Millisecond, NoFailed: true}, run: killBothInTurn},
		{Name: "silent-cut", Short: "all packets of a primary's node are dropped, for as long as it takes and a second", Targets: both, Repeat: 10, Goals: Goals{Outage: time.Second, NoFailed: true}, run: silentCut},
		{Name: "sigstop", Short: "a primary is suspended for 5 s and resumes (SIGSTOP, SIGCONT)", Targets: both, Repeat: 5, Goals: Goals{Outage: time.Second, NoFailed: true}, run: sigstop},
		{Name: "hand-over", Short: "another pod is preferred as primary", Targets: both, Repeat: 20, Goals: Goals{Outage: 10 * time.Millisecond, NoFailed: true}, NodeArgs: []string{"--hand-over-delay", "500ms"}, run: handOver},
		{Name: "planned-stop", Short: "SIGTERM of a primary, on a cluster deletion of its pod", Targets: both, Repeat: 10, Goals: Goals{NoFailed: true}, run: plannedStop},
		{Name: "drain", Short: "kubectl drain of a primary's node, then uncordon", Targets: []string{"cluster"}, Repeat: 5, Goals: Goals{NoFailed: true}, run: drain},
		{Name: "rolling-update", Short: "a change of spec that needs new pods: the operator replaces all, one at a time", Targets: []string{"cluster"}, Repeat: 3, Goals: Goals{NoFailed: true}, run: rollingUpdate},
		{Name: "api-outage", Short: "the API server is unavailable for --away while the grid is healthy", Targets: both, Repeat: 1, Goals: Goals{NoFailed: true, Steady: true}, run: apiOutage},
		{Name: "api-outage-then-kill", Short: "the API server is unavailable, then a primary is killed: writes stop until it is back", Targets: both, Repeat: 3, Goals: Goals{NoFailed: true, Silent: true}, run: apiOutageThenKill},
		{Name: "rejoin", Short: "kill -9 of a primary of a grid that holds --fill-mib of log: a new process catches up while orders flow", Targets: both, Repeat: 3, MemoryMiB: 4096,
			Goals: Goals{NoFailed: true}, run: rejoin},
		{Name: "same-name", Short: "a primary's pod is cut off and made anew under its name, then the old one is back on the network", Targets: both, Repeat: 5, Goals: Goals{Outage: time.Second, NoFailed: true}, run: sameName},
	}
}

// FindScenario returns the scenario of that name.
func FindScenario(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("--scenario: value %.60q, allowed: %s", name, strings.Join(names, ", "))
}

// On reports whether the scenario can run on the target.
func (s Scenario) On(target string) error {
	for _, t := range s.Targets {
		if t == target {
			return nil
		}
	}
	return fmt.Errorf("scenario %s: --target is %s, allowed: %s: %w", s.Name, target, strings.Join(s.Targets, ", "), faults.ErrUnsupported)
}
