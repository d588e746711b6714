package inject

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// FaultType names a kind of fault.
type FaultType string

// FaultSpec is what a step asks for.
type FaultSpec struct {
	Type    FaultType
	Network *NetworkFault
	Clock   *ClockFault
	Stress  *StressFault
	IO      *IOFault
}

// NetworkFault are the parameters of network faults.
type NetworkFault struct {
	Latency, Jitter          time.Duration
	Loss, Duplicate, Corrupt string // percent
	Correlation              string // percent
	Rate                     string // "10mbit"
	Direction                string // To, From, Both
}

// ClockFault are the parameters of ClockSkew.
type ClockFault struct {
	Offset time.Duration
	Clocks []string
}

// StressFault are the parameters of CPUStress and MemoryStress.
type StressFault struct {
	CPUWorkers, CPULoad int32
	Memory              resource.Quantity
}

// IOFault are the parameters of IODelay and IOError.
type IOFault struct {
	Path    string
	Delay   time.Duration
	Errno   int32
	Percent int32
}
