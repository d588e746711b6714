#!/usr/bin/env bash
# golangci-lint (built from its pinned module, kept in the Go build cache), the API conventions check, and known
# vulnerabilities.
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./hack/apilint ./api/v1alpha1
hack/vuln.sh ./...
exec go run -modfile=hack/tools/go.mod github.com/golangci/golangci-lint/v2/cmd/golangci-lint run "$@"
