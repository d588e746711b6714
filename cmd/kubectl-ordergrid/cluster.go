package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

// kubeFlags select cluster and namespace, like kubectl's own flags.
type kubeFlags struct {
	kubeconfig, context, namespace string
}

func (k *kubeFlags) register(f *pflag.FlagSet) {
	f.StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig file; default $KUBECONFIG, then ~/.kube/config")
	f.StringVar(&k.context, "context", "", "context of the kubeconfig; default the current one")
	f.StringVarP(&k.namespace, "namespace", "n", "", "namespace of the grid; default the context's")
}

// cluster reads what the commands need from the API server.
type cluster struct {
	config    *rest.Config
	namespace string
	core, own *rest.RESTClient
	params    runtime.ParameterCodec
}

func (k *kubeFlags) connect() (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: k.context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c := &cluster{config: cfg, namespace: k.namespace}
	if c.namespace == "" {
		if c.namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c.params = runtime.NewParameterCodec(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	if c.core, err = c.client("/api", corev1.SchemeGroupVersion, codecs); err != nil {
		return nil, err
	}
	c.own, err = c.client("/apis", v1alpha1.GroupVersion, codecs)
	return c, err
}

func (c *cluster) client(path string, gv schema.GroupVersion, codecs serializer.CodecFactory) (*rest.RESTClient, error) {
	cfg := rest.CopyConfig(c.config)
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = path, &gv, codecs.WithoutConversion()
	return rest.RESTClientFor(cfg)
}

func (c *cluster) grid(ctx context.Context, name string) (*v1alpha1.OrderGrid, error) {
	var og v1alpha1.OrderGrid
	err := c.own.Get().Namespace(c.namespace).Resource("ordergrids").Name(name).Do(ctx).Into(&og)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("ordergrid %s/%s does not exist; kubectl get og -A lists them: %w", c.namespace, name, err)
	}
	return &og, err
}

// partitions of a grid, by shard and index.
func (c *cluster) partitions(ctx context.Context, grid string) ([]v1alpha1.GridPartition, error) {
	all, err := c.allPartitions(ctx)
	return slices.DeleteFunc(all, func(p v1alpha1.GridPartition) bool { return p.Spec.GridRef.Name != grid }), err
}

// allPartitions of the namespace, by grid and number.
func (c *cluster) allPartitions(ctx context.Context) ([]v1alpha1.GridPartition, error) {
	var list v1alpha1.GridPartitionList
	if err := c.own.Get().Namespace(c.namespace).Resource("gridpartitions").Do(ctx).Into(&list); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.GridPartition) int {
		return cmp.Or(cmp.Compare(a.Spec.GridRef.Name, b.Spec.GridRef.Name), cmp.Compare(a.Spec.Partition, b.Spec.Partition))
	})
	return list.Items, nil
}

// pods of a grid that have an address.
func (c *cluster) pods(ctx context.Context, grid string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.core.Get().Namespace(c.namespace).Resource("pods").
		VersionedParams(&metav1.ListOptions{LabelSelector: v1alpha1.LabelGrid + "=" + grid + ",app.kubernetes.io/component=grid-node"}, c.params).
		Do(ctx).Into(&list)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Status.PodIP == "" || p.Status.Phase != corev1.PodRunning }), nil
}
