#!/usr/bin/env bash
# e2e.sh SUITE: brings the cluster up if need be, loads the images, runs e2e/SUITE against it.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=$1
if [ ! -d "e2e/$suite" ] || ! grep -qs 'go:build e2e' "e2e/$suite"/*_test.go; then
	printf 'SUITE=%s: no such suite; there is: %s\n' "$suite" \
		"$(grep -ls 'go:build e2e' e2e/*/*_test.go | xargs -n1 dirname | sort -u | xargs -n1 basename | tr '\n' ' ')" >&2
	exit 2
fi
go run ./e2e/cluster/cmd/cluster up
if [ "$suite" = fabric ]; then
	# On another cluster than the local one Multus and the network have to be there.
	go run ./e2e/cluster/cmd/cluster fabric || printf 'the suite goes on with the networks of this cluster\n' >&2
fi
go run ./e2e/cluster/cmd/cluster image build --all --out out/images
go run ./e2e/cluster/cmd/cluster load out/images/*.tar
KUBECONFIG=$(go run ./e2e/cluster/cmd/cluster kubeconfig)
PATH=$(go run ./e2e/cluster/cmd/cluster binaries --dir):$PATH
export KUBECONFIG PATH
# The local cluster keeps its API server's audit log beside the kubeconfig: with it, suites count who asked the API server for what.
audit=$(dirname "$KUBECONFIG")/machines/control-plane/log/audit.log
if [ -r "$audit" ]; then export ORDERGRID_AUDIT_LOG=$audit; fi
exec go test -count=1 -v -timeout 30m -tags e2e "./e2e/$suite"
