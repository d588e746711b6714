package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/machine"
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

	postPartitions = desc("post_function_partitions", "Partitions here whose logs have a function of kind Post in force, by the digest of its module; absent without such functions.", "function", "sha256")
	postCalls      = desc("post_function_calls_total", "Calls of a function of kind Post by the copies here, by result: record, none, and failed ones: out_of_fuel, calls_too_deep, trap, bad_result. Begins anew when a copy does; absent without such functions.", "function", "result")
	postFuel       = desc("post_function_fuel_total", "Fuel that calls of a function of kind Post took, about an instruction each; absent without such functions.", "function")

	postLimit = desc("post_function_fuel_limit", "Fuel that one call of a function of kind Post may take; absent without such functions.", "function")

	computeInfo  = desc("compute_function_info", "1 for each function of kind Compute that the node has loaded, with the digest of its module; absent without such functions.", "function", "sha256")
	computeCalls = desc("compute_function_calls_total", "Calls of a function of kind Compute, by result: decided, error (the function's own), too_large, and failed ones: out_of_fuel, calls_too_deep, trap, bad_result. A call that was decided may still be refused for lack of memory. Absent without such functions.", "function", "result")
	computeFuel  = desc("compute_function_fuel_total", "Fuel that calls of a function of kind Compute took, about an instruction each; absent without such functions.", "function")

	functionDescs = []*prometheus.Desc{functionInfo, functionCalls, functionFuel, functionLimit, postPartitions, postCalls, postFuel, postLimit, computeInfo, computeCalls, computeFuel}
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

// ComputeFunction is a function of kind Compute that clients call.
type ComputeFunction struct {
	Name, SHA256             string
	Decided, Error, TooLarge uint64
	Failed                   [function.Faults]uint64
	Fuel                     uint64
}

func (e emitter) computeFunctions(list []ComputeFunction) {
	for i := range list {
		f := &list[i]
		e.gauge(computeInfo, 1, f.Name, f.SHA256)
		e.counter(computeFuel, f.Fuel, f.Name)
		e.counter(computeCalls, f.Decided, f.Name, "decided")
		e.counter(computeCalls, f.Error, f.Name, "error")
		e.counter(computeCalls, f.TooLarge, f.Name, "too_large")
		for fault := function.OutOfFuel; fault < function.Faults; fault++ {
			e.counter(computeCalls, f.Failed[fault], f.Name, faultLabels[fault])
		}
	}
}

// PostFunction is a function of kind Post that logs have in force, with the counts of all
// partitions here together.
type PostFunction struct {
	Name, SHA256 string
	Partitions   int
	FuelLimit    int64 // of a call
	Counts       machine.FunctionCounts
}

func (e emitter) postFunctions(list []PostFunction) {
	counts, limits := map[string]*machine.FunctionCounts{}, map[string]int64{} // during a change there are two of a name
	var names []string
	for i := range list {
		f := &list[i]
		e.gauge(postPartitions, float64(f.Partitions), f.Name, f.SHA256)
		limits[f.Name] = max(limits[f.Name], f.FuelLimit)
		if c := counts[f.Name]; c != nil {
			c.Add(&f.Counts)
			continue
		}
		c := f.Counts
		counts[f.Name] = &c
		names = append(names, f.Name)
	}
	for _, name := range names {
		c := counts[name]
		e.counter(postFuel, c.Fuel, name)
		e.gauge(postLimit, float64(limits[name]), name)
		e.counter(postCalls, c.Records, name, "record")
		e.counter(postCalls, c.None, name, "none")
		for fault := function.OutOfFuel; fault < function.Faults; fault++ {
			e.counter(postCalls, c.Failed[fault], name, faultLabels[fault])
		}
	}
}
