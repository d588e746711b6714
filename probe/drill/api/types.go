package api

import "time"

// Port of the recorder, for /metrics too, as for probes.
const Port = 9401

// TokenVariable is the environment variable with the recorder's token.
const TokenVariable = "DRILL_TOKEN"

// The authority of the operator that started the recorder signs its certificate for two names: this
// one, for Prometheus, and ServerNameOf.
const ServerName = "recorder.ordergrid.dev"

// ServerNameOf is the name of the recorder of one drill, by the UID of its FailoverDrill.
func ServerNameOf(uid string) string { return uid + "." + ServerName }

// MetricsReader is the common name of the certificate, of the same authority, that may get /metrics
// and nothing else.
const MetricsReader = "ordergrid-drill-metrics"

// Paths.
const (
	PathState       = "/v1/state"
	PathSteps       = "/v1/steps/" // + index [+ "/" + Event]
	PathFinish      = "/v1/finish"
	PathCertificate = "/v1/certificate.json"
	PathText        = "/v1/certificate.txt"
	PathPage        = "/v1/certificate.html"
	PathHistory     = "/v1/history.gz"
	PathDigests     = "/v1/sha256" // Digests
)

// Phase of a recorder. It only goes forward.
type Phase string

// Phases.
const (
	Preparing Phase = "Preparing" // connects and opens its sessions
	Running   Phase = "Running"   // orders flow
	Finishing Phase = "Finishing" // no new orders; logs and sinks are read and judged
	Done      Phase = "Done"      // there is a certificate, whatever its verdict
	Failed    Phase = "Failed"    // there will be no certificate; Error has the reason
)

// State answers GET /v1/state.
type State struct {
	Phase      Phase     `json:"phase"`
	Error      string    `json:"error,omitempty"` // why Failed, or what is wrong while Running
	Now        time.Time `json:"now"`
	Started    time.Time `json:"started,omitzero"` // when the first order was created
	Partitions []string  `json:"partitions"`       // names: p1
	Counts     Counts    `json:"counts"`

	// Redundant: every partition has a primary and all its copies in sync, as reported by the grid,
	// since RedundantSince. Otherwise Missing describes what is missing.
	Redundant      bool      `json:"redundant"`
	RedundantSince time.Time `json:"redundantSince,omitzero"`
	Missing        string    `json:"missing,omitempty"`
	// Calm is how long the grid has been redundant and no session was without an acknowledgement
	// for longer than GapLimit. A new step should begin in a calm time.
	Calm     time.Duration `json:"calmNanoseconds"`
	GapLimit time.Duration `json:"gapLimitNanoseconds"`
	// WorstGap is the longest time a session was without an acknowledgement in the last ten
	// seconds, including the present gap.
	WorstGap time.Duration `json:"worstGapNanoseconds"`
	// Refusal is the error of the last order refused by the grid, if that was in the last ten
	// seconds.
	Refusal string `json:"refusal,omitempty"`
	// P99 of the orders created in about the last ten seconds.
	P99 time.Duration `json:"p99Nanoseconds"`

	// MaxOrders is the capacity of the ledger; Full: the traffic was ended because the ledger is
	// full.
	MaxOrders int64 `json:"maxOrders"`
	Full      bool  `json:"full,omitempty"`
	// Progress of Finishing, for display.
	Progress string `json:"progress,omitempty"`
	Verdict  string `json:"verdict,omitempty"` // of the certificate, when Done
}

// Counts of orders so far, as known to their sender.
type Counts struct {
	Created      int64 `json:"created"`
	Acknowledged int64 `json:"acknowledged"`
	Rejected     int64 `json:"rejected"` // refused: certainly not in the grid
	Unknown      int64 `json:"unknown"`  // no answer: may or may not be in the grid
	Waiting      int64 `json:"waiting"`  // not sent yet, or not answered yet
	// OneCopy of the acknowledged ones were held by one process only, according to their receipts.
	OneCopy int64 `json:"oneCopy"`
}

