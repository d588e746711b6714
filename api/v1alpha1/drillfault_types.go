package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DrillFault is one injected fault and what is expected of the grid meanwhile.
//
// +kubebuilder:validation:XValidation:fieldPath=".duration",rule="!(self.type in ['PodKill', 'ContainerKill', 'PodDelete', 'HandOver', 'RollingUpdate']) || !has(self.duration)",messageExpression="'%s cannot be set for type %s, which is over in a moment; remove duration'.format([self.duration, self.type])"
// +kubebuilder:validation:XValidation:rule="self.type in ['PodKill', 'ContainerKill', 'PodDelete', 'HandOver', 'RollingUpdate'] || has(self.duration)",messageExpression="'type %s needs duration, how long it lasts before it is recovered, such as duration: 10s'.format([self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".target",rule="!(self.type in ['RollingUpdate', 'APIServerOutage']) || !has(self.target)",messageExpression="'target cannot be set for type %s, which concerns the whole grid; remove target'.format([self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".target",rule="self.type != 'HandOver' || !has(self.target) || !has(self.target.role) || self.target.role == 'Primary'",messageExpression="'role %s cannot hand over, only a primary can; set role: Primary'.format([self.target.role])"
// +kubebuilder:validation:XValidation:fieldPath=".target",rule="self.type.startsWith('Network') || !has(self.target) || !has(self.target.peer)",messageExpression="'peer is for types Network…, and type is %s; remove target.peer'.format([self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".network",rule="self.type.startsWith('Network') || !has(self.network)",messageExpression="'network is for types Network…, and type is %s; remove network'.format([self.type])"
// +kubebuilder:validation:XValidation:rule="self.type != 'NetworkDelay' || (has(self.network) && has(self.network.latency))",message="type NetworkDelay needs network.latency, such as network: {latency: 10ms}"
// +kubebuilder:validation:XValidation:rule="self.type != 'NetworkLoss' || (has(self.network) && has(self.network.loss))",message="type NetworkLoss needs network.loss, such as network: {loss: 25%}"
// +kubebuilder:validation:XValidation:rule="self.type != 'NetworkDuplicate' || (has(self.network) && has(self.network.duplicate))",message="type NetworkDuplicate needs network.duplicate, such as network: {duplicate: 50%}"
// +kubebuilder:validation:XValidation:rule="self.type != 'NetworkCorrupt' || (has(self.network) && has(self.network.corrupt))",message="type NetworkCorrupt needs network.corrupt, such as network: {corrupt: 1%}"
// +kubebuilder:validation:XValidation:rule="self.type != 'NetworkBandwidth' || (has(self.network) && has(self.network.rate))",message="type NetworkBandwidth needs network.rate in bits a second, such as network: {rate: 10M}"
// +kubebuilder:validation:XValidation:fieldPath=".network",rule="!has(self.network) || !self.type.startsWith('Network') || ((self.type == 'NetworkDelay' || !(has(self.network.latency) || has(self.network.jitter))) && (self.type == 'NetworkLoss' || !has(self.network.loss)) && (self.type == 'NetworkDuplicate' || !has(self.network.duplicate)) && (self.type == 'NetworkCorrupt' || !has(self.network.corrupt)) && (self.type == 'NetworkBandwidth' || !has(self.network.rate)) && (!(self.type in ['NetworkPartition', 'NetworkBandwidth']) || !has(self.network.correlation)))",messageExpression="'a field of network does not go with type %s: latency and jitter are for NetworkDelay, loss for NetworkLoss, duplicate for NetworkDuplicate, corrupt for NetworkCorrupt, rate for NetworkBandwidth, correlation for all of them but NetworkBandwidth, direction for every type; remove it, or make a second fault'.format([self.type])"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ClockSkew') == has(self.clock)",messageExpression="self.type == 'ClockSkew' ? 'type ClockSkew needs clock with the offset, such as clock: {offset: -10s}' : 'clock is for type ClockSkew, and type is ' + self.type + '; remove clock'"
// +kubebuilder:validation:XValidation:rule="self.type != 'CPUStress' || (has(self.stress) && has(self.stress.cpuWorkers))",message="type CPUStress needs stress.cpuWorkers, such as stress: {cpuWorkers: 2}"
// +kubebuilder:validation:XValidation:rule="self.type != 'MemoryStress' || (has(self.stress) && has(self.stress.memory))",message="type MemoryStress needs stress.memory, such as stress: {memory: 256Mi}"
// +kubebuilder:validation:XValidation:fieldPath=".stress",rule="!has(self.stress) || ((self.type == 'CPUStress' || !(has(self.stress.cpuWorkers) || has(self.stress.cpuLoad))) && (self.type == 'MemoryStress' || !has(self.stress.memory)))",messageExpression="'a field of stress does not go with type %s: cpuWorkers and cpuLoad are for CPUStress, memory is for MemoryStress; remove it'.format([self.type])"
// +kubebuilder:validation:XValidation:rule="self.type != 'IODelay' || (has(self.io) && has(self.io.delay))",message="type IODelay needs io.delay, such as io: {delay: 100ms}"
// +kubebuilder:validation:XValidation:rule="self.type != 'IOError' || (has(self.io) && has(self.io.errno))",message="type IOError needs io.errno, such as io: {errno: 28} for a full disk"
// +kubebuilder:validation:XValidation:fieldPath=".io",rule="!has(self.io) || ((self.type == 'IODelay' || !has(self.io.delay)) && (self.type == 'IOError' || !has(self.io.errno)) && self.type in ['IODelay', 'IOError'])",messageExpression="'a field of io does not go with type %s: delay is for IODelay, errno for IOError; remove it'.format([self.type])"
type DrillFault struct {
	// name of the fault in steps, reports and events. Lowercase letters, digits and hyphens; at most 40.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is not a name; use lowercase letters, digits and hyphens, such as kill-primary'.format([self])"
	Name string `json:"name"`

	// type of the fault.
	// +required
	Type DrillFaultType `json:"type"`

	// target of the fault. Default: the primary of a partition drawn from the seed.
	// +optional
	Target *DrillTarget `json:"target,omitempty"`

	// duration is how long the fault stays before it is recovered. 100ms to 24h; not for momentary faults:
	// PodKill, ContainerKill, PodDelete, HandOver, RollingUpdate.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 100ms to 24h; write it as 20ms or 1.5s'.format([self])"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// start is when the fault is injected. Redundant: once every copy is in sync, after steadyState.calm. Served: as soon as
	// orders are acknowledged after the fault before it, copies missing or not. Held: while the fault before it is still
	// in place, which is recovered only after this one. What starts Served or Held concerns the partition of the fault
	// before it, unless target names another. Default Redundant.
	// +optional
	// +default="Redundant"
	// +kubebuilder:default=Redundant
	Start DrillStart `json:"start,omitempty"`

	// after is an additional wait before the injection. 0s to 1h; default 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 0s to 1h; write it as 20ms or 1.5s'.format([self])"
	After *metav1.Duration `json:"after,omitempty"`

	// network describes faults of type Network….
	// +optional
	Network *NetworkFault `json:"network,omitempty"`

	// clock describes type ClockSkew.
	// +optional
	Clock *ClockFault `json:"clock,omitempty"`

	// stress describes types CPUStress and MemoryStress.
	// +optional
	Stress *StressFault `json:"stress,omitempty"`

	// io describes types IODelay and IOError, which are about the files of the sink.
	// +optional
	IO *IOFault `json:"io,omitempty"`

	// expect replaces parts of steadyState for this fault, and sets further expectations.
	// +optional
	Expect *DrillExpectation `json:"expect,omitempty"`
}

// DrillFaultType names a fault. docs/spec/failoverdrill.md describes how each is injected and witnessed.
//
// +kubebuilder:validation:Enum=PodKill;PodFailure;ContainerKill;PodDelete;NetworkPartition;NetworkDelay;NetworkLoss;NetworkDuplicate;NetworkCorrupt;NetworkBandwidth;ClockSkew;CPUStress;MemoryStress;IODelay;IOError;APIServerPartition;APIServerOutage;NodePowerOff;NodeLinkDown;HandOver;RollingUpdate
type DrillFaultType string

const (
	// FaultPodKill deletes a pod without grace: the kubelet sends SIGTERM, and SIGKILL two seconds later.
	FaultPodKill DrillFaultType = "PodKill"
	// FaultPodFailure keeps a pod from running for a while.
	FaultPodFailure DrillFaultType = "PodFailure"
	// FaultContainerKill sends SIGKILL to the process of a container: the plug is pulled. The pod stays, with its address.
	FaultContainerKill DrillFaultType = "ContainerKill"
	// FaultPodDelete deletes a pod the ordinary way: SIGTERM, and it hands over.
	FaultPodDelete DrillFaultType = "PodDelete"
	// FaultNetworkPartition drops every packet between the target and its peer.
	FaultNetworkPartition DrillFaultType = "NetworkPartition"
	// FaultNetworkDelay delays packets.
	FaultNetworkDelay DrillFaultType = "NetworkDelay"
	// FaultNetworkLoss drops a part of the packets.
	FaultNetworkLoss DrillFaultType = "NetworkLoss"
	// FaultNetworkDuplicate sends a part of the packets twice.
	FaultNetworkDuplicate DrillFaultType = "NetworkDuplicate"
	// FaultNetworkCorrupt flips a bit in a part of the packets.
	FaultNetworkCorrupt DrillFaultType = "NetworkCorrupt"
	// FaultNetworkBandwidth narrows the link.
	FaultNetworkBandwidth DrillFaultType = "NetworkBandwidth"
	// FaultClockSkew shifts the clock a process sees.
	FaultClockSkew DrillFaultType = "ClockSkew"
	// FaultCPUStress keeps the CPU of a pod busy.
	FaultCPUStress DrillFaultType = "CPUStress"
	// FaultMemoryStress takes memory of a pod.
	FaultMemoryStress DrillFaultType = "MemoryStress"
	// FaultIODelay makes calls to the files of the sink slow.
	FaultIODelay DrillFaultType = "IODelay"
	// FaultIOError makes them fail.
	FaultIOError DrillFaultType = "IOError"
	// FaultAPIServerPartition keeps grid nodes from the API server.
	FaultAPIServerPartition DrillFaultType = "APIServerPartition"
	// FaultAPIServerOutage stops the API server.
	FaultAPIServerOutage DrillFaultType = "APIServerOutage"
	// FaultNodePowerOff stops a machine: kubelet, runtime and pods at once.
	FaultNodePowerOff DrillFaultType = "NodePowerOff"
	// FaultNodeLinkDown disconnects a machine from the network.
	FaultNodeLinkDown DrillFaultType = "NodeLinkDown"
	// FaultHandOver makes another pod of the shard the preferred primary.
	FaultHandOver DrillFaultType = "HandOver"
	// FaultRollingUpdate replaces every pod, one at a time, as a change of spec does.
	FaultRollingUpdate DrillFaultType = "RollingUpdate"
)

