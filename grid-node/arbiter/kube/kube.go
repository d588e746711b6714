// Package kube is the arbiter on a Kubernetes API server: a partition's record is
// the status of its GridPartition object. It is the only package of the node that
// imports Kubernetes client code, and only the REST part of it: a typed clientset
// would triple what the node has to compile.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// Arbiter reads and changes GridPartitions of one namespace.
type Arbiter struct {
	client    *rest.RESTClient
	params    runtime.ParameterCodec
	namespace string
	uids      sync.Map // object name -> types.UID, for events
}

var _ arbiter.Arbiter = (*Arbiter)(nil)

const resourceName = "gridpartitions"

// InCluster is the configuration a pod gets from its service account.
func InCluster() (*rest.Config, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("--arbiter=kube: %w; it works inside a pod with a service account", err)
	}
	return cfg, nil
}

// New returns the arbiter of a namespace.
func New(cfg *rest.Config, namespace string) (*Arbiter, error) {
	if namespace == "" {
		return nil, errors.New(`--namespace: value "", allowed: the namespace of the grid; default $POD_NAMESPACE`)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(cfg)
	gv := v1alpha1.GroupVersion
	c.APIPath, c.GroupVersion = "/apis", &gv
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = "grid-node"
	// A node sends requests at membership changes only, then at once: no client-side rate limit.
	c.QPS = -1
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("--arbiter=kube: %w", err)
	}
	return &Arbiter{client: client, params: runtime.NewParameterCodec(scheme), namespace: namespace}, nil
}

// Get implements arbiter.Arbiter. Without a resource version the API server answers from
// an etcd quorum, not from its cache.
func (a *Arbiter) Get(ctx context.Context, name string) (arbiter.Record, error) {
	var gp v1alpha1.GridPartition
	err := a.client.Get().Namespace(a.namespace).Resource(resourceName).Name(name).Do(ctx).Into(&gp)
	if apierrors.IsNotFound(err) {
		return arbiter.Record{}, fmt.Errorf("%w: gridpartition %s/%s; the operator creates it", arbiter.ErrNotFound, a.namespace, name)
	}
	if err != nil {
		return arbiter.Record{}, fmt.Errorf("read gridpartition %s/%s: %w", a.namespace, name, err)
	}
	return a.seen(&gp), nil
}

// uid is the object's UID if it was read before.
func (a *Arbiter) uid(name string) types.UID {
	u, _ := a.uids.Load(name)
	uid, _ := u.(types.UID)
	return uid
}

// CompareAndSwap implements arbiter.Arbiter: one PUT on the status subresource with the
// resource version that was read. It is never retried here: only the proposer can decide
// that.
func (a *Arbiter) CompareAndSwap(ctx context.Context, r arbiter.Record) (arbiter.Record, error) {
	gp := toObject(r, a.namespace)
	var now v1alpha1.GridPartition
	err := a.client.Put().Namespace(a.namespace).Resource(resourceName).Name(r.Name).SubResource("status").
		MaxRetries(0).Body(gp).Do(ctx).Into(&now)
	if err != nil {
		return arbiter.Record{}, classify(err)
	}
	return FromObject(&now), nil
}

// classify returns what a failed PUT means for the record. Only the API server's own
// response to this request is conclusive.
func classify(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("%w: %w", arbiter.ErrUnknown, err) // no answer: connection lost, timed out
	}
	switch code := status.Status().Code; {
	case code == http.StatusConflict:
		return fmt.Errorf("%w: %s", arbiter.ErrConflict, status.Status().Message)
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: %s", arbiter.ErrNotFound, status.Status().Message)
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		// Both are also sent after a request has started.
		return fmt.Errorf("%w: %s", arbiter.ErrUnknown, status.Status().Message)
	case code >= 400 && code < 500:
		return arbiter.Refused("%s", status.Status().Message)
	}
	return fmt.Errorf("%w: %s", arbiter.ErrUnknown, status.Status().Message)
}
