package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// gatewayRights is an OrderGateway that the grid issues a certificate for, and what its listeners need.
type gatewayRights struct {
	name        string
	permissions []string
}

// gateways returns the names of the OrderGateways that the grid issues a certificate for, in order.
func (r *run) gateways(ctx context.Context) ([]string, error) {
	list, err := r.gatewayRights(ctx)
	var names []string
	for _, g := range list {
		names = append(names, g.name)
	}
	return names, err
}

// gatewayRights returns the OrderGateways of the grid without credentials of their own, in the order of their names.
func (r *run) gatewayRights(ctx context.Context) ([]gatewayRights, error) {
	if r.gatewaysRead != nil {
		return *r.gatewaysRead, nil
	}
	var list api.OrderGatewayList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.grid.Namespace)); err != nil {
		return nil, fmt.Errorf("list OrderGateways: %w", err)
	}
	var found []gatewayRights
	for i := range list.Items {
		if g := &list.Items[i]; g.Spec.GridRef.Name == r.grid.Name && g.Spec.Credentials == nil && g.DeletionTimestamp == nil {
			found = append(found, rightsOf(g))
		}
	}
	slices.SortFunc(found, func(a, b gatewayRights) int { return strings.Compare(a.name, b.name) })
	r.gatewaysRead = &found
	return found, nil
}

func rightsOf(g *api.OrderGateway) gatewayRights {
	rights := gatewayRights{name: g.Name}
	for _, p := range g.Spec.GridPermissions() {
		rights.permissions = append(rights.permissions, string(p))
	}
	return rights
}

// gridOfGateway maps an OrderGateway to its grid.
func gridOfGateway(_ context.Context, o client.Object) []reconcile.Request {
	g, is := o.(*api.OrderGateway)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Spec.GridRef.Name}}}
}
