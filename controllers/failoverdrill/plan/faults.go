package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func role(r api.DrillRole) *api.DrillTarget { return &api.DrillTarget{Role: r} }

// within expects service again within d, and every order acknowledged in the end.
func within(d time.Duration) *api.DrillExpectation {
	return &api.DrillExpectation{Outage: lasting(d), FailedOrders: api.FailedOrdersNone}
}

func warned(e *api.DrillExpectation) *api.DrillExpectation {
	e.Grid = api.GridNotRedundant
	return e
}

// pullThePlug is the published test: "kill one server during the two-server test and inspect the downstream file for
// gaps", at 3,000 orders a second of each of two probes. It shows that acknowledged orders are in the other server and
// downstream, and how long clients wait. It needs nothing but Chaos Mesh, and replicas: 2. The process gets SIGKILL:
// deleting the pod, even without grace, is no power loss, because the kubelet sends SIGTERM first and the node hands
// over.
func pullThePlug() Suite {
	return Suite{
		Name: api.SuitePullThePlug, RatePerProbe: 3000, Repetitions: 10, Order: api.OrderListed,
		Shows:  "the published test: the server that is primary is killed under load; nothing acknowledged is lost, and clients go on at the other server",
		Needs:  "Chaos Mesh; a grid with replicas: 2 or 3",
		Faults: []api.DrillFault{{Name: "kill-primary", Type: api.FaultContainerKill, Expect: within(killOutage)}},
	}
}

// network is all faults of packets. It shows that an unreachable copy is dropped before it can be believed, that a
// silent primary is replaced, and that a poor link costs time but no order. Delay, loss, duplicates, corruption and
// bandwidth need the kernel's netem and tbf (package sch_netem), partitions need ipset.
func network() Suite {
	net := func(name string, t api.DrillFaultType, target *api.DrillTarget, p *api.NetworkFault) api.DrillFault {
		return api.DrillFault{Name: name, Type: t, Target: target, Duration: lasting(10 * time.Second), Network: p, Expect: within(silentOutage)}
	}
	// Narrower than the orders of the default rate need: the excess waits, for at most the duration of the fault.
	// Towards everything, in one direction: that needs the kernel's tbf alone; towards some peers it needs prio as
	// well.
	narrow := net("narrow-link", api.FaultNetworkBandwidth, &api.DrillTarget{Role: api.RolePrimary, Peer: api.PeerEverything}, &api.NetworkFault{Rate: "1M", Direction: api.DirectionTo})
	narrow.Expect = within(narrow.Duration.Duration + silentOutage)
	cut := net("cut-backup", api.FaultNetworkPartition, role(api.RoleBackup), nil)
	warned(cut.Expect)
	return Suite{
		Name: api.SuiteNetwork, RatePerProbe: defaultRate, Repetitions: 1, Order: api.OrderListed,
		Shows: "packets that are dropped, delayed, lost, duplicated, corrupted or throttled, between the copies and towards all peers",
		Needs: "Chaos Mesh and kernels with ipset and netem, or an executor that does these types; replicas: 2 or 3",
		Faults: []api.DrillFault{
			cut,
			net("cut-primary", api.FaultNetworkPartition, &api.DrillTarget{Role: api.RolePrimary, Peer: api.PeerEverything}, nil),
			net("cut-one-way", api.FaultNetworkPartition, role(api.RolePrimary), &api.NetworkFault{Direction: api.DirectionTo}),
			net("delay", api.FaultNetworkDelay, role(api.RolePrimary), &api.NetworkFault{Latency: lasting(10 * time.Millisecond), Jitter: lasting(2 * time.Millisecond)}),
			net("loss", api.FaultNetworkLoss, role(api.RolePrimary), &api.NetworkFault{Loss: "5%"}),
			net("duplicate", api.FaultNetworkDuplicate, role(api.RolePrimary), &api.NetworkFault{Duplicate: "50%"}),
			net("corrupt", api.FaultNetworkCorrupt, role(api.RolePrimary), &api.NetworkFault{Corrupt: "1%"}),
			narrow,
		},
	}
}

