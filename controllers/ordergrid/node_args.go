package ordergrid

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
)

// nodeArgs is the command line of a grid node. $(POD_NAME) and $(POD_IP) are expanded by the kubelet. replicas and
// minInSync are not among them: nodes read them from their GridPartitions, so that a change does not replace pods.
func nodeArgs(grid *api.OrderGrid, shard int32) []string {
	spec := &grid.Spec
	args := []string{
		"serve",
		"--grid", grid.Name,
		"--namespace", grid.Namespace,
		"--shard", fmt.Sprint(shard),
		"--partitions", fmt.Sprint(spec.Partitions),
		"--pod", "$(POD_NAME)",
		"--listen", fmt.Sprintf(":%d", api.DataPort),
		"--advertise", fmt.Sprintf("$(POD_IP):%d", api.DataPort),
		"--http", fmt.Sprintf(":%d", api.HTTPPort),
		"--arbiter", "kube",
	}
	if spec.Fabric == nil {
		args = append(args, "--peers", strings.Join(peers(grid, shard), ","))
	} else {
		args = append(args, fabricArgs(grid)...)
	}
	args = append(args, peerKeyArgs(grid)...)
	args = append(args, certificates.NodeArgs(grid)...)
	if spec.ExternalAccess != nil && slices.Contains(args, "--tls-cert") { // nothing leaves the cluster in plain text, not even before its certificates exist
		args = append(args, flagExternal, fmt.Sprintf(":%d", api.ExternalPort))
	}
	args = append(args, authorizationArgs(grid)...)
	args = append(args,
		"--memory-limit", processMemory(nodeMemory(grid)).String(),
		"--prefault", prefault(grid).String(),
		"--beacon", spec.Timing.BeaconInterval.Duration.String(),
		"--lease", spec.Timing.Lease.Duration.String(),
		"--grace", spec.Timing.Grace.Duration.String(),
		"--claim-delay", spec.Timing.ClaimDelay.Duration.String(),
		"--hand-over-delay", spec.Timing.HandOverDelay.Duration.String(),
		"--drain-timeout", spec.Timing.DrainTimeout.Duration.String(),
		"--learner-rate", spec.Replication.LearnerRate.String(),
	)
	args = append(args, viewArgs(grid)...)
	args = append(args, sinkArgs(grid)...)
	args = append(args, journalArgs(grid)...)
	args = append(args, restoreArgs(grid)...)
	args = append(args, executionArgs(grid)...)
	args = append(args, limitsArgs(grid)...)
	args = append(args, regionArgs(grid)...)
	if spec.Retention.Policy == api.RetentionFreeDownstream {
		args = append(args, "--retention", "free-downstream", "--high-watermark", fmt.Sprint(spec.Retention.HighWatermarkPercent))
	}
	return args
}

// firstPods are the pods of a shard that its nodes dial in advance: a third one dials these. It does not depend on
// spec.replicas, whose change must not replace other pods.
const firstPods = 2

// peers are the first pods of a shard by their DNS names in the headless Service. They resolve to the pod network:
// nodes on a fabric, and those of other shards, find each other by the addresses in their partitions' records alone.
func peers(grid *api.OrderGrid, shard int32) []string {
	var list []string
	for ordinal := range int32(firstPods) {
		list = append(list, fmt.Sprintf("%s.%s.%s.svc:%d", api.PodName(grid.Name, shard, ordinal), api.ShardName(grid.Name, shard), grid.Namespace, api.DataPort))
	}
	return list
}

// processMemory is the limit at which a grid node leaves so much to orders, views and regions: it reserves a quarter of its limit, at
// most 192Mi, for its runtime and connections.
func processMemory(orders resource.Quantity) *resource.Quantity {
	n := orders.Value()
	return resource.NewQuantity(n+min((n+2)/3, 192<<20), resource.BinarySI)
}

// usualPrefault is the default: half a second at most, and some 700,000 orders of 305 bytes. Beyond, a node faults in
// memory slightly in advance.
const usualPrefault = 256 << 20

// prefault is spec.prefault. By default memory that the pod does not request is not faulted in: it may be meant to be
// used only on demand.
func prefault(grid *api.OrderGrid) *resource.Quantity {
	if grid.Spec.Prefault != nil {
		return grid.Spec.Prefault
	}
	orders, request := grid.Spec.Memory.Value(), resources(grid).Requests[corev1.ResourceMemory]
	if request.Value() < orders {
		return resource.NewQuantity(0, resource.BinarySI)
	}
	return resource.NewQuantity(min(orders, usualPrefault), resource.BinarySI)
}
