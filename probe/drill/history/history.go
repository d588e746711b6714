// Package history is the record of a run: the clients' requests and answers, the faults, and the
// content of every copy of the log and every sink afterwards. A saved history can be judged again
// without a grid.
//
// Times are nanoseconds since the start of the recording process, one clock for
// all (package probe/clock).
package history

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// History of one run.
type History struct {
	Scenario   string
	Target     string // dev, cluster
	Started    time.Time
	StartedAt  int64 // the same moment on the clock of everything below; 0 in old files
	Seed       uint64
	Rate       int // orders per second intended, all partitions together
	Replicas   int
	Partitions []wire.PartitionID
	Streams    []Stream
	Nodes      []Node // referenced by index
	Reads      []Read
	Refused    int64 // confirmed reads that a node refused because it is not primary
	Reps       []Rep
	Calm       []Span // times without faults
	Stalls     []Stall
	Host       Host
	Logs       []Log    // every replica's
	Sinks      []Log    // every file of the file sinks
	Notes      []string // remarks about this run for readers
	NodeLogs   []string // files with the nodes' logs, relative to the history's directory
	Bases      []Base   // ends of the logs before the run; none in old files
	Degraded   []Degraded
	FIX        fixorder.Version
	Trading    map[wire.PartitionID][]fixorder.Book // that orders were made of; nil: of the published tests
	Books      []Books                              // of a grid that matches: what each partition has to have done
	Executions []Copied                             // what each copy says it did
	Told       []Told                               // executions that the grid pushed to the sessions of the run
	Functions  *Functions                           // that the grid calls; nil: none
	Drill      *Drill                               // nil: not of a FailoverDrill
}

// Base is where a partition's log ended before the run: earlier entries are ignored.
type Base struct {
	Partition wire.PartitionID
	Seq, Hash uint64
	Known     bool // Hash is
}

// Books is the log of a partition that matches, from its beginning: each entry as it is stored.
type Books struct {
	Partition wire.PartitionID
	Symbols   []string // traded
	Entries   [][]byte
	Error     string // it could not be read to its end, or from its beginning
}

// Copied is what one copy says its entries did.
type Copied struct {
	Partition wire.PartitionID
	Where     string // as in Log
	InSync    bool
	Through   uint64 // entry
	Records   []byte // of ExecutionSize
	Error     string // they could not be read to their end
}

// Told is what sessions of a partition were told, in the order in which it came.
type Told struct {
	Partition wire.PartitionID
	Records   []byte // of ExecutionSize
}

// ExecutionSize is an execution: the number of its entry, its own in the entry from 1, and its
// record, as the grid sends them.
const ExecutionSize = 8 + 4 + match.RecordBytes

// AppendExecution appends one.
func AppendExecution(dst []byte, entry uint64, n uint32, r *match.Record) []byte {
	return r.AppendTo(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(dst, entry), n))
}

// ExecutionOf reads the first of b.
func ExecutionOf(b []byte) (entry uint64, n uint32, r match.Record) {
	le := binary.LittleEndian
	entry, n, b = le.Uint64(b), le.Uint32(b[8:]), b[12:]
	return entry, n, match.Record{Order: le.Uint64(b), Other: le.Uint64(b[8:]), Price: int64(le.Uint64(b[16:])), Qty: int64(le.Uint64(b[24:])), Leaves: int64(le.Uint64(b[32:])),
		Cum: int64(le.Uint64(b[40:])), Owner: le.Uint32(b[48:]), Count: le.Uint32(b[52:]), Book: le.Uint16(b[56:]), Kind: match.Kind(b[58]), Side: match.Side(b[59]), Reason: match.Reason(b[60]), Flags: b[61]}
}

// Degraded is a time in which the grid reported, in the table that it gives to every client, fewer
// copies in sync of a partition than configured.
type Degraded struct {
	Partition wire.PartitionID
	Span          // To 0: until the end
	Copies    int // the fewest there were
}

