#!/usr/bin/env bash
# Runs every fuzz target of the module for the time given, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:-60s}
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | awk '{print $2}' | while read -r target; do
		printf '\n== %s %s for %s\n' "$dir" "$target" "$each"
		go test -run '^$' -fuzz "^${target}\$" -fuzztime "$each" "$dir"
	done
done
