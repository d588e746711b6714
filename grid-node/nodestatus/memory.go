package nodestatus

import (
	"context"
	"fmt"
	"net/http"
)

// MemoryPath of the page on a node's HTTP port.
const MemoryPath = "/memory"

// Memory is a node's memory for orders. All its partitions share it.
type Memory struct {
	Grid        string `json:"grid"`
	Pod         string `json:"pod"`
	BootID      string `json:"bootID"`
	UsedBytes   int64  `json:"usedBytes"`   // by orders and their indexes
	LimitBytes  int64  `json:"limitBytes"`  // that they may use
	RefuseBytes int64  `json:"refuseBytes"` // from which on orders are refused: the rest is kept for what the grid itself logs
	// FreeableBytes of what is used may be freed, because every sink holds it; 0 if retention keeps all.
	FreeableBytes int64 `json:"freeableBytes"`
	// GrowthBytesPerSecond is how fast what cannot be freed has grown over the last half minute. Where retention frees, less
	// than 1 % of the memory, or 4 MiB, counts as 0: what is on its way to the sink comes and goes.
	GrowthBytesPerSecond float64 `json:"growthBytesPerSecond"`
	// SecondsUntilFull at this rate; absent while nothing grows, 0 while orders are refused.
	SecondsUntilFull *float64 `json:"secondsUntilFull,omitempty"`
	Full             bool     `json:"full"`    // orders are refused for want of memory, here or on a copy
	Refused          uint64   `json:"refused"` // orders and sessions refused for that, since the process began

	// Sinks are what memory may wait for: those of this node, of each partition that it is the primary of.
	Sinks []Sink `json:"sinks,omitempty"`
	// Readers are the sinks with a name that a log of this node has a position of: nothing is freed that one of them does
	// not hold, whether this node has such a sink or not.
	Readers []string `json:"readers,omitempty"`
}

// Sink is how far a sink holds the log of a partition.
type Sink struct {
	Name       string  `json:"name"`
	Partition  string  `json:"partition"`       // "p1"
	Seq        uint64  `json:"seq"`             // it holds everything up to here
	LagEntries uint64  `json:"lagEntries"`      // committed, and not held by it
	LagSeconds float64 `json:"lagSeconds"`      // age of the oldest of those; 0 if it holds all orders
	Error      string  `json:"error,omitempty"` // why writing fails at present
}

// UsedShare is how much of the memory that orders may take before they are refused is in use and cannot be freed, 0 to 1.
func (m *Memory) UsedShare() float64 {
	if m.RefuseBytes <= 0 {
		return 0
	}
	return min(1, max(0, float64(m.UsedBytes-m.FreeableBytes)/float64(m.RefuseBytes)))
}

// GetMemory asks the node at address, "host:port" of its HTTP port.
func GetMemory(ctx context.Context, c *http.Client, address string) (*Memory, error) {
	m := &Memory{}
	if err := get(ctx, c, address, MemoryPath, maxRows, m); err != nil {
		return nil, err
	}
	if m.Pod == "" || m.BootID == "" {
		return nil, fmt.Errorf("GET http://%s%s: the answer names no pod and boot id; is this a grid node of this version?", address, MemoryPath)
	}
	return m, nil
}
