#!/usr/bin/env bash
# The simulator: sim.sh SEEDS FROM SEED [WORLD]. With SEED that one is replayed with its trace. With FROM the seeds begin there ("new":
# where no run was). Without either half of the seeds are the first there are, and the others are new each time.
# WORLD is that of --world: seeds of one kind of world, or of the world match or journal.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=$1 from=$2 seed=$3 world=()
[ -z "${4:-}" ] || world=(--world "$4")
for n in "$seeds" "${seed:-0}"; do
	[[ $n =~ ^[0-9]+$ ]] || { printf 'SEEDS=%s SEED=%s: allowed are whole numbers from 0\n' "$seeds" "$seed" >&2; exit 2; }
done
[[ -z $from || $from == new || $from =~ ^[0-9]+$ ]] || { printf 'FROM=%s: allowed are whole numbers from 0, and new\n' "$from" >&2; exit 2; }
if [ -n "$seed" ]; then
	exec go run ./grid-node/sim/cmd/sim --seed "$seed" "${world[@]}"
fi
if [ -n "$from" ]; then
	exec go run ./grid-node/sim/cmd/sim --seeds "$seeds" --from "$from" "${world[@]}"
fi
exec go run ./grid-node/sim/cmd/sim --seeds "$((seeds - seeds / 2))" --fresh "$((seeds / 2))" "${world[@]}"
