package objects

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func TestAttach(t *testing.T) {
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "rtd", Namespace: "trading"}}
	grid.Spec.Fabric = &api.FabricSpec{Network: api.NetworkReference{Name: "ib"}, Interface: "fabric0", ResourceName: "openshift.io/ib"}
	users := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: users}}}}}
	AttachNetwork(template, grid)
	var asked []NetworkRequest
	if err := json.Unmarshal([]byte(template.Annotations[api.AnnotationNetworks]), &asked); err != nil || len(asked) != 1 || asked[0] != (NetworkRequest{"ib", "trading", "fabric0"}) {
		t.Errorf("asks for %+v, %v", asked, err)
	}
	if r := template.Spec.Containers[0].Resources; len(r.Requests) != 2 || len(r.Limits) != 1 || r.Limits.Name("openshift.io/ib", resource.DecimalSI).Value() != 1 {
		t.Errorf("resources %+v", r)
	}
	if len(users) != 1 {
		t.Error("the resources of the object it was made from have changed")
	}
	if got := NetworkName(grid); got != "trading/ib" {
		t.Errorf("name %s", got)
	}
	grid.Spec.Fabric.Network.Namespace = "networks"
	if got := NetworkName(grid); got != "networks/ib" {
		t.Errorf("name %s", got)
	}
	for _, none := range []*api.OrderGrid{nil, {}} {
		template := &corev1.PodTemplateSpec{}
		if AttachNetwork(template, none); len(template.Annotations) != 0 {
			t.Errorf("%+v", template)
		}
	}
}
