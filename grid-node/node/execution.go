package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/instrument"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Execution makes a node's partitions match. All nodes of a grid have the same.
type Execution struct {
	// Instruments of the grid. Each is traded in the partition of its symbol: that of the
	// hash of the symbol, as orders otherwise are by that of their ClOrdID.
	Instruments []machine.Instrument
	// File has further ones, and is watched for more; nil without.
	File *instrument.File
	// Calendar of the sessions of all instruments, which is watched; nil: none.
	Calendar *instrument.CalendarFile
	// ApartBySession gives orders without tag 2362 the group of their session.
	ApartBySession bool
}

// instrumentsEvery is the interval of reading the file of instruments.
const instrumentsEvery = 2 * time.Second

// all returns the instruments of the grid.
func (x *Execution) all() []machine.Instrument {
	list := slices.Clone(x.Instruments)
	if x.File != nil {
		for _, in := range x.File.List() {
			list = append(list, machine.Instrument(in))
		}
	}
	return list
}

// Bounds of the books of a partition.
const (
	bytesPerResting = 1024 // with its row, its index and its part of a page, twice
	mostResting     = 1 << 16
	leastShare      = 4 << 20 // of a partition
)

// executionMemory is for the books and executions of all partitions, taken from what is for
// orders.
func (c *Config) executionMemory() int64 {
	if c.Execution == nil {
		return 0
	}
	return c.MemoryLimit / 4
}

func (c *Config) executionShare() int64 { return c.executionMemory() / int64(max(c.Partitions, 1)) }

// executionLog bounds the executions that a partition holds, in bytes.
func (c *Config) executionLog() int64 { return c.executionShare() / 2 }

// HeapLimit returns the limit of the Go runtime of this node, in bytes. Most executions are in blocks
// of the stores, outside its heap.
func (c *Config) HeapLimit() int64 {
	return HeapLimit(c.MemoryLimit) + c.executionMemory() - int64(c.Partitions)*store.Lendable(c.executionLog())
}

// checkExecution rejects what does not go together with matching yet.
func (c *Config) checkExecution() error {
	if c.Execution == nil {
		return nil
	}
	switch {
	case c.Views != nil:
		return fmt.Errorf("--execution: value match, allowed: store, with --views: views do not read what a partition that matches stores")
	case c.Sink != SinkHold || len(c.FileSinks) > 0:
		return fmt.Errorf("--execution: value match, allowed: store, with sinks in files: they do not have executions; --external-sink may be given")
	case c.Archive != nil:
		return fmt.Errorf("--execution: value match, allowed: store, with an archive: its reader does not know what a partition that matches stores")
	case c.executionShare() < leastShare:
		return fmt.Errorf("--memory-limit: value %d, allowed: at least %d, %d a partition and four times that for orders, with --execution=match", c.MemoryLimit, 4*leastShare*int64(c.Partitions), int64(leastShare))
	}
	seen := map[string]bool{}
	list := c.Execution.all()
	for i := range list {
		in := &list[i]
		if err := in.Validate(); err != nil {
			return fmt.Errorf("--instruments: %w", err)
		}
		if seen[in.Symbol] {
			return fmt.Errorf("--instruments: symbol %q twice, allowed: once", in.Symbol)
		}
		seen[in.Symbol] = true
	}
	return nil
}

// execution returns the options of a partition.
func (c *Config) execution(p wire.PartitionID) *replica.Execution {
	if c.Execution == nil {
		return nil
	}
	orders := int(min((c.executionShare()-c.executionLog())/bytesPerResting, mostResting))
	return &replica.Execution{Orders: orders, Pages: orders/8 + 64, LogBytes: c.executionLog(), Books: machine.MaxBooks,
		Instruments: c.instrumentsOf(p), ApartBySession: c.Execution.ApartBySession}
}

// instrumentsOf returns those that are traded in a partition.
func (c *Config) instrumentsOf(p wire.PartitionID) (list []machine.Instrument) {
	for _, in := range c.Execution.all() {
		if wire.PartitionID(order.HashClOrdID([]byte(in.Symbol))%uint64(c.Partitions)) == p {
			list = append(list, in)
		}
	}
	return list
}

// instrumentsChanged is called when the file of instruments was read with another result.
func (ps *partitions) instrumentsChanged() {
	f := ps.cfg.Execution.File
	if err := f.Err(); err != nil {
		ps.log.Error("the file of instruments is not taken; what it had before is traded", "reason", err)
		return
	}
	ps.log.Info("the file of instruments was read", "instruments", len(f.List()), "sha256", f.SHA256())
	for _, p := range ps.list {
		p.replica.Trade(ps.cfg.instrumentsOf(p.id))
		p.step(&replica.Event{Kind: replica.EventTick})
	}
	ps.flush()
}

// mostDiffer bounds the symbols that a page names.
const mostDiffer = 8

// executions is the state of matching for the page of the memory; nil in a node that stores
// orders. On the loop.
func (ps *partitions) executions() *nodestatus.Execution {
	x := ps.cfg.Execution
	if x == nil {
		return nil
	}
	s := &nodestatus.Execution{Waiting: ps.waitingBooks()}
	if x.File != nil {
		s.SHA256 = x.File.SHA256()
		if err := x.File.Err(); err != nil {
			s.Error = err.Error()
		}
	}
	s.Calendar = ps.calendarFollowed()
	for _, p := range ps.list {
		missing, differ := p.replica.Traded()
		if p.status.Role == replica.RolePrimary || p.status.Role == replica.RoleBackup {
			s.Missing += missing
			s.Differ = append(s.Differ, differ...)
		}
		if p.replica.Diverged() {
			s.Diverged = append(s.Diverged, p.id.String())
		}
	}
	slices.Sort(s.Differ)
	s.Differ = s.Differ[:min(len(s.Differ), mostDiffer)]
	return s
}
