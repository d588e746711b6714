// Package networks builds requests to Multus for the network of spec.fabric: for grid nodes, and the probes that submit
// orders to them.
package networks

import (
	"encoding/json"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Request is one element of the annotation k8s.v1.cni.cncf.io/networks, as the Network Plumbing Working Group defines it.
type Request struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Interface string `json:"interface"`
}

// Of is the request for a grid's fabric, which must be set.
func Of(grid *api.OrderGrid) Request {
	f := grid.Spec.Fabric
	return Request{Name: f.Network.Name, Namespace: Namespace(grid), Interface: f.Interface}
}

// Annotation requests that network alone.
func (r Request) Annotation() string {
	value, _ := json.Marshal([]Request{r}) // strings only: it cannot fail
	return string(value)
}

// Namespace of the NetworkAttachmentDefinition.
func Namespace(grid *api.OrderGrid) string {
	if ns := grid.Spec.Fabric.Network.Namespace; ns != "" {
		return ns
	}
	return grid.Namespace
}

// Name of the network in the network-status annotation of Multus: namespace/name.
func Name(grid *api.OrderGrid) string {
	return Namespace(grid) + "/" + grid.Spec.Fabric.Network.Name
}
