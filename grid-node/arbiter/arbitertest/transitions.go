// Package arbitertest holds the cases that every arbiter has to decide in the
// same way: the Go rules of the in-memory one and the CEL rules of the CRD.
package arbitertest

import "github.com/ordergrid/ordergrid/grid-node/arbiter"

// Transition is one attempt to change a record.
type Transition struct {
	Name     string
	Old, New arbiter.Record
	Refused  string // part of the message; empty: allowed
}

// Three members of a shard, and a second incarnation of the first.
var (
	A  = member("g-s0-0", "00000000000000aa", "10.0.0.1:7400")
	A2 = member("g-s0-0", "00000000000000a2", "10.0.0.9:7400")
	B  = member("g-s0-1", "00000000000000bb", "10.0.0.2:7400")
	C  = member("g-s0-2", "00000000000000cc", "10.0.0.3:7400")
)

func member(pod, boot, address string) arbiter.Member {
	return arbiter.Member{ID: pod + "/" + boot, PodName: pod, BootID: boot, Address: address}
}

// Rec is a record at an epoch.
func Rec(epoch, lineage uint64, change string, primary arbiter.Member, inSync ...arbiter.Member) arbiter.Record {
	return arbiter.Record{Epoch: epoch, Lineage: lineage, ChangeID: change, Primary: primary, InSync: inSync}
}

// Transitions are the cases. Old records are reachable from epoch 0.
func Transitions() []Transition {
	none := arbiter.Record{}
	solo, pair := Rec(1, 1, "c1", A, A), Rec(2, 1, "c2", A, A, B)
	moved := A
	moved.Address = "10.0.0.7:7400"
	accepted := pair
	accepted.Spec.AcceptDataLossEpoch = 2
	late := Rec(3, 1, "c3", A, A, B)
	late.Spec.AcceptDataLossEpoch = 2
	reasserted := pair
	reasserted.Spec.ReassertChangeID = "c7"
	twice := Rec(3, 2, "c3", C, C)
	misnamed := B
	misnamed.ID = "other/" + B.BootID
	return append([]Transition{
		{"first claim", none, solo, ""},
		{"nothing changes", pair, pair, ""},
		{"a backup joins", solo, pair, ""},
		{"a backup takes over", pair, Rec(3, 1, "c3", B, B), ""},
		{"the primary drops a backup", pair, Rec(3, 1, "c3", A, A), ""},
		{"hand-over", pair, Rec(3, 1, "c3", B, B, A), ""},
		{"loss accepted", accepted, Rec(3, 2, "c3", C, C), ""},
		{"loss accepted, and a member takes over after all", accepted, Rec(3, 1, "c3", B, B), ""},
		{"loss not accepted", pair, Rec(3, 2, "c3", C, C), "lineage 2 would give up what lineage 1 holds without an accepted loss: spec.acceptDataLossEpoch is 0, not the epoch 2"},
		{"loss accepted at an earlier epoch", late, Rec(4, 2, "c4", C, C), "spec.acceptDataLossEpoch is 2, not the epoch 3"},
		{"a second loss after an accepted one", twice, Rec(4, 3, "c4", A, A), "without an accepted loss"},
		{"a configuration reasserted", reasserted, Rec(3, 2, "c8", C, C), ""},
		{"a stranger without a new lineage though a loss was accepted", accepted, Rec(3, 1, "c3", C, C), "was not in inSync"},
		{"epoch skips", pair, Rec(4, 1, "c4", A, A), "epoch 4 does not follow 2"},
		{"epoch falls", pair, solo, "epoch 1 does not follow 2"},
		{"first claim at epoch 2", none, Rec(2, 1, "c1", A, A), "epoch 2 at the first claim"},
		{"epoch is taken", pair, Rec(2, 1, "other", B, B), "epoch 2 is already taken by change c2"},
		{"in-sync changes without the epoch", pair, Rec(2, 1, "c2", A, A), "already taken"},
		{"lineage falls", twice, Rec(4, 1, "c4", C, C), "lineage 1 does not follow 2"},
		{"lineage skips", accepted, Rec(3, 3, "c3", A, A), "lineage 3 does not follow 1"},
		{"a stranger takes over", pair, Rec(3, 1, "c3", C, C), "primary " + C.ID + " was not in inSync [\"" + A.ID + "\", \"" + B.ID + "\"] of epoch 2"},
		{"a new process under the old pod name", solo, Rec(2, 1, "c2", A2, A2), "was not in inSync"},
		{"a learner that was never admitted", solo, Rec(2, 1, "c2", B, B, A), "was not in inSync"},
		{"primary outside inSync", pair, Rec(3, 1, "c3", A, B), "does not contain the primary"},
		{"primary under another address", pair, Rec(3, 1, "c3", moved, A), "does not contain the primary"},
		{"no primary", pair, Rec(3, 1, "c3", arbiter.Member{}), "primary is missing at epoch 3"},
		{"no change id", pair, Rec(3, 1, "", A, A), "changeID is missing at epoch 3"},
		{"no lineage", none, Rec(1, 0, "c1", A, A), "lineage 0 at epoch 1"},
		{"first claim for two", none, Rec(1, 1, "c1", A, A, B), "inSync has 2 members at the first claim"},
		{"member id does not fit", pair, Rec(3, 1, "c3", A, A, misnamed), "is not podName/bootID"},
	}, Sites()...)
}
