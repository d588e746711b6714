package published

import (
	"fmt"
	"slices"
)

// Workers are the parameters of AsyncScenario.
type Workers struct {
	Task       int // its parameter, which the report does not explain
	Executions int // of a call: workers take them from one queue
	Workers    []int
}

// Workers reads both parameter sets.
func (s Scenario) Workers() (exact, scaled Workers, err error) {
	var a struct {
		Calls      int   `json:"calls"`
		Task       int   `json:"parallel_task"`
		Requests   int   `json:"requests"`
		IntervalMs int   `json:"interval_ms"`
		Executions int   `json:"executions"`
		Workers    []int `json:"workers"`
	}
	var b struct {
		Executions int    `json:"executions"`
		Workers    []int  `json:"workers"`
		Calibrate  string `json:"calibrate"` // in words
	}
	if err := s.decodeSets(AsyncScenario, &a, &b); err != nil {
		return exact, scaled, err
	}
	exact, scaled = Workers{a.Task, a.Executions, a.Workers}, Workers{a.Task, b.Executions, b.Workers}
	for _, w := range []Workers{exact, scaled} {
		if w.Task < 2 || w.Executions < 1 || len(w.Workers) < 2 || w.Workers[0] != 1 || !slices.IsSorted(w.Workers) {
			return exact, scaled, fmt.Errorf("scenario %q: %+v: needs a task, executions, and numbers of workers that rise from 1", s.Name, w)
		}
	}
	return exact, scaled, nil
}

// WorkersUs is the published time of a number of workers in microseconds; 0: there is none.
func (d *Data) WorkersUs(workers int) float64 {
	c, _ := d.Cell("jade", "AsyncMethodCalls", float64(workers), "max_worker_elapsed_us")
	return c.Value
}

// AsyncImprovement is the highlight of the table, in percent; 0: there is none.
func (d *Data) AsyncImprovement() float64 {
	t, _ := d.Table("jade", "Summary")
	for _, r := range t.Rows {
		if r["test"].Text == "Async" {
			return r["value"].Number
		}
	}
	return 0
}
