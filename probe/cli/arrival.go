package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// arrivalFlags select the orders and how they arrive.
type arrivalFlags struct {
	arrival, orders, replay, format, speeds string
	branching, maxMessages                  int
	seed                                    uint64

	recording *flow.Recording // once read
}

func (f *arrivalFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.arrival, "arrival", "", "how orders arrive: steady, hawkes (bursts), day (a trading day, compressed) or replay (default: the scenario's)")
	set.StringVar(&f.orders, "orders", "", "uniform, the 305-byte order of the published tests, or varied: new, cancel and replace of many symbols (default: uniform when steady)")
	set.IntVar(&f.branching, "branching", 0, fmt.Sprintf("with hawkes: of 100 orders, how many are triggered by an earlier one, %d to %d (default %d)", flow.MinBranching, flow.MaxBranching, flow.DefaultBranching))
	set.Uint64Var(&f.seed, "seed", 0, fmt.Sprintf("of all random choices: the same seed gives the same orders (default %d)", flow.DefaultSeed))
	set.StringVar(&f.replay, "replay", "", "with replay: the recording, a LOBSTER message file or a log of FIX messages")
	set.StringVar(&f.format, "replay-format", "", "lobster or fix (default: lobster for a file whose name ends in .csv, else fix)")
	set.StringVar(&f.speeds, "speeds", "", fmt.Sprintf("with replay: how many times as fast as recorded, such as 1,4; each %d to %d", flow.MinSpeed, flow.MaxSpeed))
	set.IntVar(&f.maxMessages, "max-messages", 0, fmt.Sprintf("with replay: messages read from the recording, at most (default %d)", flow.DefaultMaxMessages))
}

// options adds the flags to the options of a scenario.
func (f *arrivalFlags) options(set *pflag.FlagSet, name string, o *scenario.Options) error {
	a := flow.Arrival{Branching: f.branching, Seed: f.seed, MaxMessages: f.maxMessages}
	for flag, zero := range map[string]bool{"branching": f.branching == 0, "seed": f.seed == 0, "max-messages": f.maxMessages == 0} {
		if set.Changed(flag) && zero {
			return fmt.Errorf("--%s 0: must be more than 0; leave it out for the default", flag)
		}
	}
	if f.arrival != "" {
		t, err := flow.ParseType(f.arrival)
		if err != nil {
			return fmt.Errorf("--%w", err)
		}
		a.Type = t
	}
	if f.orders != "" {
		orders, err := scenario.ParseOrders(f.orders)
		if err != nil {
			return fmt.Errorf("--%w", err)
		}
		o.Orders = orders
	}
	if f.speeds != "" {
		for part := range strings.SplitSeq(f.speeds, ",") {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(part), "x"))
			if err != nil {
				return fmt.Errorf("--speeds: %.40q is not a whole number; write for example 1,4", part)
			}
			o.Speeds = append(o.Speeds, n)
		}
	}
	replays := a.Type == flow.Replay || a.Type == "" && name == "flow-replay"
	switch {
	case replays && f.replay == "":
		return fmt.Errorf("--replay: name a recording to play, a LOBSTER message file (.csv) or a log of FIX messages")
	case !replays && (f.replay != "" || f.format != ""):
		return fmt.Errorf("--replay: only with --arrival replay or scenario flow-replay")
	case replays:
		if err := f.read(a.MaxMessages); err != nil {
			return err
		}
		o.Recording = f.recording
	}
	o.Arrival = &a
	return nil
}

// read reads the recording once; several scenarios may play it.
func (f *arrivalFlags) read(most int) error {
	if f.recording != nil {
		return nil
	}
	format := flow.FIXLog
	if strings.EqualFold(filepath.Ext(f.replay), ".csv") {
		format = flow.Lobster
	}
	if f.format != "" {
		var err error
		if format, err = flow.ParseFormat(f.format); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	if most == 0 {
		most = flow.DefaultMaxMessages
	}
	file, err := os.Open(f.replay)
	if err != nil {
		return fmt.Errorf("--replay: %w", err)
	}
	defer file.Close()
	if f.recording, err = flow.Read(file, filepath.Base(f.replay), format, most); err != nil {
		return fmt.Errorf("--replay: %w", err)
	}
	return nil
}

// about describes what was read.
func (f *arrivalFlags) about() string {
	r := f.recording
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("%s: %d messages over %v; %d lines are not client messages", r.Name, r.Messages(), r.Span(), r.Skipped)
	if r.Orphans > 0 {
		text += fmt.Sprintf(", %d are about orders older than the recording and are left out", r.Orphans)
	}
	if r.Cut {
		text += "; it goes on, see --max-messages"
	}
	return text
}
