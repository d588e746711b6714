// Package nodefeatures detects which faults the kernel supports: an unsupported fault fails
// half-way and leaves its pod wedged, so this has to be known before. Every feature is tried in a
// network namespace or on a child process of its own; the node is not changed.
package nodefeatures

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Name of a feature.
type Name string

// Features required by faults.
const (
	Netem             Name = "netem"             // queueing discipline: delay, loss, duplication, corruption, reordering
	TBF               Name = "tbf"               // queueing discipline: bandwidth
	Prio              Name = "prio"              // queueing disciplines prio and sfq: netem or tbf for some peers only
	IPTables          Name = "iptables"          // the iptables-legacy filter table: every NetworkChaos
	IPSet             Name = "ipset"             // sets of peers and the match on them: partition from some peers
	IPTablesStatistic Name = "iptablesStatistic" // match: random loss without netem
	IPTablesReject    Name = "iptablesReject"    // target: connection resets
	NFQueue           Name = "nfqueue"           // target and queue: delay without netem
	Stress            Name = "stress"            // cpu and memory cgroup controllers: StressChaos
	Time              Name = "time"              // ptrace that can write the vdso: TimeChaos
	Fuse              Name = "fuse"              // file systems in user space: IOChaos
)

// remedies for nodes that lack a feature.
var remedies = map[Name]string{
	Netem:             "load the kernel module sch_netem (CONFIG_NET_SCH_NETEM; on some distributions in the package kernel-modules-extra or linux-modules-extra)",
	TBF:               "load the kernel module sch_tbf (CONFIG_NET_SCH_TBF)",
	Prio:              "load the kernel modules sch_prio and sch_sfq (CONFIG_NET_SCH_PRIO, CONFIG_NET_SCH_SFQ), or leave out the fault's target",
	IPTables:          "load the kernel modules ip_tables and iptable_filter (CONFIG_IP_NF_FILTER)",
	IPSet:             "load the kernel modules ip_set, ip_set_hash_net, ip_set_hash_netport, ip_set_list_set and xt_set",
	IPTablesStatistic: "load the kernel module xt_statistic (CONFIG_NETFILTER_XT_MATCH_STATISTIC)",
	IPTablesReject:    "load the kernel module ipt_REJECT (CONFIG_IP_NF_TARGET_REJECT)",
	NFQueue:           "load the kernel modules xt_NFQUEUE and nfnetlink_queue (CONFIG_NETFILTER_NETLINK_QUEUE)",
	Stress:            "boot with the cpu and memory cgroup controllers enabled",
	Time:              "let the node allow ptrace (sysctl kernel.yama.ptrace_scope below 3) and use amd64 or arm64",
	Fuse:              "load the kernel module fuse (CONFIG_FUSE_FS)",
}

var purposes = map[Name]string{
	Netem:             "NetworkChaos delay, loss, duplicate, corrupt",
	TBF:               "NetworkChaos bandwidth",
	Prio:              "NetworkChaos delay, loss ... and bandwidth towards some peers only",
	IPTables:          "NetworkChaos",
	IPSet:             "NetworkChaos from or to some peers only",
	IPTablesStatistic: "loss without netem",
	IPTablesReject:    "connection resets",
	NFQueue:           "delay without netem",
	Stress:            "StressChaos",
	Time:              "TimeChaos",
	Fuse:              "IOChaos",
}

// Purpose names the faults that need a feature.
func Purpose(name Name) string { return purposes[name] }

// Names lists all features in a fixed order.
func Names() []Name { return slices.Sorted(maps.Keys(remedies)) }

// Feature is the result for one of them.
type Feature struct {
	Supported bool `json:"supported"`
	// Reason is the kernel's error where it is not supported.
	Reason string `json:"reason,omitempty"`
}

// Report is the result for one node.
type Report struct {
	// Node is the name given by the caller, may be empty.
	Node string `json:"node,omitempty"`
	// Kernel is the release, as uname -r prints it, and Arch Go's name of the architecture.
	Kernel   string           `json:"kernel"`
	Arch     string           `json:"arch"`
	Features map[Name]Feature `json:"features"`
}

// Fault is the part of a Chaos Mesh object that determines its needs.
type Fault struct {
	// Kind, for example NetworkChaos.
	Kind string
	// Action of spec.action, for example delay; empty where the kind has none.
	Action string
	// Peers is set where a NetworkChaos affects some peers only: it has a target or external
	// targets.
	Peers bool
}

func (f Fault) String() string { return strings.TrimSpace(f.Kind + " " + f.Action) }

// Needs are the features the nodes of a fault's pods must have. An unknown kind or action needs
// everything, so that it is refused rather than half-run.
func (f Fault) Needs() []Name {
	switch f.Kind {
	case "PodChaos":
		return nil
	case "StressChaos":
		return []Name{Stress}
	case "TimeChaos":
		return []Name{Time}
	case "IOChaos":
		return []Name{Fuse}
	case "NetworkChaos":
		needs := []Name{IPTables}
		switch f.Action {
		case "partition":
		case "bandwidth":
			needs = append(needs, TBF)
		case "delay", "loss", "duplicate", "corrupt", "netem":
			needs = append(needs, Netem)
		default:
			return Names()
		}
		if f.Peers {
			needs = append(needs, IPSet)
			if f.Action != "partition" {
				needs = append(needs, Prio)
			}
		}
		return needs
	}
	return Names()
}

// Lack is a feature a node does not have.
type Lack struct {
	Node, Kernel string
	Feature      Name
	Reason       string
}

// String is a sentence with the remedy.
func (l Lack) String() string {
	return fmt.Sprintf("node %s (kernel %s) lacks %s (%s): %s, or keep the pods on nodes that have it",
		l.Node, l.Kernel, l.Feature, l.Reason, remedies[l.Feature])
}

// Lacks lists what the node lacks for a fault; nothing if the fault can be run.
func (r *Report) Lacks(f Fault) (lacks []Lack) {
	for _, name := range f.Needs() {
		feature, known := r.Features[name]
		if feature.Supported {
			continue
		}
		if !known {
			feature.Reason = "not in the report"
		}
		lacks = append(lacks, Lack{Node: r.Node, Kernel: r.Kernel, Feature: name, Reason: feature.Reason})
	}
	return lacks
}
