package v1alpha1

import "strconv"

// Ports of a grid node.
const (
	// DataPort carries the wire protocol: clients, peers and administration share it.
	DataPort = 7400
	// HTTPPort serves /metrics, /healthz, /readyz and /status.
	HTTPPort = 9400
)

// MaxReplicas is the largest spec.replicas of an OrderGrid.
const MaxReplicas = 3

// SinkHTTPPort serves /metrics, /healthz, /readyz and /status of the pod of a sink.
const SinkHTTPPort = 9402

// LinkHTTPPort serves /metrics, /healthz, /readyz and /status of the pod of a GridLink.
const LinkHTTPPort = 9403

// GatewayHTTPPort serves /metrics, /healthz, /readyz and /status of the pods of an OrderGateway.
const GatewayHTTPPort = 9404

// RecorderPort serves /metrics and the interface of the recorder of a FailoverDrill.
const RecorderPort = 9401

// Labels that the operator sets on every object it creates for a grid or a probe.
const (
	LabelGrid  = "ordergrid.dev/grid"
	LabelShard = "ordergrid.dev/shard"
	LabelProbe = "ordergrid.dev/probe"
	// LabelSeries is on the runs of an OrderProbe with a schedule: its name.
	LabelSeries = "ordergrid.dev/series"
	LabelSink   = "ordergrid.dev/sink"
	LabelLink   = "ordergrid.dev/link"
	// LabelGateway is the name of an OrderGateway.
	LabelGateway = "ordergrid.dev/gateway"
)

// Labels and finalizer of everything that belongs to a FailoverDrill, its faults included.
const (
	LabelDrill    = "ordergrid.dev/drill"
	LabelDrillUID = "ordergrid.dev/drill-uid"
	// FinalizerFaults keeps a FailoverDrill until none of its faults is in place.
	FinalizerFaults = "ordergrid.dev/faults"
)

// Annotations of a GridPartition that request an operation. docs/spec/gridpartition.md describes how they are handled.
const (
	// AnnotationAcceptDataLoss gives up what only the in-sync members of an epoch hold; its value is that epoch.
	AnnotationAcceptDataLoss = "ordergrid.dev/accept-data-loss"
	// AnnotationReassert selects the authoritative configuration; its value is that configuration's change id.
	AnnotationReassert = "ordergrid.dev/reassert-configuration"
	// AnnotationPreferredPod selects the pod of the shard that should be primary; without it the operator spreads them.
	AnnotationPreferredPod = "ordergrid.dev/preferred-pod"
)

// AnnotationRecord of a GridPartition is the UID that it had when the operator first saw it. With another UID it is a copy,
// recreated by hand or by a backup tool: pods do not claim it, whatever its status. AnnotationRecordCopy is the value
// of one that has lost its status, and the annotation, while the grid's status remembers that it was claimed.
const (
	AnnotationRecord     = "ordergrid.dev/record"
	AnnotationRecordCopy = "copy"
)

// Annotations of an OrderGrid that request new certificates. Every new value is a new request.
const (
	// AnnotationRenewCertificates renews all certificates of the grid.
	AnnotationRenewCertificates = "ordergrid.dev/renew-certificates"
	// AnnotationEndPlainClients refuses clients without TLS where spec.security requires TLS and some are still connected.
	AnnotationEndPlainClients = "ordergrid.dev/end-plain-clients"
	// AnnotationRenewAuthority replaces the grid's authority, which takes twice spec.security.tls.authority.overlap.
	AnnotationRenewAuthority = "ordergrid.dev/renew-authority"
)

// AnnotationRebalanceNow on an OrderGrid lets partitions begin to move outside spec.rebalance.window, until every one is
// where it belongs. Its value is the time of the request in RFC 3339; status.lastHandledRebalance is the last one
// that was carried out, and another value is a new request.
const AnnotationRebalanceNow = "ordergrid.dev/rebalance-now"

// ShardName names everything that belongs to one shard of a grid: its StatefulSet, headless Service,
// PodDisruptionBudget, ServiceAccount, Role and RoleBinding.
func ShardName(grid string, shard int32) string {
	return grid + "-s" + strconv.Itoa(int(shard))
}

// PodName names the pod of a shard with the given StatefulSet ordinal.
func PodName(grid string, shard, ordinal int32) string {
	return ShardName(grid, shard) + "-" + strconv.Itoa(int(ordinal))
}

// PartitionName names the GridPartition object of a partition.
func PartitionName(grid string, partition int32) string {
	return grid + "-p" + strconv.Itoa(int(partition))
}

