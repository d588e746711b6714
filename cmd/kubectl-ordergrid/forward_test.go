package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

// A partition's record has the address that clients use, which may be on a second network of the pod.
func TestHasAddress(t *testing.T) {
	const attached = `[{"name":"a/fabric","interface":"fabric0","ips":["192.168.9.1"]}]`
	for _, c := range []struct {
		status, host string
		want         bool
	}{
		{"", "10.0.0.1", true}, {"", "10.0.0.2", false}, {"", "", false}, {"nonsense", "10.0.0.2", false},
		{attached, "192.168.9.1", true}, {attached, "192.168.9.2", false}, {attached, "fabric", false}, {attached, "10.0.0.1", true},
	} {
		pod := &corev1.Pod{}
		pod.Status.PodIP = "10.0.0.1"
		pod.Annotations = map[string]string{v1alpha1.AnnotationNetworkStatus: c.status}
		if got := hasAddress(pod, c.host); got != c.want {
			t.Errorf("at %q with %s: %v", c.host, c.status, got)
		}
	}
}
