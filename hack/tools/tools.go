//go:build tools

// Package tools pins the programs that only development needs, in a module of its own so that they never weigh on the product's.
package tools

import (
	_ "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
	_ "golang.org/x/vuln/cmd/govulncheck"
)
