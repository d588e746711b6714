package main

import (
	"context"
	"fmt"
)

const afterQuick = `
  bin/grid-node dev                       a shard of two grid nodes on this machine; prints how to submit a first order
  bin/order-probe list                    the published scenarios
  bin/order-probe run --dev --scenario stac-pair --out out/probe
  make demo                               the same on a real Kubernetes
  docs/architecture.md                    where everything is`

func nextAfterQuick(_ context.Context, d *demo) error {
	d.out.block(afterQuick)
	return nil
}

func nextAfterFull(_ context.Context, d *demo) error {
	d.out.block(fmt.Sprintf(`
  export KUBECONFIG=%s
  export PATH=%s:$PWD/bin:$PATH
  kubectl get og,gp,op,sts,pods -n %s -o wide     the grids, who is primary of what, the probes
  kubectl explain og.spec                           every field, from the cluster
  kubectl get cm -n %s stac-pair-report -o jsonpath='{.data.table\.txt}'
  kubectl ordergrid verify pair -n %s             compare the replicas' logs byte for byte
  curl -s http://%s/metrics | grep ordergrid_       what Prometheus scrapes from a grid pod
  make demo-watch                                   a real Prometheus of this cluster, with the alerts, for your Grafana
  kubectl apply -f docs/examples/three-pairs/       more manifests to try; what has gateways, sinks or links needs make images-load
  make demo-down                                    remove the cluster`,
		d.cluster.kube.Kubeconfig, d.cluster.tools, namespace, namespace, namespace, d.cluster.metricsAddress))
	return nil
}
