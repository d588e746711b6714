package sim

import (
	"strings"
	"testing"
)

// firstWorlds runs the first worlds whose description has the text.
func firstWorlds(t *testing.T, worlds int, text string) (sum Stats) {
	notUnderRace(t)
	t.Parallel()
	for seed := uint64(1); worlds > 0; seed++ {
		if !strings.Contains(Describe(seed), text) {
			continue
		}
		worlds--
		res := Run(seed, nil)
		if res.Violation != nil {
			t.Fatalf("seed %d: %v", seed, res.Violation)
		}
		sum.add(&res.Stats)
	}
	return sum
}

// TestRegions runs the first worlds with regions.
func TestRegions(t *testing.T) {
	sum := firstWorlds(t, 4, "regions true")
	t.Logf("%d changes, %d reads, %d conditions that failed; %d snapshots", sum.RegionOps, sum.RegionReads, sum.RegionFailed, sum.Snapshots)
	if sum.RegionOps < 200 || sum.RegionReads < 200 || sum.RegionFailed < 20 {
		t.Errorf("%d changes, %d reads, %d conditions that failed: too few to mean anything", sum.RegionOps, sum.RegionReads, sum.RegionFailed)
	}
}

// TestBatches runs the first worlds whose clients change several keys at once.
func TestBatches(t *testing.T) {
	sum := firstWorlds(t, 4, "batches true")
	t.Logf("%d batches beside %d changes, %d conditions that failed; %d snapshots", sum.RegionBatches, sum.RegionOps, sum.RegionFailed, sum.Snapshots)
	if sum.RegionBatches < 100 || sum.RegionOps < 100 {
		t.Errorf("%d batches beside %d changes: too few to mean anything", sum.RegionBatches, sum.RegionOps)
	}
}

// TestComputes runs the first worlds whose clients call functions.
func TestComputes(t *testing.T) {
	sum := firstWorlds(t, 4, "functions computing true")
	t.Logf("%d calls, %d that failed, %d awaited; %d snapshots", sum.Calls, sum.CallsFailed, sum.CallsAwaited, sum.Snapshots)
	if sum.Calls < 200 || sum.CallsFailed < 20 || sum.CallsAwaited < 20 {
		t.Errorf("%d calls, %d that failed, %d awaited: too few to mean anything", sum.Calls, sum.CallsFailed, sum.CallsAwaited)
	}
}

// TestMaps runs the first worlds in which all of a region is read beside the replica.
func TestMaps(t *testing.T) {
	sum := firstWorlds(t, 4, "maps true")
	t.Logf("%d Maps of %d entries", sum.Maps, sum.MapRows)
	if sum.Maps < 50 || sum.MapRows < 100 {
		t.Errorf("%d Maps of %d entries: too few to mean anything", sum.Maps, sum.MapRows)
	}
}

// TestMapsOverOrders runs the first worlds in which all orders of the log are read beside the replica.
func TestMapsOverOrders(t *testing.T) {
	sum := firstWorlds(t, 6, "of orders true")
	t.Logf("%d Maps over %d orders, %d that ended because entries were freed", sum.OrderMaps, sum.OrderMapRows, sum.OrderMapsFreed)
	if sum.OrderMaps < 100 || sum.OrderMapRows < 1000 {
		t.Errorf("%d Maps over %d orders: too few to mean anything", sum.OrderMaps, sum.OrderMapRows)
	}
}
