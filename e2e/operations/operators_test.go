//go:build e2e

package operations

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/kube"
)

// reconciled matches what an operator that leads says of the OrderGrids it has been through.
var reconciled = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="ordergrid",result="(success|requeue|requeue_after)"\} [1-9]`)

// operators are the names of the operator's pods.
func (f *field) operators(ctx context.Context) []string {
	f.Helper()
	return strings.Fields(f.must(f.kube.Run(ctx, "get", "pods", "-n", kube.System, "-l", "app.kubernetes.io/component=operator",
		"-o", "name")))
}

// takenOver waits until an operator that is not one of before has been through the grid. `helm upgrade --wait` returns
// earlier: when the new pods are ready, one of which leads once the Lease has come to it.
func (f *field) takenOver(ctx context.Context, before []string) {
	f.Helper()
	old := map[string]bool{}
	for _, name := range before {
		old[name] = true
	}
	f.eventually(ctx, "a new operator has been through the grid", patience, func(ctx context.Context) error {
		now := f.operators(ctx)
		for _, name := range now {
			if old[name] {
				continue
			}
			page, err := f.kube.Run(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", kube.System, strings.TrimPrefix(name, "pod/")))
			if err == nil && reconciled.MatchString(page) {
				return nil
			}
		}
		return fmt.Errorf("pods of the operator: %v, before: %v", now, before)
	})
}
