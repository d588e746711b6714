package ordergrid

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

var testDefaults = Defaults{Image: "ordergrid.dev/grid-node:dev", SinkImage: "ordergrid.dev/grid-sink:dev", ImagePullPolicy: corev1.PullIfNotPresent}

// pairGrid is an OrderGrid with an empty spec as defaulted by the API server (checked by TestGridDefaults of the API),
// but with two partitions, one for each pod.
func pairGrid() *api.OrderGrid {
	d := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return &api.OrderGrid{
		ObjectMeta: metav1.ObjectMeta{Name: "rtd", Namespace: "trading", UID: "11111111-2222-3333-4444-555555555555", Generation: 1},
		Spec: api.OrderGridSpec{
			Shards: 1, Partitions: 2, Replicas: 2, MinInSync: 1, PartitionBy: api.PartitionByClOrdID,
			Memory: resource.MustParse("1Gi"),
			Timing: api.TimingSpec{
				BeaconInterval: d(20 * time.Millisecond), Lease: d(200 * time.Millisecond), Grace: d(300 * time.Millisecond),
				ClaimDelay: d(10 * time.Second), HandOverDelay: d(5 * time.Second), DrainTimeout: d(20 * time.Second),
			},
			Replication: api.ReplicationSpec{LearnerRate: resource.MustParse("256Mi")},
			Placement: api.GridPlacement{
				Spread: api.SpreadRequired, ShardSpread: api.SpreadPreferred,
				Pool: api.NodePool{CPU: api.PoolCPUAny, Network: api.PoolNetworkAny}, CPU: api.CPUPlacement{Policy: api.CPUShared},
			},
			NodeFailure:    api.NodeFailureSpec{Policy: api.NodeFailureReplace, PodReplaceAfter: d(30 * time.Second)},
			UpdateStrategy: api.UpdateStrategySpec{Type: api.UpdateRolling, MaxUnavailableShards: 1, MinReady: d(10 * time.Second), ProgressDeadline: d(10 * time.Minute), Surge: ptr.To[int32](1), WithoutRoom: api.WithoutRoomWait},
		},
	}
}

// bankGrid uses every field.
func bankGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Shards, grid.Spec.Partitions, grid.Spec.Replicas, grid.Spec.MinInSync = 3, 9, 3, 2
	grid.Spec.Memory, grid.Spec.Prefault = resource.MustParse("8Gi"), ptr.To(resource.MustParse("6Gi"))
	grid.Spec.Sinks = []api.SinkSpec{{Name: api.SinkNameFile, Type: api.SinkFile, File: &api.FileSinkSpec{
		Volume: api.SinkVolumeClaim, Size: resource.MustParse("20Gi"), StorageClassName: ptr.To("fast"), WhenDeleted: api.ClaimDelete,
	}}}
	grid.Spec.Placement = api.GridPlacement{
		NodeSelector: map[string]string{"pool": "xeon"},
		Tolerations:  []corev1.Toleration{{Key: "trading", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Spread:       api.SpreadPreferred,
	}
	grid.Spec.Image, grid.Spec.ImagePullPolicy = "registry.example/grid-node@sha256:abc", corev1.PullAlways
	grid.Spec.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("12Gi")},
	}
	grid.Spec.PodTemplate = raw(`{"metadata":{"annotations":{"desk":"emea"}},"spec":{"priorityClassName":"trading",
		"containers":[{"name":"grid-node","env":[{"name":"GODEBUG","value":"gctrace=1"}]},{"name":"ship-logs","image":"logs:1"}]}}`)
	return grid
}

// fabricGrid is a pair on InfiniBand, with processors of its own, in two zones.
func fabricGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Shards, grid.Spec.Partitions = 2, 4
	grid.Spec.Placement.Pool = api.NodePool{CPU: api.PoolCPUXeon, Network: api.PoolNetworkInfiniBand}
	grid.Spec.Placement.NodeSelector = map[string]string{"pool": "trading"}
	grid.Spec.Placement.SeparateBy = []api.Separation{{TopologyKey: "topology.kubernetes.io/zone", Policy: api.SpreadRequired}, {TopologyKey: "example.com/rack", Policy: api.SpreadPreferred}}
	grid.Spec.Placement.ShardSpread = api.SpreadRequired
	grid.Spec.Placement.CPU = api.CPUPlacement{Policy: api.CPUExclusive, Cores: 4}
	grid.Spec.Fabric = &api.FabricSpec{
		Network: api.NetworkReference{Name: "ib-trading"}, Interface: "ib1", ResourceName: "openshift.io/ib_trading",
		Transport: api.FabricTCP, Fallback: api.FallbackRefuse,
	}
	return grid
}