// Momentary reports whether a fault of this type is over as soon as it is injected, so that it has no duration.
func (t DrillFaultType) Momentary() bool {
	switch t {
	case FaultPodKill, FaultContainerKill, FaultPodDelete, FaultHandOver, FaultRollingUpdate:
		return true
	}
	return false
}

// GridWide reports whether a fault of this type has no target, because it concerns the whole grid.
func (t DrillFaultType) GridWide() bool { return t == FaultRollingUpdate || t == FaultAPIServerOutage }

// OfMachine reports whether a fault of this type hits a machine, with every pod on it, whatever its target.
func (t DrillFaultType) OfMachine() bool { return t == FaultNodePowerOff || t == FaultNodeLinkDown }

// DrillFaultsBeyondGrid are the types of faults that affect more than the target grid: every pod of a machine, or
// every namespace of the cluster. All others hit pods of the grid and nothing else.
func DrillFaultsBeyondGrid() []DrillFaultType {
	return []DrillFaultType{FaultAPIServerOutage, FaultNodeLinkDown, FaultNodePowerOff}
}

// DrillTarget selects a target by role, which is resolved when the fault is injected.
type DrillTarget struct {
	// role is Primary, Backup (one in-sync copy that is not the primary), Backups (all of them), Shard (every pod of the
	// shard) or Node (every pod of the grid on the machine of the primary). Default Primary.
	// +optional
	// +default="Primary"
	// +kubebuilder:default=Primary
	Role DrillRole `json:"role,omitempty"`

	// shard is the number of the shard, one of whose partitions is the target: drawn from the seed among those that are on
	// it when the step comes. Ignored where partition is given.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 255",messageExpression="'%s is out of range; allowed are 0 to 255'.format([self])"
	Shard *int32 `json:"shard,omitempty"`

	// partition is the number of the partition whose primary and backups are meant, on whichever shard it is. Default: drawn
	// from the seed for each step.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1023",messageExpression="'%s is out of range; allowed are 0 to 1023'.format([self])"
	Partition *int32 `json:"partition,omitempty"`

	// peer is the other end of a network fault: Copies (the other pods of the shard), Primary (that of the partition),
	// Clients (the recorder) or Everything. Default Copies.
	// +optional
	Peer DrillPeer `json:"peer,omitempty"`
}

