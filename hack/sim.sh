#!/usr/bin/env bash
# Randomised replicas under a hostile network: sim.sh SEEDS [SEED]. With SEED that one is replayed with its trace.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=$1 seed=$2
for n in "$seeds" "${seed:-0}"; do
	[[ $n =~ ^[0-9]+$ ]] || { printf 'SEEDS=%s SEED=%s: allowed are whole numbers from 0\n' "$seeds" "$seed" >&2; exit 2; }
done
if [ -n "$seed" ]; then
	SEEDS=$((seed + 1)) TRACE=1 exec go test -count=1 -v -run "^TestRandom\$/^replicas=[23]\$/^seed=${seed}\$" ./grid-node/replica
fi
SEEDS=$seeds exec go test -count=1 -timeout 60m -run '^TestRandom$' ./grid-node/replica