// node is faults of machines. It shows that copies are kept apart, so that a machine takes one copy at most, and that
// redundancy is restored elsewhere in the pool. Power and network links are beyond Kubernetes: it needs an executor
// that has them.
func node() Suite {
	return Suite{
		Name: api.SuiteNode, RatePerProbe: defaultRate, Repetitions: 1, Order: api.OrderListed,
		Shows: "a machine that loses its power, its network link, or every pod at once",
		Needs: "an executor with NodePowerOff and NodeLinkDown, Chaos Mesh, one machine more than replicas",
		Faults: []api.DrillFault{
			{Name: "kill-machine-pods", Type: api.FaultContainerKill, Target: role(api.RoleNode), Expect: within(silentOutage)},
			{Name: "pull-cable", Type: api.FaultNodeLinkDown, Target: role(api.RoleNode), Duration: lasting(20 * time.Second), Expect: warned(within(silentOutage))},
			{Name: "power-off", Type: api.FaultNodePowerOff, Target: role(api.RoleNode), Duration: lasting(90 * time.Second), Expect: warned(within(silentOutage))},
		},
	}
}

// clockAndCPU is shifted clocks and busy machines. The wall clock decides nothing in a grid, so it may jump; a busy
// node is slow, or is removed, and loses nothing. Chaos Mesh shifts clocks in the process, which needs ptrace.
func clockAndCPU() Suite {
	skew := func(name string, r api.DrillRole, by time.Duration) api.DrillFault {
		return api.DrillFault{Name: name, Type: api.FaultClockSkew, Target: role(r), Duration: lasting(10 * time.Second),
			Clock: &api.ClockFault{Offset: metav1.Duration{Duration: by}}, Expect: within(killOutage)}
	}
	return Suite{
		Name: api.SuiteClockAndCPU, RatePerProbe: defaultRate, Repetitions: 1, Order: api.OrderListed,
		Shows: "wall clocks that jump, busy processors, scarce memory",
		Needs: "Chaos Mesh, allowed to trace processes; 128Mi of memory free in each grid node's limit",
		Faults: []api.DrillFault{
			skew("primary-clock-back", api.RolePrimary, -10*time.Minute),
			skew("primary-clock-ahead", api.RolePrimary, 10*time.Minute),
			skew("backup-clock-back", api.RoleBackup, -10*time.Minute),
			{Name: "busy-primary", Type: api.FaultCPUStress, Duration: lasting(15 * time.Second), Stress: &api.StressFault{CPUWorkers: new(int32(2))}, Expect: within(silentOutage)},
			{Name: "tight-memory", Type: api.FaultMemoryStress, Target: role(api.RoleBackup), Duration: lasting(15 * time.Second), Stress: &api.StressFault{Memory: "128Mi"}, Expect: within(silentOutage)},
		},
	}
}

// rollingUpgrade is planned changes in operation: no order may fail. It needs nothing but the operator.
func rollingUpgrade() Suite {
	return Suite{
		Name: api.SuiteRollingUpgrade, RatePerProbe: defaultRate, Repetitions: 1, Order: api.OrderListed,
		Shows: "planned changes while orders flow: a hand-over, pods deleted the ordinary way, every pod replaced; no order fails",
		Needs: "nothing but a grid with replicas: 2 or 3",
		Faults: []api.DrillFault{
			{Name: "hand-over", Type: api.FaultHandOver, Expect: within(500 * time.Millisecond)},
			{Name: "delete-primary", Type: api.FaultPodDelete, Expect: within(killOutage)},
			{Name: "delete-backup", Type: api.FaultPodDelete, Target: role(api.RoleBackup), Expect: within(killOutage)},
			{Name: "replace-all", Type: api.FaultRollingUpdate, Expect: within(killOutage)},
		},
	}
}

