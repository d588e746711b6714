// Package runbook does with a grid's records what the runbooks ask of an administrator, for
// unattended suites.
package runbook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// Annotate is `kubectl annotate --overwrite gridpartition`.
func Annotate(ctx context.Context, c kube.Client, record *api.GridPartition, key, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	return c.Patch(ctx, record, kube.RawPatch(types.MergePatchType, patch))
}

// AcceptLoss gives up what only the members of the records' epochs held; see docs/runbooks/DataLossSuspected.md.
func AcceptLoss(ctx context.Context, c kube.Client, records ...*api.GridPartition) error {
	var all []error
	for _, r := range records {
		all = append(all, Annotate(ctx, c, r, api.AnnotationAcceptDataLoss, fmt.Sprint(r.Status.Epoch)))
	}
	return errors.Join(all...)
}

// Reassert confirms the configurations that the nodes go by, newer than the records; nodes are the addresses of their HTTP
// ports. See docs/runbooks/ConfigurationRegressed.md.
func Reassert(ctx context.Context, c kube.Client, nodes []string, records ...*api.GridPartition) error {
	asker := nodestatus.NewClient(10*time.Second, nil)
	var answers []*nodestatus.Node
	for _, address := range nodes {
		n, err := nodestatus.Get(ctx, asker, address)
		if err != nil {
			return err
		}
		answers = append(answers, n)
	}
	for _, r := range records {
		var best nodestatus.Partition
		for _, n := range answers {
			if p := n.Find(r.Name); p != nil && p.Epoch > best.Epoch {
				best = *p
			}
		}
		if best.ChangeID == "" {
			return fmt.Errorf("no node of %v has a part in %s", nodes, r.Name)
		}
		if err := Annotate(ctx, c, r, api.AnnotationReassert, best.ChangeID); err != nil {
			return err
		}
	}
	return nil
}
