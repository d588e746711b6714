package certificate

import (
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// Schema of the JSON below. A field may be added to a version, never changed.
const Schema = "ordergrid.dev/loss-certificate/v1"

// Verdict of a drill.
type Verdict string

// Verdicts, from best to worst.
const (
	Pass     Verdict = "Pass"     // every fault hit, no guarantee was violated, the steady state was kept
	Missed   Verdict = "Missed"   // no violation, but it took longer, or more orders failed, than the drill allows
	Invalid  Verdict = "Invalid"  // nothing is proved: a fault did not hit, something could not be read, the machine was disturbed
	Violated Verdict = "Violated" // an acknowledged order was lost, or another guarantee was violated
)

// Certificate of one drill. Durations are nanoseconds.
type Certificate struct {
	Schema  string   `json:"schema"`
	Verdict Verdict  `json:"verdict"`
	Reasons []string `json:"reasons"` // why it is not Pass; the most important first

	Drill         string        `json:"drill,omitempty"` // namespace/name
	UID           string        `json:"uid,omitempty"`
	Grid          string        `json:"grid,omitempty"`
	Suite         string        `json:"suite,omitempty"`
	Seed          int64         `json:"seed"`
	Started       time.Time     `json:"started"`
	Judged        time.Time     `json:"judged"` // when everything had been read
	Took          time.Duration `json:"tookNanoseconds"`
	Replicas      int           `json:"replicas"` // configured copies of every order
	Rate          int           `json:"ordersPerSecond"`
	HistorySHA256 string        `json:"historySHA256"` // of history.gz, hex

	Orders Orders `json:"orders"`
	Ledger Ledger `json:"ledger"`
	// Executions is there for a grid that matches.
	Executions *Executions `json:"executions,omitempty"`
	// Functions is there for a grid that calls functions for orders.
	Functions *Functions `json:"functions,omitempty"`
	Control   Control    `json:"negativeControl"`
	Linear    Linear     `json:"linearizability"`
	Steps     []Step     `json:"steps"`

	Outage      validate.Spread `json:"outage"`      // worst session, per step
	FirstServed validate.Spread `json:"firstServed"` // the partition as a whole, per step
	Redundant   validate.Spread `json:"redundant"`   // from the end of the fault, per step
	P99Before   validate.Spread `json:"p99Before"`
	P99During   validate.Spread `json:"p99During"`
	P99After    validate.Spread `json:"p99After"`
	Noise       validate.Spread `json:"noise"`  // longest gap in calm times, per step
	Stalls      validate.Spread `json:"stalls"` // of the recorder itself

	Violations []string             `json:"violations"`
	Unread     []string             `json:"unread"`
	Partitions []validate.Partition `json:"partitions"`
	Host       history.Host         `json:"host"` // where the recorder ran
	Context    api.Context          `json:"context"`
	Recorder   map[string]string    `json:"recorder"`
	Notes      []string             `json:"notes"`
}

// Orders by the answer to their sender.
type Orders struct {
	Created      int64 `json:"created"`
	Acknowledged int64 `json:"acknowledged"`
	Rejected     int64 `json:"rejected"` // refused: must not be found
	Unknown      int64 `json:"unknown"`  // no answer in time: may be found
	Unsent       int64 `json:"unsent"`   // never left the recorder
	OneCopy      int64 `json:"oneCopy"`  // acknowledged with a receipt of one copy: the grid warned
	Direct       int64 `json:"insiders"` // in addition, sent to one node each
}

// Ledger is where the orders are. All counts are orders except Gaps.
type Ledger struct {
	Copies     int    `json:"copies"` // copies of logs that were compared
	Sink       string `json:"sink"`   // what was compared downstream, or why nothing was
	Downstream int64  `json:"downstream"`
	Lost       int64  `json:"lost"` // acknowledged, in no copy in sync, and not downstream
	// LostWarned of these were acknowledged with a receipt of one copy, when the grid had reported
	// that it is not redundant, before the next fault (docs/drills.md).
	LostWarned        int64  `json:"lostWarned"`
	MissingInCopies   int64  `json:"missingInCopies"`   // not lost, but not in every copy in sync
	MissingDownstream int64  `json:"missingDownstream"` // not lost, and not downstream
	Duplicated        int64  `json:"duplicated"`
	Gaps              int64  `json:"gaps"` // sequence numbers
	OutOfOrder        int64  `json:"outOfOrder"`
	UnknownFound      int64  `json:"unknownFound"` // no answer, and found
	UnknownAbsent     int64  `json:"unknownAbsent"`
	RejectedFound     int64  `json:"rejectedFound"`
	Misplaced         int64  `json:"misplaced"`
	Corrupt           int64  `json:"corrupt"`
	RepeatedReceipts  int64  `json:"repeatedReceipts"`
	Unjudged          int64  `json:"unjudged"` // of partitions that could not be read
	LostExamples      []Lost `json:"lostExamples,omitempty"`
}

// Missing are the acknowledged orders that are not in all places.
func (l *Ledger) Missing() int64 { return l.Lost + l.MissingInCopies + l.MissingDownstream }

// Lost is an order that was acknowledged and is nowhere.
type Lost struct {
	ClOrdID   string        `json:"clOrdID"`
	Partition string        `json:"partition"`
	Seq       uint64        `json:"seq"` // by its receipt
	Epoch     uint64        `json:"epoch"`
	Copies    uint8         `json:"copies"`                  // by its receipt
	At        time.Duration `json:"acknowledgedNanoseconds"` // after the start
	Warned    bool          `json:"warned"`
}

// Control is the negative control: the same checks on the same logs, with orders removed and others
// duplicated.
type Control struct {
	Result     string `json:"result"` // Passed, Failed, Impossible
	Dropped    int64  `json:"dropped"`
	Lost       int64  `json:"lost"` // found additionally; must be Dropped
	Repeated   int64  `json:"repeated"`
	Duplicated int64  `json:"duplicated"` // found additionally; must be Repeated
	Gaps       int64  `json:"gaps"`       // found additionally; must be Dropped
	Seed       uint64 `json:"seed"`       // that chose them
}

// Executions is the account of a grid that matches: its logs matched again, naively, and what
// copies say and sessions were told held against that.
type Executions struct {
	Copies       int              `json:"copies"` // whose executions were compared
	Orders       int64            `json:"orders"`
	Executions   int64            `json:"executions"` // and what else happened to books
	Trades       int64            `json:"trades"`
	Auctions     int64            `json:"auctions"`
	Resting      int64            `json:"resting"`   // orders at the end
	Told         int64            `json:"told"`      // executions that the sessions of the drill were told
	Lost         int64            `json:"lost"`      // of these, not in the log, or there as another one
	Different    int64            `json:"different"` // entries that a copy in sync executed otherwise than by price and time
	Unsummed     int64            `json:"unsummed"`  // orders, positions and sums of a copy that do not add up
	Control      ExecutionControl `json:"negativeControl"`
	LostExamples []string         `json:"lostExamples,omitempty"`
	Findings     []string         `json:"findings,omitempty"`
}

// Functions is the account of a grid that calls functions for orders: what those of kind Pre set in
// the orders of the drill, and the records that copies have of those of kind Post.
type Functions struct {
	Pre       []string        `json:"pre"`              // in the order in which they decide
	Chains    []string        `json:"chains"`           // SHA-256 of all that decides; several: it was changed
	Stamp     uint32          `json:"stamp,omitempty"`  // the tag with the beginning of a chain; 0: none
	Values    []SetValue      `json:"values,omitempty"` // set in the orders of the drill
	Decided   int64           `json:"decided"`          // orders of the drill in the log
	Unstamped int64           `json:"unstamped"`        // orders without the stamp of a chain
	Post      []string        `json:"post"`
	Copies    int             `json:"copies"` // whose records were compared
	Records   int64           `json:"records"`
	Failed    int64           `json:"failed"`            // calls without a result
	Linked    int64           `json:"linked"`            // records of an audit trail that are linked to the one before
	Different int64           `json:"different"`         // entries of which a copy in sync has other records
	Missing   int64           `json:"missing"`           // orders without a record of an audit trail, or with that of a failed call
	Broken    int64           `json:"broken"`            // records of an audit trail that are not linked
	LeftOut   []string        `json:"leftOut,omitempty"` // audit trails that were not in force all the time: not judged
	Control   FunctionControl `json:"negativeControl"`
	Findings  []string        `json:"findings,omitempty"`
}

// SetValue is a value of a tag that functions may set, and how many orders have it; "" is none.
type SetValue struct {
	Tag    uint32 `json:"tag"`
	Value  string `json:"value"`
	Orders int64  `json:"orders"`
}

// FunctionControl is the negative control of Functions: records of one copy that were taken out,
// changed, or put at each other's place.
type FunctionControl struct {
	Result string `json:"result"` // Passed, Failed, Impossible
	Done   int64  `json:"done"`
	Found  int64  `json:"found"` // must be Done
}

// ExecutionControl is the negative control of Executions: trades of one copy that were taken out,
// put in twice, done out of the order of price and time, or given to another owner.
type ExecutionControl struct {
	Result string `json:"result"` // Passed, Failed, Impossible
	Done   int64  `json:"done"`
	Found  int64  `json:"found"` // must be Done
}

// Values of Control.Result.
const (
	ControlPassed = "Passed"
	ControlFailed = "Failed"
	// ControlImpossible: no acknowledged order is in all places; no order trades with two; there
	// are no records.
	ControlImpossible = "Impossible"
)

// Linear is the result of Porcupine and the rules across orders during faults.
type Linear struct {
	Windows    int    `json:"windows"` // windows that were checked
	Orders     int    `json:"orders"`
	Reads      int    `json:"reads"`   // confirmed reads
	Refused    int64  `json:"refused"` // confirmed reads refused by nodes that are not primary
	Result     string `json:"result"`  // Linearizable, Violated
	Violations int    `json:"violations"`
}

// Values of Linear.Result.
const (
	Linearizable  = "Linearizable"
	NotExplicable = "Violated"
)

// Outcome of a step.
type Outcome string

// Outcomes.
const (
	StepPassed  Outcome = "Passed"
	StepMissed  Outcome = "Missed"
	StepInvalid Outcome = "Invalid"
)

// Step is one fault and what followed.
type Step struct {
	Index      int         `json:"index"`
	Repetition int         `json:"repetition"`
	Fault      string      `json:"fault"`
	Type       string      `json:"type"`
	Provider   string      `json:"provider"`
	What       string      `json:"what"`
	Targets    []string    `json:"targets"`
	Partitions []string    `json:"partitions"`
	At         time.Time   `json:"at"` // when the step began to inject
	Witness    api.Witness `json:"witness"`
	Outcome    Outcome     `json:"outcome"`
	Reasons    []string    `json:"reasons,omitempty"`
	Message    string      `json:"message,omitempty"`

	Outage         time.Duration    `json:"outageNanoseconds"` // the longest time a session was without an acknowledgement
	FirstServed    time.Duration    `json:"firstServedNanoseconds"`
	Detected       time.Duration    `json:"detectedNanoseconds,omitempty"`  // until a node first removed a failed one, on the timeline's clock; 0: none did
	TakenOver      time.Duration    `json:"takenOverNanoseconds,omitempty"` // until the last partition had a configuration without it
	Lasted         time.Duration    `json:"lastedNanoseconds"`              // from injected to recovered; 0: momentary
	RedundantAfter time.Duration    `json:"redundantAfterNanoseconds"`      // from the end of the fault
	Stall          time.Duration    `json:"stallNanoseconds"`               // longest sleep of the recorder itself in the outage
	Disturbed      bool             `json:"disturbed"`                      // the outage is not the grid's alone
	FailedOrders   int64            `json:"failedOrders"`
	Before         validate.Latency `json:"before"`
	During         validate.Latency `json:"during"`
	After          validate.Latency `json:"after"`
	Timeline       []Moment         `json:"timeline"`
}

// Moment of a step's timeline.
type Moment struct {
	At        time.Duration `json:"atNanoseconds"` // after the last acknowledgement before the outage, or else after the step began
	What      string        `json:"what"`
	Partition string        `json:"partition,omitempty"`
	Who       string        `json:"who,omitempty"` // member, or "recorder"
}
