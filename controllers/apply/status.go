package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status writes the differences between before's and after's status, unless the object was written since before was
// read: that is a conflict, for which errors.IsConflict of apimachinery is true.
func Status(ctx context.Context, c client.Client, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