// Drill is the input of the recorder of a FailoverDrill, and its outcome.
type Drill struct {
	Context  api.Context
	Recorder map[string]string // of the recording process: version, kernel, cpu
	Aborted  string            // why it ended early; "": it did not
	Full     bool              // the ledger was full
	Judged   time.Time         // when the logs had been read
	NoSink   string            // why nothing downstream was compared; "": it was
	// NoHolder are the partitions whose log no reachable process of the grid holds, and how that is
	// known.
	NoHolder  map[string]string
	OneCopy   int64 // acknowledged with a receipt of one copy
	MaxOrders int64
	// Faults are the steps, by their place in Reps.
	Faults []Fault
}

// Fault is the additional part of a Rep of a drill.
type Fault struct {
	Index   int // of the step in the drill's plan
	Step    api.Step
	Message string // message of its injection, recovery, or failure
	Witness api.Witness
	// Lasts: the fault was recovered at Healed of the Rep; other faults are momentary.
	Lasts   bool
	Changes []Change
}

// Change of a partition's configuration reported by a node, on the clock of the history. Times of 0
// are unknown, or did not happen.
type Change struct {
	Partition                                          string
	Epoch                                              uint64
	Cause                                              string // nodestatus.Cause…
	By, Primary                                        string // members
	InSync                                             int
	Suspected, Proposed, Accepted, Serving, FirstOrder int64
	Reset                                              bool
	Silent                                             int64
}

// Stream is the orders of one writer of one partition. Order i has the ClOrdID
// ID.ClOrdID(i); its Thread is the session it was sent on.
type Stream struct {
	ID        fixorder.ID
	Partition wire.PartitionID
	Node      int // index of the only node it uses; -1: it follows the primary
	Sessions  int
	Orders    []load.Order
}

// Node is a process that held replicas.
type Node struct {
	Pod, Address string
}

// Read is one confirmed read that was answered.
type Read struct {
	Call, Return int64
	Partition    wire.PartitionID
	Stream       int // with Index: the order asked for
	Index        int64
	Node         int    // that answered
	Epoch        uint64 // of the answer
	Seq          uint64 // where the order was found; 0: not there
	CommitSeq    uint64 // committed prefix the answer was taken from
}

// Rep is one repetition: a fault and what followed.
type Rep struct {
	Number     int
	What       string // for display: "kill -9 dev-s0-1 (primary of p0, p1)"
	Pod        string
	Partitions []wire.PartitionID // whose service the fault affects
	Ready      int64              // the wait before the fault began: full redundancy
	From, To   int64              // while the fault was being injected
	Healed     int64              // when the fault was recovered; 0: it is momentary
	Served     int64              // seen: all sessions have had an order acknowledged that was created after To; 0: never
	Redundant  int64              // every partition had all its copies in sync again; 0: never
	Failed     string             // why the repetition could not be finished
}

// Span of time.
type Span struct{ From, To int64 }

// Stall is a time in which a thread of the recording process that only sleeps did not wake up in
// time.
type Stall struct{ At, Len int64 }

// Host is the state of the machine, in per cent of all its cores.
type Host struct {
	Cores           int
	Own, Busy       float64 // the recording process; everything
	Foreign         float64 // neither ours nor the grid's; negative: not known
	Pressure, Steal float64
	Load1           float64
	Ticks           int64 // wake-ups that Stalls were looked for in
}

// Log is one copy of a partition's log, or one file of its sink.
type Log struct {
	Partition wire.PartitionID
	Where     string // member and address, or path
	InSync    bool
	Primary   bool
	Committed uint64
	Error     string // it could not be read to its end
	Short     string // it was read, and ends before the acknowledged orders
	Entries   []Entry
}

// Entry of a log.
type Entry struct {
	Seq, Epoch, Lineage uint64 // lineage of sink lines only
	Prev, Hash          uint64 // Prev: 0 in sink lines
	Stream              int    // index; -1: no order, -2: a foreign order
	Index               int64
	Corrupt             bool // the message is not what was sent
}

