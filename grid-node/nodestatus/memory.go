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
	RefuseBytes int64  `json:"refuseBytes"` // at this use orders are refused: the rest is reserved for the grid's own entries
	// FreeableBytes is the part of UsedBytes that may be freed, because every sink holds
	// it; 0 if retention keeps all.
	FreeableBytes int64 `json:"freeableBytes"`
	// GrowthBytesPerSecond is the growth of memory that cannot be freed over the last half
	// minute. Where retention frees, less than 1 % of the memory, or 4 MiB, counts as 0:
	// entries on their way to the sink fluctuate.
	GrowthBytesPerSecond float64 `json:"growthBytesPerSecond"`
	// SecondsUntilFull at this rate; absent without growth, 0 while orders are refused.
	SecondsUntilFull *float64 `json:"secondsUntilFull,omitempty"`
	Full             bool     `json:"full"`    // orders are refused for lack of memory, here or on a copy
	Refused          uint64   `json:"refused"` // orders and sessions refused for that, since the process began

	// Sinks are the sinks of this node in each partition that it is the primary of; memory
	// may wait for them.
	Sinks []Sink `json:"sinks,omitempty"`
	// Readers are the named sinks with a position in a log of this node: no entry is freed
	// before all of them hold it, whether this node has such a sink or not.
	Readers []string `json:"readers,omitempty"`
	// Views are those of the partitions that this node is in sync in; without --views there are none.
	Views []PartitionView `json:"views,omitempty"`
	// Execution is the state of matching; absent in a node that stores orders.
	Execution *Execution `json:"execution,omitempty"`
	// Posts are the functions of kind Post; absent where neither this node nor a log that it
	// leads has any.
	Posts *Posts `json:"posts,omitempty"`
	// Limits are those of --limits and of the logs; absent where neither has any.
	Limits *Limits `json:"limits,omitempty"`
	// Regions are those of --regions; absent without.
	Regions *Regions `json:"regions,omitempty"`
	// Journal is the state of the journals; absent without --journal.
	Journal *Journal `json:"journal,omitempty"`
}

// Posts are the functions of kind Post of the partitions that a node is primary of.
type Posts struct {
	InForce []PostInForce `json:"inForce,omitempty"`
	// Waiting are the partitions whose log has not changed to the functions of this node.
	Waiting []string `json:"waiting,omitempty"`
	// Since is the entry with which the others changed, where this process has it.
	Since []PostsSince `json:"since,omitempty"`
}

// PostInForce is a function that logs have in force, and what it is granted there.
type PostInForce struct {
	Name         string `json:"name"`
	SHA256       string `json:"sha256"` // of its module
	Fuel         uint32 `json:"fuel"`
	Pages        uint32 `json:"pages"`
	ConfigSHA256 string `json:"configSHA256,omitempty"` // absent without a configuration
	Partitions   int    `json:"partitions"`
}

// PostsSince is from where on a partition calls its functions.
type PostsSince struct {
	Partition string `json:"partition"` // "p1"
	Entry     uint64 `json:"entry"`
}

// Add counts further partitions that have a function in force.
func (p *Posts) Add(f PostInForce) {
	for i := range p.InForce {
		if same := &p.InForce[i]; f.Is(same) {
			same.Partitions += f.Partitions
			return
		}
	}
	p.InForce = append(p.InForce, f)
}

// Is reports whether both are the same function with the same grants.
func (f PostInForce) Is(o *PostInForce) bool {
	f.Partitions = o.Partitions
	return f == *o
}

// Limits is the state of the limits of a node, see docs/limits.md.
type Limits struct {
	SHA256 string `json:"sha256,omitempty"` // of the profile of --limits as a log has it; empty without one
	Error  string `json:"error,omitempty"`  // why the present content of the file is not taken
	// Partitions are those that this node is the primary or a backup of.
	Partitions []PartitionLimits `json:"partitions,omitempty"`
}

// PartitionLimits are those that the committed log of a partition has.
type PartitionLimits struct {
	Partition   string `json:"partition"`             // "p1"
	Name        string `json:"name,omitempty"`        // of the profile in force
	SHA256      string `json:"sha256,omitempty"`      // of it; empty if there never was one
	Empty       bool   `json:"empty,omitempty"`       // it refuses no order
	Entry       uint64 `json:"entry,omitempty"`       // that put it in force
	SinceUnixNs int64  `json:"sinceUnixNs,omitempty"` // the time of the entry
	Kills       int    `json:"kills,omitempty"`       // in effect
	Refused     string `json:"refused,omitempty"`     // why this primary cannot put that of the file in force
	Waits       string `json:"waits,omitempty"`       // why it does not, though it could: the log has a later one
}

// Regions is whether the logs have the regions of a node's file, see docs/regions.md.
type Regions struct {
	SHA256      string `json:"sha256,omitempty"` // of the file that is in use; empty before it was read again
	MemoryBytes int64  `json:"memoryBytes"`      // that all regions may take on the node
	Error       string `json:"error,omitempty"`  // why the present content of the file is not taken
	// Partitions are those that this node is the primary or a backup of.
	Partitions []PartitionRegions `json:"partitions,omitempty"`
	// Use is of the partitions that this node is the primary of.
	Use []RegionUse `json:"use,omitempty"`
}

