package published

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// WriteScenario is one writer with one order in flight at a time.
const WriteScenario = "gs-write"

// WriteReport is the report it reproduces, and WriteTable its only table.
const (
	WriteReport = "gigaspaces"
	WriteTable  = "prose-1"
)

// WriteBestShare is the share of the results that the report averages.
const WriteBestShare = 0.8

// Write are the parameters of WriteScenario, as far as the report has them. Its rates were in a
// chart that is lost, and its measuring time is not given: Rates and the times are those of the
// scaled set.
type Write struct {
	Clients, Outstanding int
	Rates                []int // orders/s
	WarmupS, MeasureS    int
}

// Write reads both parameter sets of the scenario.
func (s Scenario) Write() (Write, error) {
	var exact struct {
		Clients     int      `json:"clients"`
		Outstanding int      `json:"outstanding"`
		Objects     []string `json:"objects"`
		Replication []string `json:"replication"`
		BestShare   float64  `json:"best_share"`
		Rates       string   `json:"rates"` // in words
		Floor       string   `json:"floor"` // in words
	}
	var scaled struct {
		Rates    []int `json:"rates"`
		WarmupS  int   `json:"warmup_s"`
		MeasureS int   `json:"measure_s"`
	}
	if err := s.decodeSets(WriteScenario, &exact, &scaled); err != nil {
		return Write{}, err
	}
	rising := len(scaled.Rates) > 0 && scaled.Rates[0] > 0 && slices.IsSorted(scaled.Rates)
	if !slices.Equal(exact.Objects, []string{"8field", "empty"}) || !slices.Equal(exact.Replication, []string{"none", "sync"}) ||
		exact.Clients < 1 || exact.Outstanding < 1 || exact.BestShare != WriteBestShare || !rising || scaled.WarmupS < 0 || scaled.MeasureS < 1 {
		return Write{}, fmt.Errorf("scenario %q: needs objects 8field and empty, replication none and sync, clients and outstanding of 1 or more, best_share %v, rising rates, warmup_s and measure_s", s.Name, WriteBestShare)
	}
	return Write{exact.Clients, exact.Outstanding, scaled.Rates, scaled.WarmupS, scaled.MeasureS}, nil
}

// WriteLatency is the published latency of a write, in microseconds, of the object with eight
// fields or of the empty one, with synchronous replication or without. Load has checked that it
// exists.
func (d *Data) WriteLatency(fields, replicated bool) Cell {
	object, replication := "empty", "none"
	if fields {
		object = "8-field"
	}
	if replicated {
		replication = "sync"
	}
	t, _ := d.Table(WriteReport, WriteTable)
	for _, r := range t.Rows {
		if v := r["latency_ms"]; strings.HasPrefix(r["object"].Text, object) && r["replication"].Text == replication && v.IsNumber() {
			return Cell{Report: WriteReport, Table: WriteTable, Row: object + ", " + replication, Column: "latency_ms", Value: v.Number * 1000, Unit: "us"}
		}
	}
	return Cell{}
}

// WriteRoundTrip is the published round trip of a Ping with 1 KB, in microseconds.
func (d *Data) WriteRoundTrip() float64 {
	ms, _ := d.FactNumber("gs.rtt")
	return ms * 1000
}

// WriteOverheadNote is where the report contradicts itself about the cost of
// replication.
func (d *Data) WriteOverheadNote() Discrepancy {
	for _, n := range d.Discrepancies {
		if n.Seed == "GigaSpaces" && strings.HasPrefix(n.Finding, `"overhead of 130%"`) {
			return n
		}
	}
	return Discrepancy{}
}

// checkWrite checks that every figure compared with the scenario exists.
func (d *Data) checkWrite(s Scenario) error {
	if _, err := s.Write(); err != nil {
		return fmt.Errorf("scenarios.json: %w", err)
	}
	for _, fields := range []bool{false, true} {
		for _, replicated := range []bool{false, true} {
			if d.WriteLatency(fields, replicated).Value <= 0 {
				return fmt.Errorf("published.json: table %s %s has no latency of a write with eight fields: %t, replicated: %t", WriteReport, WriteTable, fields, replicated)
			}
		}
	}
	if trim, ok := d.FactNumber("gs.trim"); !ok || trim != 100*WriteBestShare {
		return fmt.Errorf("published.json: fact gs.trim is %v, must be %v", trim, 100*WriteBestShare)
	}
	if d.WriteRoundTrip() <= 0 {
		return errors.New("published.json: no fact gs.rtt")
	}
	if d.WriteOverheadNote().Finding == "" {
		return errors.New("discrepancies.json: no GigaSpaces finding about the overhead of 130%")
	}
	return nil
}
