// Package scale measures the operator beside thousands of pods. What is real and what is played:
//
//   - Real: etcd, kube-apiserver, kube-controller-manager (the StatefulSet controller makes the pods), kube-scheduler (each
//     pod's anti-affinity is looked at), the chart's CRDs and roles, and the operator, a process with the arguments of the
//     chart's Deployment and the token of the chart's ServiceAccount, which the API server limits as it limits any pod.
//   - By KWOK (sigs.k8s.io/kwok): the kubelets. Nodes report themselves and renew Leases, pods start, get an address and go.
//     No container runs.
//   - Played by this package: what grid nodes do towards the API server and the operator. Each pod watches the records of
//     its shard by name and claims and changes them by compare-and-swap, with the grid node's own code (arbiter/kube), and
//     answers /status on its own loopback address. There is no data plane: no order flows, nothing is replicated, and no
//     pod fails. The Ready condition, which a kubelet would write after the probe, is written here.
//   - Left out: the controllers of Endpoints and EndpointSlices, because the API server refuses loopback addresses in them.
//
// All of it shares one machine. docs/scale.md has the figures.
package scale