// Kinds of entries in Entry.Stream.
const (
	NoOrder = -1
	Foreign = -2
)

const magic = "ordergrid robustness history 1\n"

// Base of a partition; zero where nothing was before the run.
func (h *History) Base(p wire.PartitionID) Base {
	for _, b := range h.Bases {
		if b.Partition == p {
			return b
		}
	}
	return Base{Partition: p, Known: true}
}

// NoHolder reports that no process of the grid is known to hold the log.
func (h *History) NoHolder(p wire.PartitionID) bool {
	return h.Drill != nil && h.Drill.NoHolder[p.String()] != ""
}

// Save writes the history to a file, compressed.
func (h *History) Save(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return h.Write(f)
}

// Write is Save to a writer.
func (h *History) Write(w io.Writer) error {
	if _, err := io.WriteString(w, magic); err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	if err := gob.NewEncoder(z).Encode(h); err != nil {
		return err
	}
	return z.Close()
}

// Load reads what Save wrote.
func Load(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	h, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// Decode is Load from a reader. All references in its result are valid.
func Decode(r io.Reader) (*History, error) {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != magic {
		return nil, fmt.Errorf("begins with %.40q, allowed: a history that a drill or `robustness run` wrote (%q)", head, magic)
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	h := &History{}
	if err := gob.NewDecoder(z).Decode(h); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	// The check sum follows the last byte.
	if n, err := io.Copy(io.Discard, z); err != nil || n > 0 {
		return nil, fmt.Errorf("history: the end is damaged: %d bytes too many, %w", n, err)
	}
	return h, h.check()
}

// check refuses invalid references, so that judges need not check them.
func (h *History) check() error {
	for i := range h.Streams {
		if s := &h.Streams[i]; s.Node < -1 || s.Node >= len(h.Nodes) || s.Sessions < 0 || s.Sessions > 255 || len(s.Orders) > fixorder.MaxIndex {
			return fmt.Errorf("history: stream %d: node %d of %d, %d sessions, %d orders: out of range", i, s.Node, len(h.Nodes), s.Sessions, len(s.Orders))
		}
	}
	for i := range h.Reads {
		r := &h.Reads[i]
		if r.Stream < 0 || r.Stream >= len(h.Streams) || r.Node < 0 || r.Node >= len(h.Nodes) || r.Index < 0 || r.Index >= int64(len(h.Streams[r.Stream].Orders)) {
			return fmt.Errorf("history: read %d is of order %d of stream %d at node %d: out of range", i, r.Index, r.Stream, r.Node)
		}
	}
	for _, x := range h.Executions {
		if len(x.Records)%ExecutionSize != 0 {
			return fmt.Errorf("history: %s: %d bytes of executions: out of range", x.Where, len(x.Records))
		}
	}
	for _, x := range h.Told {
		if len(x.Records)%ExecutionSize != 0 {
			return fmt.Errorf("history: %s: %d bytes of executions that were told: out of range", x.Partition, len(x.Records))
		}
	}
	if err := h.Functions.check(); err != nil {
		return err
	}
	if d := h.Drill; d != nil && len(d.Faults) != len(h.Reps) {
		return fmt.Errorf("history: %d faults and %d repetitions: each has one", len(d.Faults), len(h.Reps))
	}
	for _, logs := range [][]Log{h.Logs, h.Sinks} {
		for i := range logs {
			for _, e := range logs[i].Entries {
				if e.Stream < Foreign || e.Stream >= len(h.Streams) || e.Index < 0 || e.Index > fixorder.MaxIndex {
					return fmt.Errorf("history: %s: entry %d is order %d of stream %d: out of range", logs[i].Where, e.Seq, e.Index, e.Stream)
				}
			}
		}
	}
	return nil
}
