package apply

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Logged is a client that logs its writes, as Applier does. Writes of status are not logged: their content is in the
// events.
func Logged(c client.Client) client.Client { return logged{c} }

type logged struct{ client.Client }

// Create implements client.Client.
func (l logged) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return l.log(ctx, "created", o, l.Client.Create(ctx, o, options...))
}

// Update implements client.Client.
func (l logged) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return l.log(ctx, "updated", o, l.Client.Update(ctx, o, options...))
}

// Patch implements client.Client.
func (l logged) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return l.log(ctx, "updated", o, l.Client.Patch(ctx, o, patch, options...))
}

// Delete implements client.Client.
func (l logged) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return l.log(ctx, "deleted", o, l.Client.Delete(ctx, o, options...))
}

// log logs a write that the API server accepted.
func (l logged) log(ctx context.Context, outcome string, o client.Object, err error) error {
	if err == nil {
		kind := "unknown"
		if gvk, e := l.GroupVersionKindFor(o); e == nil {
			kind = gvk.Kind
		}
		ctrl.LoggerFrom(ctx).Info("wrote", "outcome", outcome, "kind", kind, "name", o.GetName())
	}
	return err
}
