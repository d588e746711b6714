package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ordergrid/ordergrid/probe/scenario"
)

// ResultSchema names the version of the Result encoding. A change that an older reader would
// misread gets a new name.
const ResultSchema = "ordergrid.dev/probe-result/v1"

// Result is the measurement of one process; Merge joins those of several.
type Result struct {
	Schema    string        `json:"schema"`
	RunID     string        `json:"runID"`
	StartedAt string        `json:"startedAt"` // RFC 3339
	Plan      scenario.Plan `json:"plan"`
	Manifests []Manifest    `json:"manifests"`
	Probes    []Probe       `json:"probes"`
	// Conditions are the machines' states during each step, one a process.
	Conditions []Conditions `json:"conditions"`
	// RoundTrips are the measurements of gs-write before its first step.
	RoundTrips []RoundTrip `json:"roundTrips,omitempty"`
	// Omitted names what was left out to fit the size limit.
	Omitted []string `json:"omitted,omitempty"`
}

// Probe is one probe's share of a run.
type Probe struct {
	Name      string      `json:"name"` // A, B, C ...
	Index     int         `json:"index"`
	Partition string      `json:"partition"` // such as p1
	Copies    []string    `json:"copies"`    // addresses of the logs that were read back
	Steps     []ProbeStep `json:"steps"`
}

// ProbeStep is one step of one probe. Counts of orders cover the whole step; histograms and Samples
// only the measured part, selected by intended time.
type ProbeStep struct {
	Step int `json:"step"` // index in Plan.Steps
	// StartedNs is the step's intended start, unix nanoseconds.
	StartedNs int64 `json:"startedNs"`

	Created  int64 `json:"created"`
	Acked    int64 `json:"acked"`
	Rejected int64 `json:"rejected"`
	Unknown  int64 `json:"unknown"`
	Unsent   int64 `json:"unsent"`
	// MinCopies is the smallest number of servers that held an order when it
	// was acknowledged, from the receipts; an ExecutionReport has none, and then it is how many
	// copies were read back after the step.
	MinCopies int `json:"minCopies"`

	// Ledger is the comparison with the primary's log, Backups the sum of those with the other
	// copies.
	Ledger  LedgerCounts `json:"ledger"`
	Backups LedgerCounts `json:"backups"`
	// Detector is empty, or why the loss detector cannot be trusted.
	Detector string `json:"detector,omitempty"`

	Intended    int64 `json:"intended"`    // orders intended in the measured part
	Samples     int64 `json:"samples"`     // of those, acknowledged
	LateCreated int64 `json:"lateCreated"` // created more than 1 ms after intended
	Over1ms     int64 `json:"over1ms"`     // create-to-end above 1 ms
	// Disorder counts orders whose send-to-end exceeds create-to-end: never, by
	// definition.
	Disorder int64 `json:"disorder"`
	// CreatedRate and AckedRate are orders/s of the measured part: created, and
	// acknowledged until the last of them was.
	CreatedRate float64 `json:"createdRate"`
	AckedRate   float64 `json:"ackedRate"`

	Lag           Histogram `json:"lag"`           // created - intended
	IntendedToEnd Histogram `json:"intendedToEnd"` // acknowledged - intended
	CreateToEnd   Histogram `json:"createToEnd"`   // acknowledged - created
	SendToEnd     Histogram `json:"sendToEnd"`     // acknowledged - sent

	// Stats, Series and Spikes are of the measured part; older results, and reduced ones, do not
	// have them.
	Stats  *StepStats `json:"stats,omitempty"`
	Series *Series    `json:"series,omitempty"`
	Spikes []Spike    `json:"spikes,omitempty"` // the worst few, worst first

	// Offered is the arrivals, where the plan has an arrival process.
	Offered *Offered `json:"offered,omitempty"`

	// Notes are examples of errors and violations, in words.
	Notes []string `json:"notes,omitempty"`
}

// Violations of both kinds of copies.
func (s ProbeStep) Violations() int64 {
	return s.Ledger.Violations() + s.Backups.Violations() + s.Disorder
}

// Conditions is the state of the machine of one process during one step. Percentages are of all
// cores of that machine unless noted otherwise; negative means unknown.
type Conditions struct {
	Step      int     `json:"step"`
	Probes    string  `json:"probes"` // the probes of this process, such as AB
	ElapsedMs int64   `json:"elapsedMs"`
	Cores     int     `json:"cores"`
	BusyPct   float64 `json:"busyPct"`
	StealPct  float64 `json:"stealPct"`
	// PressurePct is the share of time in which some task waited for a core.
	PressurePct float64 `json:"pressurePct"`
	// ForeignPct is the use by neither the probe nor the grid; known only when the grid's processes
	// are on this machine.
	ForeignPct float64 `json:"foreignPct"`
	ProbePct   float64 `json:"probePct"`
	LoadBefore float64 `json:"loadBefore"` // load average over 1 min
	LoadAfter  float64 `json:"loadAfter"`
	// ProbePauses is how often the probe's own garbage collector paused it.
	ProbePauses int64  `json:"probePauses"`
	Nodes       []Node `json:"nodes,omitempty"`
	// PauseSources are the processes whose pauses were queried.
	PauseSources []PauseSource `json:"pauseSources,omitempty"`
}

