package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status writes what of after's status is not as in before, unless somebody has written the object since before was read:
// that is a conflict, for which errors.IsConflict of apimachinery holds.
func Status(ctx context.Context, c client.Client, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
