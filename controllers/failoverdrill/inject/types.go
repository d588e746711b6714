package inject

import (
	"maps"
	"slices"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

// Type is what is known of a type of fault. Its witness is its row in the table of package witness.
type Type struct {
	// chaos is the kind of Chaos Mesh, with the action that decides what a node needs for it, and parts makes the objects.
	// No kind: Chaos Mesh has no such fault, and only an executor may have it.
	chaos nodefeatures.Fault
	parts func(*Fault, *surroundings) ([]object, error)
	// grid makes it with the means of the grid; nil: the grid has none.
	grid func(*Grid) action
	// packets: it disturbs those between the target and its peer.
	packets bool

	// AtOnce: it is over when it is injected; only its objects have to be removed.
	AtOnce bool
	// ReplacesPods: it replaces pods, not only processes.
	ReplacesPods bool
	// ExecutorSees: an executor's own counters are a witness: it counts packets on the link itself, or has switched off what
	// cannot be queried. Chaos Mesh's status never is one.
	ExecutorSees bool
	// Visible is how long it may take to become visible; 0: defaultVisible.
	visible time.Duration
}

const defaultVisible = 30 * time.Second

// Visible is how long a fault of the type may take to become visible.
func (t Type) Visible() time.Duration {
	if t.visible > 0 {
		return t.visible
	}
	return defaultVisible
}

// faultTypes are all. docs/drills.md has who makes which.
var faultTypes map[api.DrillFaultType]Type

// TypeOf is the row of a type.
func TypeOf(t api.DrillFaultType) Type { return faultTypes[t] }

// Types are all, sorted.
func Types() []api.DrillFaultType { return slices.Sorted(maps.Keys(faultTypes)) }

func init() { // not a value of faultTypes: what makes the parts reads the table
	chaos := func(kind, action string) nodefeatures.Fault { return nodefeatures.Fault{Kind: kind, Action: action} }
	faultTypes = map[api.DrillFaultType]Type{
		api.FaultPodKill:            {chaos: chaos(kindPod, "pod-kill"), parts: podParts, AtOnce: true, ReplacesPods: true},
		api.FaultPodFailure:         {chaos: chaos(kindPod, "pod-failure"), parts: podParts, visible: time.Minute}, // the previous container may use up its grace period
		api.FaultContainerKill:      {chaos: chaos(kindPod, "container-kill"), parts: podParts, AtOnce: true},
		api.FaultNetworkPartition:   {chaos: chaos(kindNetwork, "partition"), parts: networkParts, packets: true},
		api.FaultNetworkDelay:       {chaos: chaos(kindNetwork, "delay"), parts: networkParts, packets: true, ExecutorSees: true},
		api.FaultNetworkLoss:        {chaos: chaos(kindNetwork, "loss"), parts: networkParts, packets: true, ExecutorSees: true},
		api.FaultNetworkDuplicate:   {chaos: chaos(kindNetwork, "duplicate"), parts: networkParts, packets: true, ExecutorSees: true},
		api.FaultNetworkCorrupt:     {chaos: chaos(kindNetwork, "corrupt"), parts: networkParts, packets: true, ExecutorSees: true},
		api.FaultNetworkBandwidth:   {chaos: chaos(kindNetwork, "bandwidth"), parts: networkParts, packets: true},
		api.FaultAPIServerPartition: {chaos: nodefeatures.Fault{Kind: kindNetwork, Action: "partition", Peers: true}, parts: apiServerParts},
		api.FaultClockSkew:          {chaos: chaos(kindTime, ""), parts: clockParts},
		api.FaultCPUStress:          {chaos: chaos(kindStress, ""), parts: stressParts},
		api.FaultMemoryStress:       {chaos: chaos(kindStress, ""), parts: stressParts},
		api.FaultIODelay:            {chaos: chaos(kindIO, "latency"), parts: ioParts},
		api.FaultIOError:            {chaos: chaos(kindIO, "fault"), parts: ioParts},
		api.FaultAPIServerOutage:    {ExecutorSees: true},
		api.FaultNodePowerOff:       {ExecutorSees: true, ReplacesPods: true, visible: 3 * time.Minute}, // until the control plane reports it
		api.FaultNodeLinkDown:       {ExecutorSees: true, ReplacesPods: true, visible: 3 * time.Minute},
		api.FaultPodDelete:          {grid: func(g *Grid) action { return action{g.deletePods, g.deleteState, g.deleted} }, AtOnce: true, ReplacesPods: true},
		api.FaultHandOver:           {grid: func(g *Grid) action { return action{g.handOver, g.handOverState, g.handBack} }, visible: time.Minute},
		api.FaultRollingUpdate:      {grid: func(g *Grid) action { return action{g.roll, g.rollState, g.rolled} }, ReplacesPods: true, visible: 20 * time.Minute}, // all pods in turn
	}
}
