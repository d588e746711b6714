package nodestatus

import (
	"context"
	"fmt"
	"net/http"
)

// TakeoversPath of the page on a node's HTTP port.
const TakeoversPath = "/takeovers"

// KeptChanges of each partition are on the page, the last ones; of a node with very many partitions fewer of each, so that
// there are at most MaxChanges.
const (
	KeptChanges = 16
	MaxChanges  = 4 * MaxPartitions
)

// Causes of a Change.
const (
	CauseClaim      = "claim"         // the first configuration of a partition
	CauseTakeOver   = "take-over"     // a backup became the primary: the primary before was lost
	CauseShrink     = "shrink"        // the primary dropped a member that was lost
	CauseAdmit      = "admission"     // a replica that had caught up became in sync
	CauseRetire     = "retirement"    // the primary let a member go that is about to stop
	CauseHandOver   = "hand-over"     // a planned change of primary
	CauseAcceptLoss = "new lineage"   // a person accepted the loss of data
	CauseReassert   = "reassertion"   // the primary put its configuration over a record that had gone back
	CauseUnknown    = "not seen here" // this node was told of a later configuration than the next one
)

// Outcomes of a Change.
const (
	OutcomeProposed  = "proposed"  // the arbiter has not answered yet
	OutcomeAccepted  = "accepted"  // it is this node's configuration, or was
	OutcomeOvertaken = "overtaken" // this node's proposal was not accepted: another change was made first
)

// Takeovers are the last changes of configuration that a node took part in: it proposed them, or was a member before or
// after.
type Takeovers struct {
	Pod     string   `json:"pod"`
	BootID  string   `json:"bootID"`
	Changes []Change `json:"changes"` // of each partition the latest first
}

// Change is one change of a partition's configuration as this node saw it. When something happened is told as its age at
// the time of the answer, so that no two clocks have to agree: nanoseconds, by the node's monotonic clock, to the wake-up
// of its loop; 0 is "did not happen, or not yet".
type Change struct {
	Record    string `json:"record"`    // name of the GridPartition
	Partition string `json:"partition"` // "p1"
	Member    string `json:"member"`    // "<pod>/<bootID>" of this node's incarnation in the partition
	ChangeID  string `json:"changeID"`
	Epoch     uint64 `json:"epoch"` // that the change leads to
	Lineage   uint64 `json:"lineage"`
	Cause     string `json:"cause"`
	Outcome   string `json:"outcome"`
	Proposed  bool   `json:"proposedHere,omitempty"` // this node proposed it
	Attempts  int    `json:"attempts,omitempty"`     // times this node asked the arbiter
	// Role of this node after the change: primary, backup, learner, fenced, stopped; as of now for one that is not decided.
	Role    string   `json:"role"`
	Primary string   `json:"primary"` // member id
	InSync  []string `json:"inSync"`  // member ids
	Lost    []string `json:"lost,omitempty"`
	// Reset says how the loss was noticed, of a take-over or a shrink proposed here: the connection ended and nobody answers
	// (true), or there was no sign of life for so long (SilentNs).
	Reset    bool  `json:"reset,omitempty"`
	SilentNs int64 `json:"silentNs,omitempty"` // how old the last sign of life of the lost member was at ProposedAgoNs

	SuspectedAgoNs  int64 `json:"suspectedAgoNs,omitempty"`  // the lost member's connection ended; without that as ProposedAgoNs
	ProposedAgoNs   int64 `json:"proposedAgoNs,omitempty"`   // this node fenced or suspended itself, and asked the arbiter first
	AcceptedAgoNs   int64 `json:"acceptedAgoNs,omitempty"`   // this node knew that it is the configuration
	ServingAgoNs    int64 `json:"servingAgoNs,omitempty"`    // as the primary, it could acknowledge orders
	FirstOrderAgoNs int64 `json:"firstOrderAgoNs,omitempty"` // it acknowledged the first order after that
}

// GetTakeovers asks the node at address, "host:port" of its HTTP port.
func GetTakeovers(ctx context.Context, c *http.Client, address string) (*Takeovers, error) {
	t := &Takeovers{}
	if err := get(ctx, c, address, TakeoversPath, maxTakeovers, t); err != nil {
		return nil, err
	}
	if t.Pod == "" || t.BootID == "" || len(t.Changes) > MaxChanges {
		return nil, fmt.Errorf("GET http://%s%s: the answer names pod %.80q, boot id %.20q and %d changes; is this a grid node of this version?",
			address, TakeoversPath, t.Pod, t.BootID, len(t.Changes))
	}
	return t, nil
}
