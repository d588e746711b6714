// Package arbiter is where a partition's configuration lives: one record per
// partition, changed by compare-and-swap only, at a change of membership only.
// It is never asked on the data path.
//
// Two implementations stand behind the interface: arbiter/kube keeps the records
// in GridPartition objects of a Kubernetes API server, arbiter/memory in the
// memory of one process (`grid-node dev`, tests). Both apply the rules of
// CheckTransition, the API server as CEL rules of the CRD.
package arbiter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Member is one incarnation of a replica: a restarted process is another member.
type Member struct {
	ID      string `json:"id"`      // "<pod>/<bootID>"
	PodName string `json:"podName"` // the pod the process runs in
	BootID  string `json:"bootID"`  // 16 lower-case hex digits
	Address string `json:"address"` // "ip:port" of the data port
}

// Spec is the desired state of a partition. Nodes only read it.
type Spec struct {
	Grid      string `json:"grid"`
	Partition int    `json:"partition"` // its number
	Shard     int    `json:"shard"`     // whose pods hold it; Pods names them
	Replicas  int    `json:"replicas"`  // copies wanted, the primary's included; 1..3
	MinInSync int    `json:"minInSync"` // fewer in-sync copies refuse orders; 1..Replicas
	// MaxInSync is the number of copies up to which the primary admits pods; above it the
	// pod with the largest name is removed. Replicas..3; 0: Replicas.
	MaxInSync int `json:"maxInSync,omitempty"`
	// Pods are the names of the pods that should hold a copy, Replicas..4 of them;
	// MaxInSync is ignored then. Empty: every pod may.
	Pods         []string `json:"pods,omitempty"`
	PreferredPod string   `json:"preferredPod"` // the pod that should be primary

	// LearnerRate is the most bytes a second that the primary sends to all learners of the
	// partition together: MinLearnerRate..MaxLearnerRate, and at most what the node's own
	// limit leaves. 0: the node's limit alone.
	LearnerRate int64 `json:"learnerRate,omitempty"`

	// AcceptDataLossEpoch is the epoch whose in-sync members an administrator has given
	// up; only then may lineage rise. 0: none.
	AcceptDataLossEpoch uint64 `json:"acceptDataLossEpoch,omitempty"`
	// ReassertChangeID is the change id of the configuration that an administrator
	// declares the true one although this record shows an older one. "": none.
	ReassertChangeID string `json:"reassertChangeID,omitempty"`

	// Restore is the recovery point that the partition begins with, nil if it begins empty.
	// Set when the record is created, and never changed.
	Restore *Restore `json:"restore,omitempty"`
	// Standby: the first claim makes the partition a standby of another site, see site.go.
	Standby bool    `json:"standby,omitempty"`
	Source  string  `json:"source,omitempty"` // of a standby: the other site, for clients
	Promote Promote `json:"promote,omitzero"`
	Demote  Demote  `json:"demote,omitzero"`

	// External lists where clients outside the cluster reach the grid's pods, those of all
	// shards; only in the record of partition 0.
	External []ExternalAddress `json:"external,omitempty"`
}

// Restore is a recovery point of an archive. The first claim of the record is made by a
// process that holds exactly the entries up to it, at the next epoch and the next lineage.
type Restore struct {
	Seq     uint64 `json:"seq"`     // last entry, at least 1
	Hash    string `json:"hash"`    // of that entry, 16 lower-case hex digits
	Epoch   uint64 `json:"epoch"`   // highest epoch of the archived grid that is known, at least that of the archive
	Lineage uint64 `json:"lineage"` // the same for its lineage
}

// Check rejects an invalid recovery point.
func (r *Restore) Check() error {
	n, err := strconv.ParseUint(r.Hash, 16, 64)
	switch {
	case r.Seq == 0 || r.Epoch == 0 || r.Lineage == 0:
		return fmt.Errorf("restore: seq %d, epoch %d, lineage %d, allowed: 1 or more, as the dry run of a restore reports them", r.Seq, r.Epoch, r.Lineage)
	case r.Epoch >= 1<<32-1 || r.Lineage >= 1<<32-1:
		return fmt.Errorf("restore: epoch %d, lineage %d, allowed: below 4294967295", r.Epoch, r.Lineage)
	case err != nil || fmt.Sprintf("%016x", n) != r.Hash:
		return fmt.Errorf("restore: hash is %q, allowed: 16 lower-case hex digits", r.Hash)
	}
	return nil
}