// DrillRole is the role of a fault's target.
//
// +kubebuilder:validation:Enum=Primary;Backup;Backups;Shard;Node
type DrillRole string

const (
	// RolePrimary is the primary of the partition.
	RolePrimary DrillRole = "Primary"
	// RoleBackup is one in-sync member of the partition that is not its primary.
	RoleBackup DrillRole = "Backup"
	// RoleBackups is all of them.
	RoleBackups DrillRole = "Backups"
	// RoleShard is every pod of the shard.
	RoleShard DrillRole = "Shard"
	// RoleNode is the Kubernetes node of the primary, with every pod of the grid on it.
	RoleNode DrillRole = "Node"
)

// DrillPeer is the other end of a network fault.
//
// +kubebuilder:validation:Enum=Copies;Primary;Clients;Everything
type DrillPeer string

const (
	// PeerCopies is the pods of the shard that are not the target.
	PeerCopies DrillPeer = "Copies"
	// PeerPrimary is the primary of the partition.
	PeerPrimary DrillPeer = "Primary"
	// PeerClients is the recorder, from which the orders come.
	PeerClients DrillPeer = "Clients"
	// PeerEverything is every address.
	PeerEverything DrillPeer = "Everything"
)

// DrillStart selects when a fault is injected.
//
// +kubebuilder:validation:Enum=Redundant;Served;Held
type DrillStart string

const (
	// StartRedundant waits until every copy is in sync.
	StartRedundant DrillStart = "Redundant"
	// StartServed waits until orders are acknowledged after the fault before it.
	StartServed DrillStart = "Served"
	// StartHeld injects while the fault before it is in place.
	StartHeld DrillStart = "Held"
)

// DrillExpectation is what is expected of one fault.
type DrillExpectation struct {
	// outage replaces steadyState.outage. 1ms to 1h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 1ms to 1h; write it as 20ms or 1.5s'.format([self])"
	Outage *metav1.Duration `json:"outage,omitempty"`

	// p99 is the highest 99th percentile of latency while the fault lasts. 1us to 1h. Default: not judged.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1us') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 1us to 1h; write it as 20ms or 1.5s'.format([self])"
	P99 *metav1.Duration `json:"p99,omitempty"`

	// failedOrders replaces steadyState.failedOrders.
	// +optional
	FailedOrders FailedOrders `json:"failedOrders,omitempty"`

	// grid is what the grid has to show while the fault lasts. NotRedundant: the condition Redundant of the OrderGrid is
	// False, the warning that comes before a loss. RefusesOrders: the partition acknowledges nothing, because too
	// few copies are in sync. Default: nothing.
	// +optional
	Grid GridExpectation `json:"grid,omitempty"`

	// injection is Done, or Refused: safety must refuse the fault, because it would take a last copy. Default Done.
	// +optional
	Injection InjectionExpectation `json:"injection,omitempty"`
}

// GridExpectation is what a grid has to show while a fault lasts.
//
// +kubebuilder:validation:Enum=NotRedundant;RefusesOrders
type GridExpectation string

const (
	// GridNotRedundant wants the condition Redundant to be False.
	GridNotRedundant GridExpectation = "NotRedundant"
	// GridRefusesOrders wants nothing acknowledged from the partition concerned.
	GridRefusesOrders GridExpectation = "RefusesOrders"
)

// InjectionExpectation selects whether a fault has to be injected or refused.
//
// +kubebuilder:validation:Enum=Done;Refused
type InjectionExpectation string

const (
	// InjectionDone wants the fault injected.
	InjectionDone InjectionExpectation = "Done"
	// InjectionRefused wants the fault refused by safety.
	InjectionRefused InjectionExpectation = "Refused"
)
