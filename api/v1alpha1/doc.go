// Package v1alpha1 is the Kubernetes API of OrderGrid: the kinds OrderGrid, GridPartition and OrderProbe
// of the group ordergrid.dev.
//
// It imports apimachinery and k8s.io/api/core/v1 only, so that a client or a grid node that uses these types
// does not pull in the operator's libraries.
//
// +kubebuilder:object:generate=true
// +groupName=ordergrid.dev
package v1alpha1
