#!/usr/bin/env bash
# robustness.sh TARGET SCENARIO REPEAT RATE: plays scenarios; on a cluster, brings it up and loads the images first.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$1" = cluster ]; then
	go run ./e2e/cluster/cmd/cluster up
	go run ./e2e/cluster/cmd/cluster image build --all --out out/images
	go run ./e2e/cluster/cmd/cluster load out/images/*.tar
fi
# Not `go run`, which would not pass the exit code on.
go build -trimpath -o out/robustness/bin/robustness ./e2e/robustness/cmd/robustness
exec out/robustness/bin/robustness run --target "$1" --scenario "$2" --repeat "$3" --rate "$4"
