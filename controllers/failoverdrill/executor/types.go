package executor

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Capabilities is what an executor can do.
type Capabilities struct {
	// Name of the executor, for messages.
	Name  string  `json:"name"`
	Types []Offer `json:"types"`
}

// Offer is one kind of fault an executor can do.
type Offer struct {
	Type string `json:"type"`
	// Nodes that it, or whose pods it, can be done to. Empty means every node.
	Nodes []string `json:"nodes,omitempty"`
	// MaxDeadlineSeconds is the longest deadline accepted; 0 means
	// MaxDeadlineSeconds of the protocol.
	MaxDeadlineSeconds int `json:"maxDeadlineSeconds,omitempty"`
	// Note describes how it is done and what it costs, for users.
	Note string `json:"note,omitempty"`
}

// Fault is the body of PUT.
type Fault struct {
	Type string `json:"type"`
	// Nodes concerned: those to be harmed, or those the pods run on.
	Nodes []string `json:"nodes,omitempty"`
	// Namespace is that of Pods and Peers.
	Namespace string `json:"namespace,omitempty"`
	// Pods are the pods whose network a network fault harms.
	Pods []Pod `json:"pods,omitempty"`
	// Peers narrow a network fault to packets to and from these. Empty means
	// every packet of the pod, probes of the kubelet included.
	Peers      []Pod      `json:"peers,omitempty"`
	Parameters Parameters `json:"parameters"`
	// DeadlineSeconds is when the executor recovers the fault by itself, counted from the request.
	DeadlineSeconds int `json:"deadlineSeconds"`
}

// Pod is a pod as known to Kubernetes when the fault was resolved.
type Pod struct {
	Name string `json:"name"`
	// IP is the address that packets are matched by: that on Parameters.Interface where the pod has several.
	IP   string `json:"ip"`
	Node string `json:"node,omitempty"`
	// UID tells a pod from its successor of the same name. Pods need one, peers
	// do not.
	UID string `json:"uid,omitempty"`
}

// The directions of a network fault, seen from Pods.
const (
	DirectionTo   = "To"   // packets the pods send
	DirectionFrom = "From" // packets the pods receive
	DirectionBoth = "Both"
)

// Parameters are how strong a network fault is. Faults of nodes have none.
type Parameters struct {
	// Latency is added to every packet, once per direction: with
	// DirectionBoth a round trip takes twice as much longer.
	Latency *metav1.Duration `json:"latency,omitempty"`
	// Jitter varies Latency evenly by up to this much to either side. Packets
	// do not overtake each other.
	Jitter *metav1.Duration `json:"jitter,omitempty"`
	// Loss, Duplicate and Corrupt are per cent of the packets, above 0 to 100.
	Loss      float64 `json:"loss,omitempty"`
	Duplicate float64 `json:"duplicate,omitempty"`
	Corrupt   float64 `json:"corrupt,omitempty"`
	// Direction is To, From or Both; empty means To.
	Direction string `json:"direction,omitempty"`
	// Interface is the pods' network interface; empty means all but loopback.
	Interface string `json:"interface,omitempty"`
}

// State of a fault.
type State string

// The states of a fault, in order; Failed is the end of one that could not be injected, of which nothing is left.
const (
	Injecting  State = "Injecting"
	Injected   State = "Injected"
	Recovering State = "Recovering"
	Recovered  State = "Recovered"
	Failed     State = "Failed"
)

// Over reports whether nothing of the fault is left.
func (s State) Over() bool { return s == Recovered || s == Failed }

// Status is an executor's report of a fault.
type Status struct {
	ID    string `json:"id"`
	Type  string `json:"type,omitempty"`
	State State  `json:"state"`
	// Message is what was done, or why not. While Recovering it is what could not be recovered yet, if anything.
	Message string `json:"message,omitempty"`
	// Injected, Recovered and Deadline are times of the executor's clock.
	Injected  *time.Time `json:"injected,omitempty"`
	Recovered *time.Time `json:"recovered,omitempty"`
	Deadline  *time.Time `json:"deadline,omitempty"`
	Witness   Witness    `json:"witness"`
}

// Witness is the evidence that a fault hit. It is kept after the recovery.
type Witness struct {
	Seen    bool   `json:"seen"`
	Message string `json:"message,omitempty"`
	// Counters are packets: matched, held, dropped, duplicated, changed.
	Counters map[string]int64 `json:"counters,omitempty"`
}

// FaultList is all faults an executor remembers: present and past.
type FaultList struct {
	Faults []Status `json:"faults"`
}

// ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail describes an invalid request.
type ErrorDetail struct {
	// Field is the JSON path of the invalid field, such as "pods[0].ip"; empty if there is none.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}
