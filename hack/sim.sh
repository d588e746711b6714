#!/usr/bin/env bash
# The simulator: sim.sh SEEDS [SEED]. With SEED that one is replayed with its trace.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=$1 seed=$2
for n in "$seeds" "${seed:-0}"; do
	[[ $n =~ ^[0-9]+$ ]] || { printf 'SEEDS=%s SEED=%s: allowed are whole numbers from 0\n' "$seeds" "$seed" >&2; exit 2; }
done
if [ -n "$seed" ]; then
	exec go run ./grid-node/sim/cmd/sim --seed "$seed"
fi
exec go run ./grid-node/sim/cmd/sim --seeds "$seeds"