// Step is the body of PUT /v1/steps/{index}.
type Step struct {
	Repetition int    `json:"repetition"` // from 1
	Fault      string `json:"fault"`      // its name in the drill
	Type       string `json:"type"`       // a DrillFaultType such as PodKill
	Provider   string `json:"provider"`   // name of the injector
	What       string `json:"what"`       // for display: "PodKill trades-s0-1 (primary of p0)"
	// Pods are the targets. After a fault that ends their processes (see EndsProcess) the grid is
	// redundant again only without these members; no pods stands for all pods of the grid.
	Pods []string `json:"pods,omitempty"`
	// Partitions whose service the step affects; none stands for all.
	Partitions []string `json:"partitions,omitempty"`
	// Expect is the expectations of the step.
	Expect Expect `json:"expect,omitzero"`
}

// Expect of a step, or of all steps of a drill: zero fields are not judged.
type Expect struct {
	Outage          time.Duration `json:"outageNanoseconds,omitempty"`          // longest time a session may be without an acknowledgement
	P99             time.Duration `json:"p99Nanoseconds,omitempty"`             // of the orders created during the step that were acknowledged
	SteadyP99       time.Duration `json:"steadyP99Nanoseconds,omitempty"`       // of the orders created in the calm before the step, and in the time after it
	RedundantWithin time.Duration `json:"redundantWithinNanoseconds,omitempty"` // from the end of the fault
	// FailedOrders is None or Allowed; "" is Allowed.
	FailedOrders string `json:"failedOrders,omitempty"`
	// Loss is Never, or Warned: orders may be lost whose receipts named one process, provided that
	// the grid had reported that before (docs/drills.md). "" is Never.
	Loss string `json:"loss,omitempty"`
}

// Values of Expect.
const (
	FailedOrdersNone    = "None"
	FailedOrdersAllowed = "Allowed"
	LossNever           = "Never"
	LossWarned          = "Warned"
)

// endsProcess are the faults after which the processes that were hit never return, only others in
// their place.
var endsProcess = map[string]bool{
	"PodKill": true, "PodFailure": true, "ContainerKill": true, "PodDelete": true, "NodePowerOff": true, "RollingUpdate": true,
	"NodeDrain": true, // not used by the operator's drills: e2e/operations
}

// EndsProcess reports whether a fault of the type ends the grid processes it hits.
func EndsProcess(faultType string) bool { return endsProcess[faultType] }

// atOnce are the momentary faults.
var atOnce = map[string]bool{"PodKill": true, "ContainerKill": true, "PodDelete": true, "HandOver": true}

// Lasts reports whether a fault of the type lasts until it is recovered.
func Lasts(faultType string) bool { return !atOnce[faultType] }

// Event of a step (POST /v1/steps/{index}/{event}).
type Event string

// Events, in this order; Failed ends a step at any time.
const (
	Injected  Event = "injected"  // the fault is in place, as reported by the provider
	Recovered Event = "recovered" // it is recovered; immediately after Injected for a momentary fault
	Abandoned Event = "failed"    // the step could not be carried out
)

// Note is the body of an event.
type Note struct {
	Message string `json:"message,omitempty"`
	// Witness of the fault. It may come with any event; once Seen it stays.
	Witness Witness `json:"witness,omitzero"`
}

// Witness of a fault.
type Witness struct {
	State   WitnessState `json:"state,omitempty"`
	Message string       `json:"message,omitempty"` // what was seen: "pod uid 1 is gone, 2 is there"
}

// WitnessState is whether a fault was shown to have hit.
type WitnessState string

// Witness states. A step whose witness is not Seen makes the drill Invalid.
const (
	Pending WitnessState = "Pending"
	Seen    WitnessState = "Seen"
	NotSeen WitnessState = "NotSeen"
)

// Record answers GET and PUT /v1/steps/{index}: the recorder's data of a step.
type Record struct {
	Index int `json:"index"`
	Step
	Now       time.Time `json:"now"`
	Ready     time.Time `json:"ready"`              // since when the conditions were met before
	From      time.Time `json:"from"`               // the step was begun; the fault may be in place from here on
	Injected  time.Time `json:"injected,omitzero"`  // time of the notification
	Recovered time.Time `json:"recovered,omitzero"` // time of the notification
	// Served: all sessions of the partitions have had an order acknowledged that was
	// created after Injected.
	Served time.Time `json:"served,omitzero"`
	// Redundant: all copies of all partitions are in sync again, and stayed so until now. Known
	// only after Recovered.
	Redundant time.Time `json:"redundant,omitzero"`
	Missing   string    `json:"missing,omitempty"` // what redundancy lacks
	// Over: served, and redundant after the recovery of the fault; or Failed.
	Over     bool          `json:"over"`
	Failed   string        `json:"failed,omitempty"`
	WorstGap time.Duration `json:"worstGapNanoseconds"` // outage of the step so far, including the present silence; once Over, as in the certificate
	P99      time.Duration `json:"p99Nanoseconds"`      // of the orders acknowledged since From
	Counts   Counts        `json:"counts"`              // of the orders since From
	Witness  Witness       `json:"witness"`
}

