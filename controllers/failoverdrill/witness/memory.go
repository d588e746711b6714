package witness

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Memory is what a grid node has for orders, in bytes.
type Memory struct{ Used, Limit int64 }

// Memory returns the memory of grid nodes for orders, by the names of their pods. Nodes that do not answer are left
// out.
func (o *Observer) Memory(ctx context.Context, pods []corev1.Pod) map[string]Memory {
	var targets []target
	for i := range pods {
		if ip := pods[i].Status.PodIP; ip != "" {
			targets = append(targets, target{pods[i].Name, ip})
		}
	}
	return askAll(ctx, &sight{}, targets, func(ctx context.Context, p target) (Memory, error) {
		r, err := o.scrape(ctx, p)
		if err != nil {
			return Memory{}, err
		}
		return Memory{Used: int64(r.Sum("memory_used_bytes")), Limit: int64(r.Sum("memory_limit_bytes"))}, nil
	})
}
