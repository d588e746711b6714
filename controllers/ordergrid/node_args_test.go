package ordergrid

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func TestPrefault(t *testing.T) {
	request := func(memory string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	for name, c := range map[string]struct {
		set   func(*api.OrderGridSpec)
		want  string
		start int32 // seconds
	}{
		"by default":               {func(*api.OrderGridSpec) {}, "256Mi", 64},
		"a small grid":             {func(s *api.OrderGridSpec) { s.Memory = resource.MustParse("64Mi") }, "64Mi", 64},
		"asked for":                {func(s *api.OrderGridSpec) { s.Prefault = ptr.To(resource.MustParse("1Gi")) }, "1Gi", 64},
		"asked for, none":          {func(s *api.OrderGridSpec) { s.Prefault = ptr.To(resource.MustParse("0")) }, "0", 60},
		"more memory than request": {func(s *api.OrderGridSpec) { s.Resources = request("512Mi") }, "0", 60},
		"request covers memory":    {func(s *api.OrderGridSpec) { s.Resources = request("1Gi") }, "256Mi", 64},
		"set explicitly": {func(s *api.OrderGridSpec) {
			s.Resources, s.Prefault = request("512Mi"), ptr.To(resource.MustParse("1Gi"))
		}, "1Gi", 64},
		"much": {func(s *api.OrderGridSpec) {
			s.Memory, s.Prefault = resource.MustParse("30Gi"), ptr.To(resource.MustParse("28500Mi"))
		}, "28500Mi", 60 + 4*28},
	} {
		grid := pairGrid()
		c.set(&grid.Spec)
		if got := prefault(grid); got.String() != c.want {
			t.Errorf("%s: prefault %s, want %s", name, got, c.want)
		}
		if got := startSeconds(grid); got != c.start {
			t.Errorf("%s: %d s to start, want %d", name, got, c.start)
		}
	}
}
