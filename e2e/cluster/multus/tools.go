//go:build tools

// Package binaries pins the Multus that the second network of the local cluster
// is made by. It is a module of its own, so that none of its dependencies becomes
// one of the product's.
package binaries

import _ "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"