// securedGrid uses TLS and accepts clients of a bank's own authority.
func securedGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Security.TLS = &api.TLSSpec{
		Issuer: api.IssuerOperator, Duration: metav1.Duration{Duration: 2160 * time.Hour}, RenewBefore: metav1.Duration{Duration: 720 * time.Hour},
		ClientAuth: api.ClientAuthNone, ClientAuthorities: &api.ConfigMapReference{Name: "desk-ca"},
	}
	return grid
}

// sinkGrid has sinks that the operator runs pods for.
func sinkGrid() *api.OrderGrid {
	grid := securedGrid()
	grid.Spec.Security.TLS.ClientAuthorities, grid.Spec.Security.TLS.ClientAuth = nil, api.ClientAuthRequire
	grid.Spec.Sinks = slices.Concat(archiveSinks(), outsideSinks(), bridgeSinks())
	return grid
}

// externalGrid accepts clients from outside the cluster.
func externalGrid() *api.OrderGrid {
	grid := securedGrid()
	grid.Spec.Shards, grid.Spec.Partitions = 2, 4
	grid.Spec.Security.NetworkPolicy.Type = api.NetworkPolicyRestricted
	grid.Spec.ExternalAccess = &api.ExternalAccessSpec{
		Type: api.ExternalLoadBalancers, Host: "{pod}.trades.example.com", SourceRanges: []string{"192.0.2.0/24", "2001:db8::/32"},
		Annotations:  map[string]string{"external-dns.alpha.kubernetes.io/hostname": "{pod}.trades.example.com"},
		LoadBalancer: &api.ExternalLoadBalancer{Class: "example.com/internal"},
	}
	return grid
}

// restoredGrid begins with an archive.
func restoredGrid() *api.OrderGrid {
	g := singleGrid()
	g.Name, g.UID = "rtd", "5e2a"
	g.Spec.Partitions = 8
	g.Spec.RestoreFrom = &api.RestoreSpec{EarlierRestore: api.EarlierRestoreSupersede, Bucket: &api.ArchiveBucketSpec{
		Name: "orders", Prefix: "prod/log", Endpoint: "https://minio.store:9000", Region: "eu-west-1", CredentialsSecretName: "store", CASecret: &api.SecretKey{Name: "store-ca", Key: "ca.pem"},
	}}
	return g
}

// standbyGrid holds the log of another site, which a link brings.
func standbyGrid() *api.OrderGrid {
	grid := securedGrid()
	grid.Spec.Site = &api.GridSiteSpec{Role: api.SiteStandby, Source: "site a, orders.a.example.com:7400"}
	grid.Spec.Sinks = []api.SinkSpec{{Name: "link", Type: api.SinkExternal}}
	return grid
}

// singleGrid is one server without replication, its sink on an EmptyDir.
func singleGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Replicas = 1
	grid.Spec.WriteBehind = api.WriteBehindSpec{Sink: api.WriteBehindFile} // predates spec.sinks
	return grid
}

// recordOf is the record of the index-th partition of a shard in a new grid: primary is the pod of that index.
func recordOf(grid *api.OrderGrid, shard, index int32) *api.GridPartition {
	copies := atRest(grid, shard)
	return partition(grid, copies, numberOf(grid, shard, index), api.PodName(grid.Name, shard, index%copies.wanted), requested{})
}

// numberOf is the number of the index-th partition of a shard in a new grid.
func numberOf(grid *api.OrderGrid, shard, index int32) int32 { return index*grid.Spec.Shards + shard }

// atRest are the copies of a shard that matches spec.
func atRest(grid *api.OrderGrid, shard int32) *shardCopies {
	n := grid.Spec.Replicas
	return &shardCopies{shard: shard, have: n, fewest: n, most: n, pods: n, wanted: n, takesIn: n, needed: grid.Spec.MinInSync}
}

func raw(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }
