#!/usr/bin/env bash
# Randomised replicas under a hostile network: sim.sh SEEDS [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=$1 seed=$2
if [ -n "$seed" ]; then
	ORDERGRID_SIM_SEED=$seed exec go test -count=1 -v -run '^TestRandom' ./grid-node/replica
fi
ORDERGRID_SIM_SEEDS=$seeds exec go test -count=1 -timeout 60m -v -run '^TestRandom' ./grid-node/replica
