package host

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Limits of a quiet machine. Shares are per cent of all cores.
type Limits struct {
	MaxBusy    float64 // before a round: everything but us
	MaxRunning int     // before a round: processes running or runnable, this one included
	MaxSteal   float64 // during a round: time the hypervisor gave to others
	MaxForeign float64 // during a round: processes that are neither the generator nor the system
}

// Quiet limits. Foreign includes the kernel's own threads, which do part of
// the network's work.
var Quiet = Limits{MaxBusy: 8, MaxRunning: 2, MaxSteal: 3, MaxForeign: 8}

// look is how long the machine is watched before a round.
const look = 300 * time.Millisecond

// State is an observation.
type State struct {
	Busy, Steal, Load1 float64
	Running            int
}

// String is for progress lines.
func (s State) String() string {
	return fmt.Sprintf("%.0f %% busy, %.0f %% stolen, %d running, load %.2f", s.Busy, s.Steal, s.Running, s.Load1)
}

// Look watches the idle machine.
func Look() (State, error) {
	a, err := Take(nil)
	if err != nil {
		return State{}, err
	}
	s := State{Running: 1 << 30}
	for range 6 { // the least of several looks: what runs for an instant does no harm
		time.Sleep(look / 6)
		n, err := running()
		if err != nil {
			return State{}, err
		}
		s.Running = min(s.Running, n)
	}
	b, err := Take(nil)
	if err != nil {
		return State{}, err
	}
	u := Between(a, b, true)
	s.Busy, s.Steal, s.Load1 = u.Busy-u.Own, u.Steal, b.Load1
	return s, nil
}

// AwaitQuiet looks until the machine is quiet, or for so long as patience; then
// it returns the last observation. say is called now and then with what it waits for.
func (l Limits) AwaitQuiet(ctx context.Context, patience time.Duration, say func(State)) (State, bool, error) {
	end := time.Now().Add(patience)
	told := time.Now()
	for {
		s, err := Look()
		if err != nil || l.quiet(s) {
			return s, err == nil, err
		}
		if time.Now().After(end) {
			return s, false, nil
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			say(s)
		}
		select {
		case <-ctx.Done():
			return s, false, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (l Limits) quiet(s State) bool {
	return s.Busy <= l.MaxBusy && s.Running <= l.MaxRunning && s.Steal <= l.MaxSteal
}

// Judge returns what was wrong with a round; "" if nothing.
func (l Limits) Judge(u Use) string {
	var bad []string
	if u.Steal > l.MaxSteal {
		bad = append(bad, fmt.Sprintf("%.1f %% of CPU time stolen (allowed %.0f)", u.Steal, l.MaxSteal))
	}
	if u.Foreign > l.MaxForeign {
		bad = append(bad, fmt.Sprintf("other processes used %.1f %% of the cores (allowed %.0f)", u.Foreign, l.MaxForeign))
	}
	return strings.Join(bad, "; ")
}

// running reads procs_running of /proc/stat.
func running() (int, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseRunning(b)
}

func parseRunning(stat []byte) (int, error) {
	sc := bufio.NewScanner(bytes.NewReader(stat))
	sc.Buffer(nil, 1<<20) // the line of interrupts is long
	for sc.Scan() {
		if rest, ok := strings.CutPrefix(sc.Text(), "procs_running "); ok {
			return strconv.Atoi(strings.TrimSpace(rest))
		}
	}
	return 0, fmt.Errorf("/proc/stat has no procs_running")
}
