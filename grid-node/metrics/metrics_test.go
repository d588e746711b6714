package metrics

import (
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

func full() *Snapshot {
	s := &Snapshot{TLSExpires: time.Unix(1e9, 0), Clients: 3, Peers: 1, MemoryUsed: 1 << 20, MemoryLimit: 1 << 30}
	s.Fabric = Fabric{Network: "trading/ib", Interface: "ib0", Address: "10.0.0.1", Link: "infiniband", Transport: "tls"}
	s.PeerLinks = []PeerLink{{Pod: "g-s0-1", RTT: 4e6, RTTVar: 9_000, ReceivedAgo: 4e6, Retransmits: 2, Unacked: 1, BytesAcked: 10, BytesReceived: 20}}
	s.ArbiterAgo = 5e9
	s.Access = &Access{}
	s.Journal = &Journal{Bytes: 1 << 20, Lag: 2, Aside: 1}
	s.Functions = []Function{{Name: "fat-finger", SHA256: "ab12", OnError: "Reject"}}
	s.ComputeFunctions = []ComputeFunction{{Name: "add", SHA256: "ef56"}}
	s.PostFunctions = []PostFunction{{Name: "audit", SHA256: "cd34", Partitions: 1}}
	s.Node.Alarm("ReplicationGap")
	s.Loop.Order.Observe(50_000)
	p := Partition{Name: "p0", View: &nodestatus.View{Lag: 1}, Limited: true, Kills: 2, Orders: 7, LagNs: 3e6, Sinks: []Sink{{Name: "audit", Seq: 5, Writes: true, OldestNs: 2e9}, {Name: "file", Seq: 8}}}
	p.Status = replica.Status{Role: replica.RolePrimary, Config: &replica.Config{Epoch: 4, Lineage: 1, InSync: make([]replica.Member, 2)}, LastSeq: 12, CommitSeq: 10}
	u := replica.RegionUse{Region: region.Region{Name: "quotes", MaxBytes: 4096, Entries: 3, Blocks: 32, Expired: 2}, Full: true}
	u.Counts.Ops[replica.RegionPut][replica.RegionFull] = 5
	p.Regions = &Regions{Used: 8192, Limit: 1 << 20, List: []replica.RegionUse{u, {Region: region.Region{Name: "positions", Entries: 1, Blocks: 32}}}}
	p.Exchange = &Exchange{Resting: 3, Most: 100, AuctionNs: 90e9, HaltNs: 5e8}
	p.Exchange.States[match.Call] = 1
	x := &p.Counters.Executions
	x.Continuous, x.Auction, x.Refusals[match.OutsideBand] = 8, 1, 4
	x.Quantity[0][1], x.Quantity[3][1], x.Quantity[12][0] = 7, 1500, 1 // 7, 1.5, and 2^64 of the twelfth digit
	p.Counters.Acks = 9
	p.Counters.Rejects[2] = 4
	s.Partitions = []Partition{p}
	return s
}

func registry(s *Snapshot, err error) *Registry {
	return NewRegistry(&Collector{Snapshot: func() (*Snapshot, error) { return s, err }})
}

func lint(t *testing.T, r *Registry) {
	t.Helper()
	problems, err := testutil.GatherAndLint(r.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, prefix) { // the runtime's own names are fixed
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestValues(t *testing.T) {
	want := `
# HELP ordergrid_node_orders_total Orders answered by this node as primary, by outcome.
# TYPE ordergrid_node_orders_total counter
ordergrid_node_orders_total{outcome="acknowledged",partition="p0"} 9
ordergrid_node_orders_total{outcome="duplicate",partition="p0"} 0
ordergrid_node_orders_total{outcome="rejected",partition="p0"} 4
# HELP ordergrid_node_replication_lag_entries Entries stored and not yet known to be committed.
# TYPE ordergrid_node_replication_lag_entries gauge
ordergrid_node_replication_lag_entries{partition="p0"} 2
# HELP ordergrid_node_replication_lag_seconds Age of the oldest entry stored and not yet known to be committed; 0 without one.
# TYPE ordergrid_node_replication_lag_seconds gauge
ordergrid_node_replication_lag_seconds{partition="p0"} 0.003
# HELP ordergrid_node_region_bytes Memory that the entries of a region take, in blocks of 128 bytes; absent without regions.
# TYPE ordergrid_node_region_bytes gauge
ordergrid_node_region_bytes{partition="p0",region="positions"} 4096
ordergrid_node_region_bytes{partition="p0",region="quotes"} 4096
# HELP ordergrid_node_region_limit_bytes What they may take in the partition; absent for a region without a bound of its own.
# TYPE ordergrid_node_region_limit_bytes gauge
ordergrid_node_region_limit_bytes{partition="p0",region="quotes"} 4096
# HELP ordergrid_node_region_operations_total Operations on a region that were decided or read here, by outcome: done, condition_failed, full (no memory for it), invalid (a patch that does not fit). Begins anew when a copy does; absent for what there was none of.
# TYPE ordergrid_node_region_operations_total counter
ordergrid_node_region_operations_total{operation="put",outcome="full",region="quotes"} 5
# HELP ordergrid_node_fabric_info 1; what the data port is on: the network (namespace/name, or pods), the network interface that has the address others use, the kind of its link (ethernet, infiniband, loopback, other, unknown), the transport (tcp, tls).
# TYPE ordergrid_node_fabric_info gauge
ordergrid_node_fabric_info{address="10.0.0.1",interface="ib0",link="infiniband",network="trading/ib",transport="tls"} 1
# HELP ordergrid_node_sink_depth_entries Committed entries that the sink does not hold yet.
# TYPE ordergrid_node_sink_depth_entries gauge
ordergrid_node_sink_depth_entries{partition="p0",sink="audit"} 5
ordergrid_node_sink_depth_entries{partition="p0",sink="file"} 2
# HELP ordergrid_node_sink_age_seconds Age of the oldest committed entry that the sink does not hold yet, 0 if it holds all orders; absent on a node that does not write, a backup.
# TYPE ordergrid_node_sink_age_seconds gauge
ordergrid_node_sink_age_seconds{partition="p0",sink="audit"} 2
# HELP ordergrid_node_peer_rtt_seconds Smoothed round trip on the connection to another node, as the kernel measures it.
# TYPE ordergrid_node_peer_rtt_seconds gauge
ordergrid_node_peer_rtt_seconds{peer="g-s0-1"} 0.004
# HELP ordergrid_node_peer_retransmits_total Segments sent to another node again; from 0 with each new connection.
# TYPE ordergrid_node_peer_retransmits_total counter
ordergrid_node_peer_retransmits_total{peer="g-s0-1"} 2
# HELP ordergrid_node_arbiter_contact_age_seconds Age of the last message from the arbiter; absent before the first. It grows while there is nothing to request: GET /arbiter sends a request.
# TYPE ordergrid_node_arbiter_contact_age_seconds gauge
ordergrid_node_arbiter_contact_age_seconds 5
# HELP ordergrid_node_alarms_total Alarms raised, by kind.
# TYPE ordergrid_node_alarms_total counter
ordergrid_node_alarms_total{alarm="replication_gap"} 1
`
	names := []string{"region_bytes", "region_limit_bytes", "region_operations_total", "orders_total", "replication_lag_entries", "replication_lag_seconds", "fabric_info", "sink_depth_entries", "sink_age_seconds", "alarms_total", "peer_rtt_seconds", "peer_retransmits_total", "arbiter_contact_age_seconds"}
	for i := range names {
		names[i] = prefix + names[i]
	}
	if err := testutil.GatherAndCompare(registry(full(), nil).Gatherer(), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// One row per pod, and no more than a shard can have, whatever peers claim to be.
func TestPeerLabelsAreBounded(t *testing.T) {
	s := full()
	s.PeerLinks = append(s.PeerLinks, s.PeerLinks[0]) // the pod's former process
	for i := range 100 {
		s.PeerLinks = append(s.PeerLinks, PeerLink{Pod: fmt.Sprint("liar-", i)})
	}
	if n, err := testutil.GatherAndCount(registry(s, nil).Gatherer(), prefix+"peer_rtt_seconds"); n != MaxPeerLinks || err != nil {
		t.Errorf("%d rows, %v; want %d", n, err, MaxPeerLinks)
	}
}

// A loop that does not answer fails the scrape instead of showing old figures.
func TestSilentLoopFailsTheScrape(t *testing.T) {
	w := httptest.NewRecorder()
	registry(nil, errors.New("the loop did not answer within 1s")).Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), "did not answer") {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
}

// TestExchangeIsBounded: a partition has the same series whatever its books do, each reason of
// a refusal has a name of its own, and quantities are added up whatever their digits are.
func TestExchangeIsBounded(t *testing.T) {
	count := func(s *Snapshot) (n int, quantity float64) {
		families, err := registry(s, nil).Gatherer().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range exchangeDescs {
			for _, f := range families {
				if strings.Contains(d.String(), `"`+f.GetName()+`"`) {
					n += len(f.GetMetric())
				}
				if f.GetName() == prefix+"traded_quantity_total" {
					quantity = f.GetMetric()[0].GetCounter().GetValue()
				}
			}
		}
		return n, quantity
	}
	busy := full()
	n, quantity := count(busy)
	idle := full()
	idle.Partitions[0].Exchange, idle.Partitions[0].Counters.Executions = &Exchange{}, replica.ExecutionCounters{}
	if m, _ := count(idle); m != n || n != 46 {
		t.Errorf("%d series of a busy partition, %d of an idle one, want 46 (docs/metrics.md says so)", n, m)
	}
	if want := 7 + 1.5 + 0x1p64/1e12; math.Abs(quantity-want) > 1e-6 {
		t.Errorf("traded quantity %v, want %v", quantity, want)
	}
	for r := match.Reason(1); r < match.Reasons; r++ {
		ofOrders := !slices.Contains([]match.Reason{match.Requested, match.Unfilled, match.SelfMatch, match.WorkLimit, match.Expired}, r)
		if (refusalReasons[r] != "") != ofOrders {
			t.Errorf("reason %d (%v) is %q among those of refusals", r, r, refusalReasons[r])
		}
	}
}
