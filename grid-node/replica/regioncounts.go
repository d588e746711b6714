package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
)

// RegionOperation is what a client asks of a region.
type RegionOperation uint8

// Operations.
const (
	RegionPut RegionOperation = iota
	RegionPatch
	RegionRemove
	RegionTake
	RegionClear
	RegionInvoke
	RegionPutAll
	RegionPatchAll
	RegionRemoveAll
	RegionGet
	RegionScan
	RegionOperations // how many there are
)

var regionOperations = [RegionOperations]string{RegionPut: "put", RegionPatch: "patch", RegionRemove: "remove", RegionTake: "take",
	RegionClear: "clear", RegionInvoke: "invoke",
	RegionPutAll: "put_all", RegionPatchAll: "patch_all", RegionRemoveAll: "remove_all", RegionGet: "get", RegionScan: "scan"}

// String returns the word of metrics.
func (o RegionOperation) String() string { return regionOperations[o] }

// RegionOutcome is what became of an operation.
type RegionOutcome uint8

// Outcomes.
const (
	RegionDone      RegionOutcome = iota // applied here, or read
	RegionCondition                      // what it requires of the present value does not hold
	RegionFull                           // there is no memory for it
	RegionInvalid                        // a patch that does not fit the value
	RegionOutcomes                       // how many there are
)

var regionOutcomes = [RegionOutcomes]string{RegionDone: "done", RegionCondition: "condition_failed", RegionFull: "full", RegionInvalid: "invalid"}

// String returns the word of metrics.
func (o RegionOutcome) String() string { return regionOutcomes[o] }

// RegionCounts are the operations of a region that this replica has decided on, as a primary, or has read. A retry of a
// change that is applied is none.
type RegionCounts struct {
	Ops    [RegionOperations][RegionOutcomes]uint64
	wanted region.Need // of the change that was refused last for want of memory
}

// outcomeOf is by what the state says of a change.
var outcomeOf = [...]RegionOutcome{region.Failed: RegionCondition, region.Full: RegionFull, region.Invalid: RegionInvalid}

// countRegion counts an operation.
func (r *Replica) countRegion(at uint16, o RegionOperation, outcome RegionOutcome) {
	for int(at) >= len(r.regions.counts) {
		r.regions.counts = append(r.regions.counts, RegionCounts{})
	}
	r.regions.counts[at].Ops[o][outcome]++
}

// countRefused counts a change that is not admitted, and keeps what it needs if that is not there.
func (r *Replica) countRefused(op RegionOperation, o *order.RegionOp, v region.Verdict) {
	if v == region.Full {
		r.countVerdict(op, o.Region, v, r.live.Regions.Needs(r.now.Wall, o))
		return
	}
	r.countVerdict(op, o.Region, v, region.Need{})
}

// countVerdict is countRefused of a change that needs so much.
func (r *Replica) countVerdict(op RegionOperation, at uint16, v region.Verdict, need region.Need) {
	if v == region.Admitted {
		return
	}
	r.countRegion(at, op, outcomeOf[v])
	if v == region.Full {
		r.regions.counts[at].wanted = need
	}
}

// RegionUse is what a replica knows of a region.
type RegionUse struct {
	region.Region              // its bounds and what it has
	Counts        RegionCounts // of this replica
	// Full: this is the primary, and the change that it refused last for want of memory is refused still.
	Full bool
}

// EachRegion calls f for the regions of everything that is stored here. What it passes is valid during the call.
func (r *Replica) EachRegion(f func(u *RegionUse)) {
	s := r.live.Regions
	if s == nil {
		return
	}
	for at, reg := range s.Regions() {
		u := RegionUse{Region: *reg}
		if at < len(r.regions.counts) {
			u.Counts = r.regions.counts[at]
			u.Full = r.role == RolePrimary && s.Lacks(uint16(at), u.Counts.wanted)
		}
		f(&u)
	}
}