// PartitionRegions is what the committed log of a partition lacks.
type PartitionRegions struct {
	Partition    string   `json:"partition"`              // "p1"
	Awaited      []string `json:"awaited,omitempty"`      // regions that it does not have as the file has them
	BoundAwaited bool     `json:"boundAwaited,omitempty"` // it has another bound of all regions
	Later        []string `json:"later,omitempty"`        // regions of which it has later bounds than the file
}

// RegionUse is a region in the partitions that a node is the primary of.
type RegionUse struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"` // whose log has it
	Entries    uint64 `json:"entries"`
	Bytes      uint64 `json:"bytes"` // that they take
	// Full are partitions that refuse a change for want of memory, as "p1": the first ones of them.
	Full []string `json:"full,omitempty"`
}

// MaxFull bounds RegionUse.Full.
const MaxFull = 8

// Journal is the state of the journals of a node, all partitions together.
type Journal struct {
	Bytes      int64 `json:"bytes"`
	LimitBytes int64 `json:"limitBytes"` // 0: what the disk has
	Full       bool  `json:"full"`       // only the reserve is left, and new orders are refused
	// Error is why a journal could not be written, with its partition, until it is written again.
	Error string `json:"error,omitempty"`
}

// Execution is the state of a node that matches.
type Execution struct {
	SHA256  string   `json:"sha256"`            // of the file of instruments that is in use
	Error   string   `json:"error,omitempty"`   // why its present content is not
	Missing int      `json:"missing,omitempty"` // instruments that the logs of its partitions do not have yet
	Differ  []string `json:"differ,omitempty"`  // symbols, some of them, that the logs have otherwise than the file
	// Diverged are the partitions, such as "p1", in which another copy has executed
	// otherwise: nothing is committed in them from there on.
	Diverged []string `json:"diverged,omitempty"`
	// Waiting are books that neither trade nor are closed, of the partitions that this node is
	// the primary of: the eight that have waited for the longest, those first.
	Waiting []WaitingBook `json:"waiting,omitempty"`
	// Calendar is what is done by the calendar of sessions; absent without.
	Calendar *Calendar `json:"calendar,omitempty"`
}

// Calendar is whether books are in the phase that the calendar of the node has.
type Calendar struct {
	SHA256 string `json:"sha256,omitempty"` // of the file that is in use
	Error  string `json:"error,omitempty"`  // why its present content is not
	// The phase that books are to be in, and the next one, each with its time; 0 and empty if none is known.
	PhaseUnixNs int64  `json:"phaseUnixNs,omitempty"`
	Phase       string `json:"phase,omitempty"` // open, call, closed
	NextUnixNs  int64  `json:"nextUnixNs,omitempty"`
	Next        string `json:"next,omitempty"`
	// Books of the partitions that this node is the primary of, and those of them that have not entered the present phase:
	// eight of these, with their state.
	Books      int      `json:"books,omitempty"`
	Behind     int      `json:"behind,omitempty"`
	SomeBehind []string `json:"someBehind,omitempty"` // "IBM (halted)"
	// Waits are why primaries do nothing by the calendar: "p1: …".
	Waits []string `json:"waits,omitempty"`
}

// WaitingBook is a book in an auction, or halted.
type WaitingBook struct {
	Symbol      string `json:"symbol"`
	Partition   string `json:"partition"` // "p1"
	State       string `json:"state"`     // call, uncrossing, halted
	SinceUnixNs int64  `json:"sinceUnixNs"`
	UntilUnixNs int64  `json:"untilUnixNs,omitempty"` // a halt ends then by itself
}

// PartitionView is whether questions to a partition are answered here from a whole view.
type PartitionView struct {
	Partition string `json:"partition"`       // "p1"
	Kept      bool   `json:"kept"`            // false: views are on backups, and this is the primary
	Lag       uint64 `json:"lag"`             // committed entries that it lacks
	Error     string `json:"error,omitempty"` // why there is none, or why it ends before the log does
}

// Sink is the progress of a sink in a partition's log.
type Sink struct {
	Name       string  `json:"name"`
	Partition  string  `json:"partition"`       // "p1"
	Seq        uint64  `json:"seq"`             // everything up to here is in the sink
	LagEntries uint64  `json:"lagEntries"`      // committed entries not in the sink
	LagSeconds float64 `json:"lagSeconds"`      // age of the oldest of those; 0 if it holds all orders
	Error      string  `json:"error,omitempty"` // why writing fails at present
}

// UsedShare is the share, 0 to 1, of the memory available for orders that is in use and
// cannot be freed.
func (m *Memory) UsedShare() float64 {
	if m.RefuseBytes <= 0 {
		return 0
	}
	return min(1, max(0, float64(m.UsedBytes-m.FreeableBytes)/float64(m.RefuseBytes)))
}

// GetMemory requests the page from the node at address, "host:port" of its HTTP port.
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
