package sim

import (
	"strings"
	"testing"
)

// TestRegions runs the first worlds with regions.
func TestRegions(t *testing.T) {
	notUnderRace(t)
	var sum Stats
	for seed, worlds := uint64(1), 0; worlds < 4; seed++ {
		if !strings.Contains(Describe(seed), "regions true") {
			continue
		}
		worlds++
		res := Run(seed, nil)
		if res.Violation != nil {
			t.Fatalf("seed %d: %v", seed, res.Violation)
		}
		sum.add(&res.Stats)
	}
	t.Logf("%d changes, %d reads, %d conditions that failed; %d snapshots", sum.RegionOps, sum.RegionReads, sum.RegionFailed, sum.Snapshots)
	if sum.RegionOps < 200 || sum.RegionReads < 200 || sum.RegionFailed < 20 {
		t.Errorf("%d changes, %d reads, %d conditions that failed: too few to mean anything", sum.RegionOps, sum.RegionReads, sum.RegionFailed)
	}
}

// TestBatches runs the first worlds whose clients change several keys at once.
func TestBatches(t *testing.T) {
	var sum Stats
	for seed, worlds := uint64(1), 0; worlds < 4; seed++ {
		if !strings.Contains(Describe(seed), "batches true") {
			continue
		}
		worlds++
		res := Run(seed, nil)
		if res.Violation != nil {
			t.Fatalf("seed %d: %v", seed, res.Violation)
		}
		sum.add(&res.Stats)
	}
	t.Logf("%d batches beside %d changes, %d conditions that failed; %d snapshots", sum.RegionBatches, sum.RegionOps, sum.RegionFailed, sum.Snapshots)
	if sum.RegionBatches < 100 || sum.RegionOps < 100 {
		t.Errorf("%d batches beside %d changes: too few to mean anything", sum.RegionBatches, sum.RegionOps)
	}
}

// TestComputes runs the first worlds whose clients call functions.
func TestComputes(t *testing.T) {
	notUnderRace(t)
	var sum Stats
	for seed, worlds := uint64(1), 0; worlds < 4; seed++ {
		if !strings.Contains(Describe(seed), "functions computing true") {
			continue
		}
		worlds++
		res := Run(seed, nil)
		if res.Violation != nil {
			t.Fatalf("seed %d: %v", seed, res.Violation)
		}
		sum.add(&res.Stats)
	}
	t.Logf("%d calls, %d that failed, %d awaited; %d snapshots", sum.Calls, sum.CallsFailed, sum.CallsAwaited, sum.Snapshots)
	if sum.Calls < 200 || sum.CallsFailed < 20 || sum.CallsAwaited < 20 {
		t.Errorf("%d calls, %d that failed, %d awaited: too few to mean anything", sum.Calls, sum.CallsFailed, sum.CallsAwaited)
	}
}

// TestMaps runs the first worlds in which all of a region is read beside the replica.
func TestMaps(t *testing.T) {
	notUnderRace(t)
	var sum Stats
	for seed, worlds := uint64(1), 0; worlds < 4; seed++ {
		if !strings.Contains(Describe(seed), "maps true") {
			continue
		}
		worlds++
		res := Run(seed, nil)
		if res.Violation != nil {
			t.Fatalf("seed %d: %v", seed, res.Violation)
		}
		sum.add(&res.Stats)
	}
	t.Logf("%d Maps of %d entries", sum.Maps, sum.MapRows)
	if sum.Maps < 50 || sum.MapRows < 100 {
		t.Errorf("%d Maps of %d entries: too few to mean anything", sum.Maps, sum.MapRows)
	}
}

// TestMapsOverOrders runs the first worlds in which all orders of the log are read beside the replica.
func TestMapsOverOrders(t *testing.T) {
	notUnderRace(t)
	var sum Stats
	for seed, worlds := uint64(1), 0; worlds < 6; seed++ {
		if !strings.Contains(Describe(seed), "of orders true") {
			continue
		}
		worlds++
		res := Run(seed, nil)
		if res.Violation != nil {
			t.Fatalf("seed %d: %v", seed, res.Violation)
		}
		sum.add(&res.Stats)
	}
	t.Logf("%d Maps over %d orders, %d that ended because entries were freed", sum.OrderMaps, sum.OrderMapRows, sum.OrderMapsFreed)
	if sum.OrderMaps < 100 || sum.OrderMapRows < 1000 {
		t.Errorf("%d Maps over %d orders: too few to mean anything", sum.OrderMaps, sum.OrderMapRows)
	}
}