// HashValue is Hash as a number, 0 if it is invalid.
func (r *Restore) HashValue() uint64 {
	n, _ := strconv.ParseUint(r.Hash, 16, 64)
	return n
}

// ExternalAddress is where clients outside the cluster reach a pod.
type ExternalAddress struct {
	Pod     string `json:"pod"`
	Address string `json:"address"` // "host:port"
}

// MaxMembers of a configuration: three copies, and one more while they move to other pods.
const MaxMembers = 4

// Bounds of Spec.LearnerRate, bytes per second.
const (
	MinLearnerRate = 64 << 10
	MaxLearnerRate = 16 << 30
)

// CheckLearnerRate rejects a rate out of bounds.
func (s *Spec) CheckLearnerRate() error {
	if n := s.LearnerRate; n != 0 && (n < MinLearnerRate || n > MaxLearnerRate) {
		return fmt.Errorf("learnerRate: value %d, allowed: %d to %d bytes a second, or 0 for the limit of the node alone", n, MinLearnerRate, int64(MaxLearnerRate))
	}
	return nil
}

// Record is the configuration of a partition as the arbiter holds it.
type Record struct {
	Name     string    `json:"name"`             // the object's name, "<grid>-p<number>"
	Version  string    `json:"version"`          // opaque; what CompareAndSwap expects to find
	Epoch    uint64    `json:"epoch"`            // 0: never claimed, unless it is Copied
	Copied   bool      `json:"copied,omitempty"` // created as a copy of another object, whose claims it lacks
	Lineage  uint64    `json:"lineage"`          // rises only when an administrator accepted data loss
	ChangeID string    `json:"changeID,omitempty"`
	Primary  Member    `json:"primary,omitzero"`
	InSync   []Member  `json:"inSync,omitempty"` // contains Primary; at most MaxMembers
	Observed time.Time `json:"observed,omitzero"`
	Standby  bool      `json:"standby,omitempty"` // its entries come from another site
	Term     uint64    `json:"term,omitempty"`    // of the site: the highest of which the partition was active, or knows
	Spec     Spec      `json:"spec"`
}

// News is an event of Watch.
type News struct {
	// All: Records are all of the grid's. A record not among them was deleted.
	All     bool
	Records []Record // as they are now
	Gone    []string // names of records that were deleted
}

// Arbiter holds the records of a grid.
type Arbiter interface {
	// Get reads the current record, never from a cache. ErrNotFound if there is none; any
	// other error leaves the record unknown.
	Get(ctx context.Context, name string) (Record, error)
	// CompareAndSwap replaces the record r.Name if its version is r.Version and the change
	// obeys CheckTransition; r.Spec is ignored. It returns the current record. ErrConflict
	// and ErrRefused mean: not done. ErrUnknown means: it may have been done, or may still
	// be; only a later Get can tell.
	CompareAndSwap(ctx context.Context, r Record) (Record, error)
	// Watch follows all records of a grid until ctx ends; it returns ctx's error. f gets
	// all of them first, and again whenever changes may have been missed and from time to
	// time without that (News.All); in between it gets what changed. A change overtaken by
	// the next may be left out. Failures are retried with back-off and reported to f as
	// err, with no news. f is called by one goroutine at a time.
	Watch(ctx context.Context, grid string, f func(n News, err error)) error
}

// Errors of an Arbiter; test with errors.Is.
var (
	ErrNotFound = errors.New("no such partition")
	ErrConflict = errors.New("the record was changed by someone else")
	ErrRefused  = errors.New("the change is not allowed")
	ErrUnknown  = errors.New("the outcome is unknown: the change may have happened, or may still happen")
)

// Refused is an ErrRefused with the reason.
func Refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Recorder records what happened to a partition for users: a Kubernetes Event, where there
// is Kubernetes. Event never blocks; excess events are counted and dropped.
type Recorder interface {
	Event(partition, reason, message string, warning bool)
}