// ClientServiceName names the Service behind which any ready grid node answers a client's first request.
func ClientServiceName(grid string) string {
	return grid + "-client"
}

// PeerKeySecret names the Secret with the key with which the grid's nodes authenticate each other. The operator creates it if it is
// missing. No grid has a dot in its name, so the name is unique.
func PeerKeySecret(grid string) string { return grid + ".peer-key" }

// PeerKeyFile is the key of the Secret, and the file in a pod.
const PeerKeyFile = "peer.key"

// TLSAuthoritySecret names the Secret with the authority that the operator keeps for a grid with spec.security.tls. No grid
// has a dot in its name, so the name is unique.
func TLSAuthoritySecret(grid string) string { return grid + ".tls-ca" }

// TLSNodesSecret names the Secret with the certificate of the grid nodes.
func TLSNodesSecret(grid string) string { return grid + ".tls-nodes" }

// TLSToolsSecret names the Secret with the certificate of OrderProbes and FailoverDrills.
func TLSToolsSecret(grid string) string { return grid + ".tls-tools" }

// TLSClientSecret names the Secret with the certificate of a client.
func TLSClientSecret(grid, client string) string { return grid + ".tls-client-" + client }

// TLSSinkSecret names the Secret with the certificate of a sink that the operator runs a pod for.
func TLSSinkSecret(grid, sink string) string { return grid + ".tls-sink-" + sink }

// SinkUser is the common name in that certificate. No name of spec.security.tls.clients has a colon.
func SinkUser(sink string) string { return "ordergrid-sink:" + sink }

// SinkName names the objects of such a sink: its Deployment, ServiceAccount and NetworkPolicy.
func SinkName(grid, sink string) string { return grid + "-sink-" + sink }

// LinkName names the objects of a GridLink: its Deployment, ServiceAccount and NetworkPolicy.
func LinkName(link string) string { return link + "-link" }

// GatewayName names the objects of an OrderGateway: its Deployment, Service, PodDisruptionBudget, ServiceAccount and
// NetworkPolicy.
func GatewayName(gateway string) string { return gateway + "-gateway" }

// GatewayPeersName names the headless Service by which the pods of an OrderGateway find each other.
func GatewayPeersName(gateway string) string { return gateway + "-gateway-peers" }

// TLSGatewaySecret names the Secret with the certificate of an OrderGateway for its grid.
func TLSGatewaySecret(grid, gateway string) string { return grid + ".tls-gateway-" + gateway }

// GatewayUser is the common name in that certificate. No name of spec.security.tls.clients has a colon.
func GatewayUser(gateway string) string { return "ordergrid-gateway:" + gateway }

// AuthorizationConfigMap names the ConfigMap with the authorization rules of the grid nodes.
func AuthorizationConfigMap(grid string) string { return grid + ".authorization" }

// TLSName is the DNS name in the certificates of all nodes of a grid, independent of their addresses.
func TLSName(grid, namespace string) string {
	return ClientServiceName(grid) + "." + namespace + ".svc"
}

// RecorderName names the Job and the Secret with the token of a FailoverDrill's recorder.
func RecorderName(drill string) string { return drill + "-recorder" }

// LimitsConfigMap names the ConfigMap with the limits that the nodes of a grid put in force.
func LimitsConfigMap(grid string) string { return grid + ".limits" }

// RegionsConfigMap names the ConfigMap with the regions that the nodes of a grid put in their logs.
func RegionsConfigMap(grid string) string { return grid + ".regions" }

// InstrumentsConfigMap names the ConfigMap with the instruments that the nodes of a grid trade.
func InstrumentsConfigMap(grid string) string { return grid + ".instruments" }

// FunctionsConfigMap names the ConfigMap with the functions that the pods of a grid are given. No grid has a dot in its name.
func FunctionsConfigMap(grid string) string { return grid + ".functions" }

// FunctionConfigMap names the ConfigMap with a copy of the module and the configuration of a function of a grid. files is a
// digest of both.
func FunctionConfigMap(grid, files string) string { return grid + ".function." + files }

// FunctionModuleConfigMap names the ConfigMap with the module that the operator has fetched for a GridFunction: the first digits
// of its digest are in it. No GridFunction has a dot in its name.
func FunctionModuleConfigMap(function, sha256 string) string {
	return function + ".module." + sha256[:min(len(sha256), 20)]
}

// CertificateName names the ConfigMap with the certificate of a FailoverDrill.
func CertificateName(drill string) string { return drill + "-certificate" }
