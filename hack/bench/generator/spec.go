// Package generator is the client side of a benchmark: it puts one load on one
// system and prints the result. It runs as a process of its own, the same for
// every system; only the few lines that speak a system's protocol differ.
//
// A raw driver (relays) and the Redis driver wait in a blocking recvfrom on the
// thread that submits, as client.IOPinned does; the grid is driven by package
// client as its users have it. No driver has a goroutine between the submitting
// thread and the socket.
//
// Open-loop load is created by probe/load, as in order-probe: one creator on a
// schedule, threads that publish. Closed-loop load is a thread per client, or a
// fixed number of unanswered orders per connection.
package generator

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Kind names a driver.
type Kind string

// Drivers.
const (
	Raw   Kind = "raw"   // fixed-size messages: package floor
	Redis Kind = "redis" // SET and WAIT
	Grid  Kind = "grid"  // package client
	FIX   Kind = "fix"   // FIX sessions
	Null  Kind = "null"  // answers at once: what the generator itself costs
)

// Op is what clients do.
type Op string

// Operations.
const (
	Submit Op = "submit" // orders
	Get    Op = "get"    // reads by ClOrdID of orders that are there
)

// ReadMode of the grid's reads, see client.ReadMode.
type ReadMode string

// Read modes.
const (
	Confirmed ReadMode = "confirmed"
	Leased    ReadMode = "leased"
)

// Shape is the kind of load.
type Shape struct {
	Op Op `json:"op"`
	// Rate is the total of an open loop in orders/s; 0 is a closed loop.
	Rate int `json:"rate,omitempty"`
	// Threads are the clients, each with a connection of its own.
	Threads int `json:"threads"`
	// Depth is how many orders a client leaves unanswered; 1 is synchronous.
	Depth int `json:"depth"`
	// TwoSided orders buy and sell around one price; otherwise all buy.
	TwoSided bool `json:"two_sided,omitempty"`
}

// Spec is one run of the generator.
type Spec struct {
	Driver     Kind          `json:"driver"`
	Addresses  []string      `json:"addresses"`
	Shape      Shape         `json:"shape"`
	Size       int           `json:"size"`    // bytes of an order
	Request    int           `json:"request"` // raw: bytes of a request
	Reply      int           `json:"reply"`   // raw: bytes of an answer
	Copies     int           `json:"copies"`
	Warmup     time.Duration `json:"warmup"`
	Duration   time.Duration `json:"duration"`
	Held       int64         `json:"held"` // orders submitted before the warm-up; reads are of these
	PIDs       []int         `json:"pids"` // whose CPU time counts beside this process's
	ClientIO   string        `json:"client_io"`
	TLS        *secure.Files `json:"tls"`         // grid: nil is plain TCP
	FIX        *FIXLogin     `json:"fix"`         // of FIX sessions
	ReadMode   ReadMode      `json:"read_mode"`   // of the grid; "" is confirmed
	Procs      int           `json:"procs"`       // GOMAXPROCS; 0: as the shape needs
	ProfileDir string        `json:"profile_dir"` // "" writes no profile
	Series     bool          `json:"series"`      // an open loop also reports each second
	Told       bool          `json:"told"`        // grid: clients are told what happened to their orders
	// Program is the command line of a generator in another language, which then
	// speaks to the system in place of a driver of this one; nil: this one. Driver is
	// then the name of a class in it, or Null.
	Program []string `json:"program"`
	// ProgramWarmup is load of a Program ahead of Warmup, for compilers at run time.
	ProgramWarmup time.Duration `json:"program_warmup"`
}

// Result is the outcome. Times are nanoseconds.
type Result struct {
	Orders  int64         `json:"orders"` // answered within the measured time
	Elapsed time.Duration `json:"elapsed"`
	Failed  int64         `json:"failed"`
	Unsent  int64         `json:"unsent"`          // of Failed: orders of an open loop that the generator had no time for
	Error   string        `json:"error,omitempty"` // one example of what failed
	// SendToEnd is from handing the order to the driver to its answer.
	SendToEnd report.Histogram `json:"send_to_end"`
	// CreateToEnd is from the time the schedule intended; open loop only.
	CreateToEnd report.Histogram `json:"create_to_end"`
	// Lag is how late the creator was; open loop only.
	Lag report.Histogram `json:"lag"`
	// CPU of the measured time: this process and those of Spec.PIDs.
	OwnCPU, SystemCPU time.Duration
	// EachCPU is SystemCPU by process, in the order of Spec.PIDs.
	EachCPU []time.Duration
	Use     host.Use
	// ResidentBefore and After are the memory of the first of Spec.PIDs, in
	// bytes, before and after Spec.Held orders were submitted.
	ResidentBefore, ResidentAfter int64
	// Began is when the first order of the measured time was due. Series is what came of each second since, with Spec.Series.
	Began  time.Time `json:"began,omitzero"`
	Series []Second  `json:"series,omitempty"`
	// Warming is how many orders the last third of Spec.ProgramWarmup answered for each of
	// its middle third: 1 is warm. 0: there was none.
	Warming float64 `json:"warming,omitempty"`
	// GoHeap of the first process in bytes after the load, added by the runner.
	GoHeap int64 `json:"-"`
	// Executions that clients were told of, with Spec.Told.
	Executions int64 `json:"executions,omitempty"`
}

// Second is the outcome of the orders due in one second.
type Second struct {
	Orders      int64            `json:"orders"` // answered
	CreateToEnd report.Histogram `json:"create_to_end"`
	// Gap is the longest time in which no order was answered, of those that ended in this second.
	Gap time.Duration `json:"gap"`
}

func (s *Spec) check() error {
	sh := s.Shape
	switch {
	case sh.Op != Submit && sh.Op != Get:
		return fmt.Errorf("shape.op: value %q, allowed: submit, get", sh.Op)
	case sh.Threads < 1 || sh.Threads > 255:
		return fmt.Errorf("shape.threads: value %d, allowed: 1..255", sh.Threads)
	case sh.Depth < 1 || sh.Depth > maxDepth:
		return fmt.Errorf("shape.depth: value %d, allowed: 1..%d", sh.Depth, maxDepth)
	case sh.Rate < 0 || sh.Rate > 0 && (sh.Depth != 1 || sh.Op != Submit):
		return fmt.Errorf("shape.rate: value %d, allowed: 0, or the rate of submits with depth 1", sh.Rate)
	case sh.TwoSided && (sh.Op != Submit || s.Size != fixorder.Size || len(s.Program) > 0):
		return fmt.Errorf("shape.two_sided: value true, allowed: with submits of %d bytes by this generator", fixorder.Size)
	case s.Told && !sh.TwoSided:
		return fmt.Errorf("told: value true, allowed: with orders of both sides, of which some trade")
	case sh.Op == Get && s.Held < 1:
		return fmt.Errorf("held: value %d, allowed: 1 or more, for something to read", s.Held)
	case s.Duration <= 0 || s.Warmup < 0:
		return fmt.Errorf("duration: value %v, allowed: more than 0", s.Duration)
	case s.Driver == Raw && (s.Request < 8 || s.Reply < 8):
		return fmt.Errorf("request %d and reply %d: allowed: 8 bytes or more", s.Request, s.Reply)
	case len(s.Program) > 0 && (sh.Op != Submit || s.Held > 0 || s.Series || sh.Threads > maxProgramThreads):
		return fmt.Errorf("program: allowed: submits by at most %d threads, with no orders held and no series", maxProgramThreads)
	case len(s.Addresses) == 0 && s.Driver != Null:
		return fmt.Errorf("addresses: none given")
	}
	return nil
}

// maxProgramThreads leaves a Program client numbers for its warm-up.
const maxProgramThreads = 127

// maxDepth is the client's default window.
const maxDepth = 1024

// Main is the process: a Spec on in, a Result on out.
func Main(in io.Reader, out io.Writer) error {
	var s Spec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return fmt.Errorf("read the specification: %w", err)
	}
	r, err := Run(&s)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}