// Node is the use of one grid node during one step, from its own metrics.
type Node struct {
	Name         string  `json:"name"`
	CPUCores     float64 `json:"cpuCores"`     // cores busy, on average
	PausesPerSec float64 `json:"pausesPerSec"` // collections a second; negative if not exported
}

// Manifest describes the environment of a process.
type Manifest struct {
	Probes     string   `json:"probes"`
	Host       string   `json:"host"`
	OS         string   `json:"os"`
	Kernel     string   `json:"kernel"`
	CPU        string   `json:"cpu"`
	Cores      int      `json:"cores"`
	Virtual    bool     `json:"virtual"`
	Governor   string   `json:"governor"`
	MemoryMiB  int64    `json:"memoryMiB"`
	GoVersion  string   `json:"goVersion"`
	Version    string   `json:"version"`  // of order-probe
	Revision   string   `json:"revision"` // git, when the build recorded it
	GoMaxProcs int      `json:"goMaxProcs"`
	FIX        string   `json:"fix"`
	Flags      []string `json:"flags"`
	Grid       string   `json:"grid"` // how the grid was reached
	// Through is fix if orders went through FIX sessions of order-gateways, at the addresses Gateways; else they were
	// submitted to the grid.
	Through  string   `json:"through,omitempty"`
	Gateways []string `json:"gateways,omitempty"`
	// Shared: probes and servers run on the same cores, unlike in the published tests.
	Shared bool `json:"shared"`
	// Settings are kernel settings that affect latencies.
	Settings map[string]string `json:"settings,omitempty"`
}

// maxResult bounds the size of a result, in bytes.
const maxResult = 64 << 20

// ParseResult reads and validates one Result.
func ParseResult(b []byte) (*Result, error) {
	if len(b) > maxResult {
		return nil, fmt.Errorf("result: %d bytes, at most %d are read", len(b), maxResult)
	}
	var r Result
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("result: text after its end")
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return &r, nil
}

// ParseSaved reads the Result of a file: of a whole report (results.json), or of one pod (result.json).
func ParseSaved(b []byte) (*Result, error) {
	var outer struct {
		Schema string          `json:"schema"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(b, &outer) == nil && outer.Schema == Schema {
		b = outer.Result
	}
	return ParseResult(b)
}

func (r *Result) check() error {
	if r.Schema != ResultSchema {
		return fmt.Errorf("schema %q, want %q: made by another version of order-probe", r.Schema, ResultSchema)
	}
	if len(r.Probes) > scenario.MaxProbes {
		return fmt.Errorf("%d probes, at most %d", len(r.Probes), scenario.MaxProbes)
	}
	for i, s := range r.Plan.Steps {
		if s.ID != i || s.Rate < 1 || s.Probes < 1 || s.Pairs < 0 || s.Run < 1 {
			return fmt.Errorf("plan: step %d: %+v", i, s)
		}
	}
	for _, p := range r.Probes {
		for _, s := range p.Steps {
			if s.Step < 0 || s.Step >= len(r.Plan.Steps) {
				return fmt.Errorf("probe %s: step %d, the plan has %d", p.Name, s.Step, len(r.Plan.Steps))
			}
		}
	}
	for _, c := range r.Conditions {
		if c.Step < 0 || c.Step >= len(r.Plan.Steps) {
			return fmt.Errorf("conditions of step %d, the plan has %d", c.Step, len(r.Plan.Steps))
		}
	}
	return nil
}

// Merge joins the results of several processes of one run.
func Merge(results ...*Result) (*Result, error) {
	if len(results) == 0 {
		return nil, errors.New("merge: no results")
	}
	out := *results[0]
	out.Manifests, out.Probes, out.Conditions, out.RoundTrips, out.Omitted = nil, nil, nil, nil, nil
	want, err := json.Marshal(out.Plan)
	if err != nil {
		return nil, err
	}
	from := map[int]string{}
	for _, r := range results {
		got, err := json.Marshal(r.Plan)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(got, want) {
			return nil, fmt.Errorf("merge: run %s has another plan than run %s: results of one run only can be merged", r.RunID, out.RunID)
		}
		for _, p := range r.Probes {
			if other, twice := from[p.Index]; twice {
				return nil, fmt.Errorf("merge: probe %s (%d) is in run %s and in run %s", p.Name, p.Index, other, r.RunID)
			}
			from[p.Index] = r.RunID
		}
		out.StartedAt = min(out.StartedAt, r.StartedAt)
		out.Manifests = append(out.Manifests, r.Manifests...)
		out.Probes = append(out.Probes, r.Probes...)
		out.Conditions = append(out.Conditions, r.Conditions...)
		out.RoundTrips = append(out.RoundTrips, r.RoundTrips...)
		for _, what := range r.Omitted {
			if !slices.Contains(out.Omitted, what) {
				out.Omitted = append(out.Omitted, what)
			}
		}
	}
	return &out, nil
}
