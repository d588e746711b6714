package objects

import (
	"encoding/json"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// NetworkRequest is one element of the annotation k8s.v1.cni.cncf.io/networks, as the Network Plumbing Working Group defines it.
type NetworkRequest struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Interface string `json:"interface"`
}

// NetworkOf is the request for a grid's fabric, which must be set.
func NetworkOf(grid *api.OrderGrid) NetworkRequest {
	f := grid.Spec.Fabric
	return NetworkRequest{Name: f.Network.Name, Namespace: NetworkNamespace(grid), Interface: f.Interface}
}

// Annotation requests that network alone.
func (r NetworkRequest) Annotation() string {
	value, _ := json.Marshal([]NetworkRequest{r}) // strings only: it cannot fail
	return string(value)
}

// NetworkNamespace of the NetworkAttachmentDefinition.
func NetworkNamespace(grid *api.OrderGrid) string {
	if ns := grid.Spec.Fabric.Network.Namespace; ns != "" {
		return ns
	}
	return grid.Namespace
}

// NetworkName of the network in the network-status annotation of Multus: namespace/name.
func NetworkName(grid *api.OrderGrid) string {
	return NetworkNamespace(grid) + "/" + grid.Spec.Fabric.Network.Name
}
