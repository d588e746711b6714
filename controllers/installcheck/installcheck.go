// Package installcheck says whether an installation of OrderGrid works: `helm test` runs it, in a pod, as `operator check`.
package installcheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Lease is the one by which one of several operators works.
const Lease = "operator.ordergrid.dev"

// nobody holds a Lease that was given back.
const nobody = "nobody"

// pause between two tries of what is not so yet.
const pause = time.Second

// Options of a check.
type Options struct {
	// Namespace the operator runs in.
	Namespace string
	// URL of the operator's metrics, by its Service; empty leaves that out.
	URL string
	// Out is told of each thing that is as it should be.
	Out io.Writer
}

// resources that this version of the operator works with.
var resources = []string{"ordergrids", "ordergrids/status", "gridpartitions", "gridpartitions/status", "orderprobes", "orderprobes/status", "failoverdrills", "failoverdrills/status"}

// Run looks whether the API server serves OrderGrid's kinds, whether an operator leads and is alive, and whether its
// Service answers. What is not so yet is tried again until ctx ends; the error then says what is missing. It writes
// nothing to the cluster, and needs the right to read the Lease.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	check := checker{o, clients}
	for _, step := range []func(context.Context) (string, error){check.kinds, check.leader, check.service} {
		said, err := until(ctx, step)
		if err != nil {
			return err
		}
		if said != "" {
			_, _ = fmt.Fprintln(o.Out, "ok:", said)
		}
	}
	return nil
}

// until tries until there is no error or no time. The last error that is about more than the time is the one that helps.
func until(ctx context.Context, try func(context.Context) (string, error)) (string, error) {
	var last error
	for {
		said, err := try(ctx)
		if err == nil {
			return said, nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return "", last
		case <-time.After(pause):
		}
	}
}

type checker struct {
	Options
	clients kubernetes.Interface
}

func (c checker) kinds(context.Context) (string, error) {
	list, err := c.clients.Discovery().ServerResourcesForGroupVersion(api.GroupVersion.String())
	if err != nil {
		return "", fmt.Errorf("the API server does not serve %s: %w; install the CRDs, with crds.install=true or by hand", api.GroupVersion, err)
	}
	var missing []string
	for _, name := range resources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("the API server's %s has no %s: its CRDs are of another version; upgrade them, with crds.install=true or by hand", api.GroupVersion, strings.Join(missing, ", "))
	}
	return fmt.Sprintf("the API server serves all kinds of %s", api.GroupVersion), nil
}

// leader sees the Lease renewed, rather than that it was renewed a short time ago: clocks of machines differ.
func (c checker) leader(ctx context.Context) (string, error) {
	first, err := c.lease(ctx)
	if err != nil {
		return "", err
	}
	for {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("lease %s/%s is held by %s and not renewed: no operator works; look at the logs of its pods", c.Namespace, Lease, holder(first))
		case <-time.After(pause):
		}
		now, err := c.lease(ctx)
		if err == nil && holder(now) != nobody && holder(now) == holder(first) && !now.Spec.RenewTime.Equal(first.Spec.RenewTime) {
			return fmt.Sprintf("operator %s works, and has just renewed lease %s/%s", holder(now), c.Namespace, Lease), nil
		}
		if err == nil {
			first = now
		}
	}
}

func (c checker) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := c.clients.CoordinationV1().Leases(c.Namespace).Get(ctx, Lease, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w; no operator has ever worked in this namespace, or this check may not read it", c.Namespace, Lease, err)
	}
	return lease, nil
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return nobody
	}
	return *lease.Spec.HolderIdentity
}

// service answers only while a pod behind it is ready.
func (c checker) service(ctx context.Context) (string, error) {
	if c.URL == "" {
		return "", nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return "", err
	}
	// Nothing is told to the server, and nothing that it says is believed but that it is there.
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("the operator's Service does not answer: %w; no pod behind it is ready, or a NetworkPolicy is in the way", err)
	}
	err = response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return c.URL + " answers, and asks who asks", err
	}
	if response.StatusCode != http.StatusOK {
		return "", errors.Join(fmt.Errorf("%s answers %s; want 200", c.URL, response.Status), err)
	}
	return c.URL + " answers", err
}
