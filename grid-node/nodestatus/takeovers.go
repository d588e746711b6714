package nodestatus

import (
	"context"
	"fmt"
	"net/http"
)

// TakeoversPath of the page on a node's HTTP port.
const TakeoversPath = "/takeovers"

// KeptChanges is the number of last changes of each partition on the page; with very many
// partitions fewer of each, so that there are at most MaxChanges.
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
	CauseRetire     = "retirement"    // the primary removed a member that is about to stop
	CauseHandOver   = "hand-over"     // a planned change of primary
	CauseAcceptLoss = "new lineage"   // an administrator accepted data loss
	CauseReassert   = "reassertion"   // the primary overwrote a record that had been rolled back
	CauseUnknown    = "not seen here" // this node learned of a configuration later than the next one
)

// Outcomes of a Change.
const (
	OutcomeProposed  = "proposed"  // the arbiter has not answered yet
	OutcomeAccepted  = "accepted"  // it is this node's configuration, or was
	OutcomeOvertaken = "overtaken" // this node's proposal was not accepted: another change was made first
)

// Takeovers are the last changes of configuration that a node took part in: it proposed
// them, or was a member before or after.
type Takeovers struct {
	Pod     string   `json:"pod"`
	BootID  string   `json:"bootID"`
	Changes []Change `json:"changes"` // of each partition the latest first
}

// Change is one change of a partition's configuration as this node saw it. Times are given
// as ages at the time of the answer, so that no two clocks have to agree: nanoseconds, by
// the node's monotonic clock, with the resolution of a wake-up of its loop; 0 is "did not
// happen, or not yet".
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
	// Role of this node after the change: primary, backup, learner, fenced, stopped; the
	// present one if undecided.
	Role    string   `json:"role"`
	Primary string   `json:"primary"` // member id
	InSync  []string `json:"inSync"`  // member ids
	Lost    []string `json:"lost,omitempty"`
	// Reset reports how the loss was noticed, for a take-over or shrink proposed here: the
	// connection ended and reconnecting failed (true), or heartbeats were missing for
	// SilentNs.
	Reset    bool  `json:"reset,omitempty"`
	SilentNs int64 `json:"silentNs,omitempty"` // age of the lost member's last heartbeat at ProposedAgoNs

	SuspectedAgoNs  int64 `json:"suspectedAgoNs,omitempty"`  // the lost member's connection ended; otherwise as ProposedAgoNs
	ProposedAgoNs   int64 `json:"proposedAgoNs,omitempty"`   // this node fenced or suspended itself, and asked the arbiter first
	AcceptedAgoNs   int64 `json:"acceptedAgoNs,omitempty"`   // this node learned that it was accepted
	ServingAgoNs    int64 `json:"servingAgoNs,omitempty"`    // as the primary, it could acknowledge orders
	FirstOrderAgoNs int64 `json:"firstOrderAgoNs,omitempty"` // it acknowledged the first order after that
}

// GetTakeovers requests the page from the node at address, "host:port" of its HTTP port.
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
