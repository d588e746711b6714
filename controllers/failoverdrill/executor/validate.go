package executor

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of a request, enforced by both sides.
const (
	MaxBody            = 1 << 20 // bytes of a request or an answer
	MaxID              = 200     // bytes; fits an iptables comment
	MaxNodes           = 64
	MaxPods            = 64
	MaxDeadlineSeconds = 24 * 60 * 60
	MaxLatency         = time.Minute
)

// FieldError is an invalid request.
type FieldError struct {
	Field   string // JSON path
	Message string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

func wrong(field, format string, args ...any) error {
	return &FieldError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// Names end up in paths, rules and command lines: only Kubernetes names are allowed.
var (
	idForm        = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	nameForm      = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	uidForm       = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	interfaceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)
)

// CheckID validates the id of a fault.
func CheckID(id string) error {
	if len(id) > MaxID || !idForm.MatchString(id) {
		return wrong("id", "%.80q is not 1 to %d lower-case letters, digits, '.' and '-', beginning and ending with a letter or digit", id, MaxID)
	}
	return nil
}

// IsNetwork reports whether a kind of fault harms pods' packets rather than nodes.
func IsNetwork(kind string) bool {
	switch kind {
	case NetworkDelay, NetworkLoss, NetworkDuplicate, NetworkCorrupt:
		return true
	}
	return false
}

// Validate returns a *FieldError for the first invalid field. It does not check whether the executor offers the fault.
func (f *Fault) Validate() error {
	if !slices.Contains(Types(), f.Type) {
		return wrong("type", "%.80q is not a kind of fault; use %s", f.Type, strings.Join(Types(), ", "))
	}
	if f.DeadlineSeconds < 1 || f.DeadlineSeconds > MaxDeadlineSeconds {
		return wrong("deadlineSeconds", "%d is not within 1 to %d", f.DeadlineSeconds, MaxDeadlineSeconds)
	}
	if err := f.checkNodes(); err != nil {
		return err
	}
	if f.Namespace != "" && !nameForm.MatchString(f.Namespace) {
		return wrong("namespace", "%.80q is not a namespace", f.Namespace)
	}
	if !IsNetwork(f.Type) {
		return f.checkOfNode()
	}
	if f.Namespace == "" || len(f.Pods) == 0 || len(f.Pods) > MaxPods {
		return wrong("pods", "%d pods in namespace %q; %s needs a namespace and 1 to %d pods", len(f.Pods), f.Namespace, f.Type, MaxPods)
	}
	if len(f.Peers) > MaxPods {
		return wrong("peers", "%d peers, at most %d are allowed", len(f.Peers), MaxPods)
	}
	for i := range f.Pods {
		if err := f.Pods[i].check(fmt.Sprintf("pods[%d]", i), true); err != nil {
			return err
		}
	}
	for i := range f.Peers {
		if err := f.Peers[i].check(fmt.Sprintf("peers[%d]", i), false); err != nil {
			return err
		}
	}
	return f.Parameters.check(f.Type)
}

func (f *Fault) checkNodes() error {
	if len(f.Nodes) > MaxNodes {
		return wrong("nodes", "%d nodes, at most %d are allowed", len(f.Nodes), MaxNodes)
	}
	for i, name := range f.Nodes {
		if !nameForm.MatchString(name) {
			return wrong(fmt.Sprintf("nodes[%d]", i), "%.80q is not a node's name", name)
		}
		if slices.Contains(f.Nodes[:i], name) {
			return wrong(fmt.Sprintf("nodes[%d]", i), "%q is a duplicate", name)
		}
	}
	return nil
}

// checkOfNode refuses fields that a fault of nodes would ignore silently.
func (f *Fault) checkOfNode() error {
	needsNodes := f.Type == NodePowerOff || f.Type == NodeLinkDown
	switch {
	case needsNodes && len(f.Nodes) == 0:
		return wrong("nodes", "%s needs at least one node", f.Type)
	case !needsNodes && len(f.Nodes) != 0:
		return wrong("nodes", "%s concerns the control plane, not %q", f.Type, f.Nodes[0])
	case len(f.Peers) != 0:
		return wrong("peers", "%s has no peers", f.Type)
	case f.Parameters != Parameters{}:
		return wrong("parameters", "%s has none", f.Type)
	}
	return nil
}

// check is for pods to be harmed, which are looked up on their node, and for peers, of which only the address is used.
func (p *Pod) check(field string, harmed bool) error {
	if _, err := netip.ParseAddr(p.IP); err != nil || strings.Contains(p.IP, "%") {
		return wrong(field+".ip", "%.80q is not an IP address", p.IP)
	}
	if !harmed {
		return nil
	}
	switch {
	case !nameForm.MatchString(p.Name):
		return wrong(field+".name", "%.80q is not a pod's name", p.Name)
	case !nameForm.MatchString(p.Node):
		return wrong(field+".node", "%.80q is not a node's name", p.Node)
	case !uidForm.MatchString(p.UID):
		return wrong(field+".uid", "%.80q is not a pod's UID", p.UID)
	}
	return nil
}
