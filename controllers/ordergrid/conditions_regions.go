package ordergrid

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Reasons of the condition RegionsLoaded, beside Loaded, OnTheWay and RefusedByNode.
const (
	reasonRegionsNotFound = "NotFound"
	reasonRegionsInvalid  = "Invalid"
)

// regionsOf are the states of regions by pod, nil if no pod has any.
func regionsOf(answers []*nodestatus.Memory) map[string]nodestatus.Regions {
	if !slices.ContainsFunc(answers, func(m *nodestatus.Memory) bool { return m.Regions != nil }) {
		return nil
	}
	all := map[string]nodestatus.Regions{}
	for _, m := range answers {
		all[m.Pod] = nodestatus.Regions{} // of a pod without the file: none
		if m.Regions != nil {
			x := *m.Regions
			x.Use = coarseUse(x.Use)
			all[m.Pod] = x
		}
	}
	return all
}

// hasRegions reports whether a file is in use wherever a node has reported, and in the logs.
func (a *room) hasRegions(digests fileDigests) bool {
	for _, x := range a.regions {
		if !digests.has(x.SHA256) || x.Error != "" || slices.ContainsFunc(x.Partitions, func(p nodestatus.PartitionRegions) bool { return p.BoundAwaited || len(p.Awaited) > 0 }) {
			return false
		}
	}
	return len(a.regions) > 0
}

// judgeRegions: the log of every partition has the regions of spec.regions.
func judgeRegions(o *observation) judgement {
	if o.grid.Spec.Regions == nil {
		return judgement{}
	}
	s := o.regions
	no := func(reason, format string, args ...any) judgement {
		return judgement{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	switch {
	case s == nil:
		return o.asBefore(api.ConditionRegionsLoaded)
	case len(s.missing) > 0:
		return no(reasonRegionsNotFound, "there are no GridRegions of these names in namespace %s%s; create them, or correct spec.regions.gridRegions. What the logs have of them stays", o.grid.Namespace, some(s.missing))
	case len(s.invalid) > 0:
		return no(reasonRegionsInvalid, "these are not given to the nodes%s. What the logs have of them stays", some(s.invalid))
	}
	if j, silent := o.silent(api.ConditionRegionsLoaded, "its regions", o.room.known); silent {
		return j
	}
	refused, old, in := o.regionsIn()
	switch n := len(o.standbys()); {
	case len(refused) > 0:
		return no(reasonInstrumentsRefused, "a node does not take the regions%s. What it had before stays", some(refused))
	case n > 0:
		return no(reasonInstrumentsOnTheWay, "%d of %d partitions are standbys of %s and have its regions; those of this grid are put in the logs when they take orders", n, o.wantPartitions(), o.otherSite())
	case len(old) > 0 || in < o.wantPartitions():
		return no(reasonInstrumentsOnTheWay, "%d regions are in the logs of %d of %d partitions with their bounds%s. The kubelet takes about a minute to change a file, and memory changes with the pods", s.n, in, o.wantPartitions(), some(old))
	case len(o.regionsLater()) > 0:
		return no(reasonLaterInForce, "the logs have later bounds than the API server has, as after etcd was restored from a backup%s. They stay until the GridRegions have later ones: make those anew", some(o.regionsLater()))
	case !o.room.all:
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, "a pod does not answer the operator about its regions; the others have them"}
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, fmt.Sprintf("%d regions are in the logs of %d partitions with their bounds", s.n, in)}
}

// regionsLater are the regions of which logs have later bounds than the file.
func (o *observation) regionsLater() (all []string) {
	for _, pod := range slices.Sorted(maps.Keys(o.room.regions)) {
		for _, p := range o.room.regions[pod].Partitions {
			for _, name := range p.Later {
				all = append(all, fmt.Sprintf("%s in %s on %s", name, p.Partition, pod))
			}
		}
	}
	return all
}

// regionsIn compares what nodes report with the file that they are given: who refuses it, which of them have another file or
// another memory, which copies lack regions, and how many partitions have all on all of their copies.
func (o *observation) regionsIn() (refused, old []string, in int) {
	has := map[string]bool{}
	memory := o.grid.Spec.Regions.Memory.Value()
	for _, pod := range slices.Sorted(maps.Keys(o.room.regions)) {
		x := o.room.regions[pod]
		switch {
		case x.Error != "":
			refused = append(refused, pod+": "+x.Error)
		case !o.regions.sha256.has(x.SHA256):
			old = append(old, "the file of "+pod)
		case x.MemoryBytes != memory:
			old = append(old, "the memory of "+pod)
		}
		for _, p := range x.Partitions {
			lacks := p.Awaited
			if p.BoundAwaited {
				lacks = append([]string{"the bound of memory"}, lacks...)
			}
			if len(lacks) > 0 {
				old = append(old, fmt.Sprintf("%s on %s: %s", p.Partition, pod, strings.Join(lacks, ", ")))
			}
			before, seen := has[p.Partition]
			has[p.Partition] = len(lacks) == 0 && o.regions.sha256.has(x.SHA256) && (before || !seen)
		}
	}
	for _, everywhere := range has {
		if everywhere {
			in++
		}
	}
	return refused, old, in
}

// regionEvents tell that regions are in all logs, and what keeps them from it but time.
func regionEvents(c *metav1.Condition) []event {
	e := event{kind: corev1.EventTypeWarning, reason: "Regions" + c.Reason, action: "Observe", note: c.Message}
	switch {
	case c.Status == metav1.ConditionTrue:
		e.kind = corev1.EventTypeNormal
	case c.Status != metav1.ConditionFalse || c.Reason == reasonInstrumentsOnTheWay:
		return nil
	}
	return []event{e}
}
