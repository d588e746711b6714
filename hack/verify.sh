#!/usr/bin/env bash
# Fails when something that is derived differs from what it is derived from.
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./hack/generate --verify
go run ./dashboards/cmd/generate --verify
go run ./hack/vectors --verify
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'not formatted (run gofmt -w):\n%s\n' "$unformatted" >&2
	exit 1
fi
go mod tidy -diff
go mod verify
