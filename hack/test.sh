#!/usr/bin/env bash
# Everything that gates a change. Exit 0 only when all of it passed.
set -euo pipefail
cd "$(dirname "$0")/.."
pkgs=("${@:-./...}")

step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

step "real Kubernetes API server for the CRD, controller and chart tests (built once, then cached)"
if [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
	go run ./e2e/cluster/cmd/cluster binaries
	KUBEBUILDER_ASSETS=$(go run ./e2e/cluster/cmd/cluster binaries --dir)
	export KUBEBUILDER_ASSETS
fi
export ORDERGRID_REQUIRE_ENVTEST=1

step "go vet"
go vet "${pkgs[@]}"

step "generated files"
go run ./hack/generate --verify

step "API conventions"
go run ./hack/apilint ./api/v1alpha1

step "tests with the race detector"
go test -race -timeout 20m "${pkgs[@]}"

# What one replica can check of its whole log costs too much for production.
step "protocol core and simulator with the costly invariants"
go test -count=1 -tags invariants ./grid-node/replica ./grid-node/sim

# The race detector allocates, so what must not allocate is asserted without it.
step "allocation and memory bounds, without the race detector"
go test -run 'Alloc|Memory' -count=1 ./grid-node/... ./client/... ./probe/...

step "passed"
