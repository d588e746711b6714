#!/usr/bin/env bash
# golangci-lint (built from its pinned module, kept in the Go build cache) and the API conventions check.
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./hack/apilint ./api/v1alpha1
exec go run -modfile=hack/tools/go.mod github.com/golangci/golangci-lint/v2/cmd/golangci-lint run "$@"