// Finish is the body of POST /v1/finish.
type Finish struct {
	// Aborted is why the drill ends early; empty at its regular end.
	Aborted string `json:"aborted,omitempty"`
	// DataLoss names the partitions for which the grid suspects that no process holds their log
	// (GridPartition, condition DataLossSuspected).
	DataLoss []string `json:"dataLoss,omitempty"`
	// Nodes are the data ports (host:port) of all present pods of the grid: a replacement pod may
	// have its predecessor's sink files.
	Nodes []string `json:"nodes,omitempty"`
	// Context is copied into the certificate: versions, images, seed, spec.
	Context Context `json:"context"`
}

// Context is what is needed to repeat a drill. The recorder adds its own.
type Context struct {
	Drill      string            `json:"drill,omitempty"`     // namespace/name
	UID        string            `json:"uid,omitempty"`       // of the drill
	Grid       string            `json:"grid,omitempty"`      // namespace/name
	Suite      string            `json:"suite,omitempty"`     // or "own faults"
	Seed       int64             `json:"seed"`                // of the plan
	Spec       string            `json:"spec,omitempty"`      // the drill's, YAML or JSON
	GridSpec   string            `json:"gridSpec,omitempty"`  // the grid's, YAML or JSON
	Versions   map[string]string `json:"versions,omitempty"`  // operator, chaos-mesh, kubernetes, kernel of a node ...
	Images     map[string]string `json:"images,omitempty"`    // by role, with digest
	Warnings   []string          `json:"warnings,omitempty"`  // conditions of the grid that warned, with their times
	StepsAsked int               `json:"stepsAsked"`          // number of steps in the plan
	Expect     Expect            `json:"expect,omitzero"`     // of the whole drill
	Providers  map[string]string `json:"providers,omitempty"` // fault type to provider
}

// AnnouncedTopic is the topic of a stream gateway that announcements of a drill are published to, behind which comes its name.
const AnnouncedTopic = "user.drills."

// Announcement is how a drill is getting on, for those who watch it. It is no part of its evidence.
type Announcement struct {
	Drill        string          `json:"drill"`
	Phase        Phase           `json:"phase"`
	Error        string          `json:"error,omitempty"`
	Now          time.Time       `json:"now"`
	Created      int64           `json:"created"` // orders, as in Counts
	Acknowledged int64           `json:"acknowledged"`
	Rejected     int64           `json:"rejected"`
	Unknown      int64           `json:"unknown"`
	Redundant    bool            `json:"redundant"`
	Missing      string          `json:"missing,omitempty"`
	Verdict      string          `json:"verdict,omitempty"`
	Steps        []AnnouncedStep `json:"steps"` // the last ones, in the order in which they began
}

// AnnouncedStep is a step of an Announcement. Fields are as in Record.
type AnnouncedStep struct {
	Index     int          `json:"index"`
	What      string       `json:"what"`
	From      time.Time    `json:"from"`
	Injected  time.Time    `json:"injected,omitzero"`
	Recovered time.Time    `json:"recovered,omitzero"`
	Served    time.Time    `json:"served,omitzero"`
	Redundant time.Time    `json:"redundant,omitzero"`
	Over      bool         `json:"over"`
	Failed    string       `json:"failed,omitempty"`
	Witness   WitnessState `json:"witness,omitempty"`
	OutageMS  float64      `json:"outageMs"`
}

// Digests answers GET /v1/sha256.
type Digests struct {
	Certificate string `json:"certificate"` // of the bytes of /v1/certificate.json, hex
	History     string `json:"history"`     // of the bytes of /v1/history.gz, hex
}
