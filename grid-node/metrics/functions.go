package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/function"
)

// Function is a function of users that the node calls.
type Function struct {
	Name, SHA256, OnError string
	FuelLimit             int64 // of a call
	Counts                function.Counts
}

var (
	functionInfo  = desc("function_info", "1 for each function that the node has loaded, with the digest of its module; absent without functions.", "function", "sha256", "on_error")
	functionCalls = desc("function_calls_total", "Calls of a function, by result: accepted, refused, changed (it set tags), and failed ones: out_of_fuel, calls_too_deep, trap, bad_result. Absent without functions.", "function", "result")
	functionFuel  = desc("function_fuel_total", "Fuel that calls of a function took, about an instruction each; absent without functions.", "function")
	functionLimit = desc("function_fuel_limit", "Fuel that one call of a function may take; absent without functions.", "function")

	functionDescs = []*prometheus.Desc{functionInfo, functionCalls, functionFuel, functionLimit}
)

func (e emitter) functions(list []Function) {
	for i := range list {
		f := &list[i]
		e.gauge(functionInfo, 1, f.Name, f.SHA256, f.OnError)
		e.gauge(functionLimit, float64(f.FuelLimit), f.Name)
		e.counter(functionFuel, f.Counts.Fuel, f.Name)
		e.counter(functionCalls, f.Counts.Accepted, f.Name, "accepted")
		e.counter(functionCalls, f.Counts.Refused, f.Name, "refused")
		e.counter(functionCalls, f.Counts.Changed, f.Name, "changed")
		for fault := function.OutOfFuel; fault < function.Faults; fault++ {
			e.counter(functionCalls, f.Counts.Failed[fault], f.Name, faultLabels[fault])
		}
	}
}

var faultLabels = [function.Faults]string{function.OutOfFuel: "out_of_fuel", function.TooDeep: "calls_too_deep", function.Trapped: "trap", function.BadResult: "bad_result"}
