package ordergrid

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// gateways returns the names of the OrderGateways that the grid issues a certificate for, in order: those of the grid
// without credentials of their own.
func (r *run) gateways(ctx context.Context) ([]string, error) {
	if r.gatewaysRead != nil {
		return *r.gatewaysRead, nil
	}
	var list api.OrderGatewayList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.grid.Namespace)); err != nil {
		return nil, fmt.Errorf("list OrderGateways: %w", err)
	}
	var names []string
	for i := range list.Items {
		g := &list.Items[i]
		if g.Spec.GridRef.Name == r.grid.Name && g.Spec.Credentials == nil && g.DeletionTimestamp == nil {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	r.gatewaysRead = &names
	return names, nil
}

// gridOfGateway maps an OrderGateway to its grid.
func gridOfGateway(_ context.Context, o client.Object) []reconcile.Request {
	g, is := o.(*api.OrderGateway)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Spec.GridRef.Name}}}
}
