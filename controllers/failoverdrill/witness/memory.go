package witness

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Memory is what a grid node has for orders, in bytes.
type Memory struct{ Used, Limit int64 }

// Memory asks grid nodes what they have for orders, by the names of their pods. Who does not answer is left out.
func (o *Observer) Memory(ctx context.Context, pods []corev1.Pod) map[string]Memory {
	var people []person
	for i := range pods {
		if ip := pods[i].Status.PodIP; ip != "" {
			people = append(people, person{pods[i].Name, ip})
		}
	}
	return askAll(ctx, &sight{}, people, func(ctx context.Context, p person) (Memory, error) {
		r, err := o.scrape(ctx, p)
		if err != nil {
			return Memory{}, err
		}
		return Memory{Used: int64(r.Sum("memory_used_bytes")), Limit: int64(r.Sum("memory_limit_bytes"))}, nil
	})
}
