// Package executor speaks with what can do faults Kubernetes has no means for:
// a machine's power, its network link, the control plane, a kernel without
// netem. Such an executor is an HTTP service outside the cluster; the protocol
// has five requests and is described in docs/drills.md. This package has its
// JSON types, the checks both sides make and the client; package conformance
// beside it tests any server.
package executor

// The paths of the protocol. Every request carries "Authorization: Bearer
// TOKEN" and is answered in JSON.
const (
	PathCapabilities = "/v1/capabilities" // GET: Capabilities
	PathFaults       = "/v1/faults"       // GET: FaultList
	// PathFault and an id: PUT a Fault, GET or DELETE; each answers a Status.
	PathFault = PathFaults + "/"
)

// The kinds of fault the protocol knows. An executor offers some of them.
const (
	// NodePowerOff cuts the power of nodes: no process of theirs ends in order.
	// Taking it back switches them on.
	NodePowerOff = "NodePowerOff"
	// NodeLinkDown takes the network from nodes; all on them goes on running.
	NodeLinkDown = "NodeLinkDown"
	// APIServerOutage switches the control plane off. The operator loses its
	// lease meanwhile and cannot ask for the end: its deadline is the end.
	APIServerOutage = "APIServerOutage"
	// NetworkDelay holds packets of pods back by Latency, give or take Jitter.
	NetworkDelay = "NetworkDelay"
	// NetworkLoss drops Loss percent of the packets of pods.
	NetworkLoss = "NetworkLoss"
	// NetworkDuplicate sends Duplicate percent of the packets of pods twice.
	NetworkDuplicate = "NetworkDuplicate"
	// NetworkCorrupt damages Corrupt percent of the packets of pods; the
	// receiver's checksum finds that.
	NetworkCorrupt = "NetworkCorrupt"
)

// Types lists the kinds of fault, those of nodes first.
func Types() []string {
	return []string{NodePowerOff, NodeLinkDown, APIServerOutage, NetworkDelay, NetworkLoss, NetworkDuplicate, NetworkCorrupt}
}
