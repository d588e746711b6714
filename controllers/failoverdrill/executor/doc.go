// Package executor is a client of services that inject faults Kubernetes has no means for: a machine's power, its
// network link, the control plane, a kernel without netem. Such an executor is an HTTP service outside the cluster; the
// protocol has five requests and is described in docs/drills.md. This package has its JSON types, the checks of both
// sides and the client; package conformance tests any server.
package executor

// The paths of the protocol. Every request carries "Authorization: Bearer
// TOKEN" and is answered in JSON.
const (
	PathCapabilities = "/v1/capabilities" // GET: Capabilities
	PathFaults       = "/v1/faults"       // GET: FaultList
	// PathFault and an id: PUT a Fault, GET or DELETE; each returns a Status.
	PathFault = PathFaults + "/"
)

// The kinds of fault of the protocol. An executor offers some of them.
const (
	// NodePowerOff cuts the power of nodes: no process on them ends in order. Its recovery switches them on.
	NodePowerOff = "NodePowerOff"
	// NodeLinkDown disconnects nodes from the network; everything on them keeps running.
	NodeLinkDown = "NodeLinkDown"
	// APIServerOutage switches the control plane off. The operator loses its lease meanwhile and cannot request the
	// recovery: the fault ends at its deadline.
	APIServerOutage = "APIServerOutage"
	// NetworkDelay delays packets of pods by Latency, plus or minus Jitter.
	NetworkDelay = "NetworkDelay"
	// NetworkLoss drops Loss percent of the packets of pods.
	NetworkLoss = "NetworkLoss"
	// NetworkDuplicate sends Duplicate percent of the packets of pods twice.
	NetworkDuplicate = "NetworkDuplicate"
	// NetworkCorrupt damages Corrupt percent of the packets of pods; the receiver's checksum detects that.
	NetworkCorrupt = "NetworkCorrupt"
)

// Types lists the kinds of fault, those of nodes first.
func Types() []string {
	return []string{NodePowerOff, NodeLinkDown, APIServerOutage, NetworkDelay, NetworkLoss, NetworkDuplicate, NetworkCorrupt}
}