// apiOutage is a grid without its API server. Orders do not need it, so clients are not affected; but no take-over is
// possible without it, so a primary that fails meanwhile is not replaced until the API server is back: orders are
// refused rather than accepted by two primaries. The outage of the API server itself needs an executor.
func apiOutage() Suite {
	unnoticed := func() *api.DrillExpectation { return within(500 * time.Millisecond) }
	return Suite{
		Name: api.SuiteAPIOutage, RatePerProbe: defaultRate, Repetitions: 1, Order: api.OrderListed,
		Shows: "without the API server orders flow as before, and no take-over happens until it is back",
		Needs: "Chaos Mesh and kernels with ipset; an executor with APIServerOutage",
		Faults: []api.DrillFault{
			{Name: "cut-from-api", Type: api.FaultAPIServerPartition, Target: role(api.RoleShard), Duration: lasting(30 * time.Second), Expect: unnoticed()},
			{Name: "api-gone", Type: api.FaultAPIServerOutage, Duration: lasting(30 * time.Second), Expect: unnoticed()},
			{Name: "cut-from-api-again", Type: api.FaultAPIServerPartition, Target: role(api.RoleShard), Duration: lasting(20 * time.Second),
				Expect: &api.DrillExpectation{Outage: lasting(2 * time.Minute), FailedOrders: api.FailedOrdersAllowed}},
			{Name: "fail-meanwhile", Type: api.FaultPodFailure, Duration: lasting(5 * time.Second), Start: api.StartHeld,
				Expect: &api.DrillExpectation{Outage: lasting(2 * time.Minute), FailedOrders: api.FailedOrdersAllowed, Grid: api.GridRefusesOrders}},
		},
	}
}

// cascade breaks copies until one is left: the grid has to warn (Redundant is False), or refuse orders according to
// minInSync, before the next fault could lose anything; and the drill itself has to refuse that next fault. It needs
// nothing but Chaos Mesh. With safety.lastCopy: Take the last copy is killed too, and the certificate reports what was
// lost.
func cascade() Suite {
	return Suite{
		Name: api.SuiteCascade, RatePerProbe: defaultRate, Repetitions: 1, Order: api.OrderListed,
		Shows: "copies that fail until one is left: the grid warns or refuses orders before it could lose one, and one fault more is refused",
		Needs: "Chaos Mesh; a grid with replicas: 2 or 3",
		Faults: []api.DrillFault{
			{Name: "lose-backups", Type: api.FaultPodFailure, Target: role(api.RoleBackups), Duration: lasting(20 * time.Second),
				Expect: &api.DrillExpectation{Outage: lasting(time.Minute), FailedOrders: api.FailedOrdersAllowed, Grid: api.GridNotRedundant}},
			{Name: "one-too-many", Type: api.FaultContainerKill, Start: api.StartHeld,
				Expect: &api.DrillExpectation{Outage: lasting(time.Minute), FailedOrders: api.FailedOrdersAllowed, Injection: api.InjectionRefused}},
		},
	}
}

// exchangeRate is lower than of grids that store: at the end every log is matched again, naively.
const exchangeRate = 500

// killMidSweep is pull-the-plug of an exchange: orders trade, and one in sixteen sweeps the other side of its book. It
// shows that an execution that a session was told is in the log of every copy, by price and time, once. It needs
// nothing but Chaos Mesh.
func killMidSweep() Suite {
	return Suite{
		Name: api.SuiteKillMidSweep, RatePerProbe: exchangeRate, Repetitions: 5, Order: api.OrderListed, Matches: true,
		Shows:  "the primary is killed while orders sweep the books; no execution that was told is lost, and every copy has executed what its log says",
		Needs:  "Chaos Mesh; a grid with execution.mode: Match and replicas: 2 or 3",
		Faults: []api.DrillFault{{Name: "kill-sweeping-primary", Type: api.FaultContainerKill, Expect: within(killOutage)}},
	}
}

// killInAuction is the same with an auction every four seconds in each book, which collects orders for three of them:
// the next primary holds the auction that the one before began.
func killInAuction() Suite {
	return Suite{
		Name: api.SuiteKillInAuction, RatePerProbe: exchangeRate, Repetitions: 5, Order: api.OrderListed, Matches: true, Auctions: 4 * time.Second,
		Shows:  "the primary is killed while books collect orders for an auction, which the next one holds; no execution is lost",
		Needs:  "Chaos Mesh; a grid with execution.mode: Match and replicas: 2 or 3, and where clients have rules, Admin for the recorder",
		Faults: []api.DrillFault{{Name: "kill-calling-primary", Type: api.FaultContainerKill, Expect: within(killOutage)}},
	}
}
