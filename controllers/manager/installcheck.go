package manager

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

// Lease of the operator's leader election.
const Lease = "operator.ordergrid.dev"

// released is the holder of a Lease that was given back.
const released = "no operator"

// checkPause between two tries.
const checkPause = time.Second

// CheckOptions are of a check of an installation.
type CheckOptions struct {
	// Namespace the operator runs in.
	Namespace string
	// URL of the operator's metrics Service; empty skips that check.
	URL string
	// Out gets a line per passed check.
	Out io.Writer
}

// resources that this version of the operator works with.
var resources = []string{"ordergrids", "ordergrids/status", "gridpartitions", "gridpartitions/status", "orderprobes", "orderprobes/status", "failoverdrills", "failoverdrills/status", "gridlinks", "gridlinks/status", "ordergateways", "ordergateways/status", "gridfunctions", "gridfunctions/status", "gridregions", "gridregions/status"}

// Check checks an installation of OrderGrid: `helm test` runs it, in a pod, as `operator check`. The API server serves
// OrderGrid's kinds, an operator leads and is alive, and its Service answers. Failed checks are retried until ctx ends; the error then has what is missing. It writes nothing to the
// cluster, and needs permission to read the Lease.
func Check(ctx context.Context, cfg *rest.Config, o CheckOptions) error {
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	check := checker{o, clients}
	for _, step := range []func(context.Context) (string, error){check.kinds, check.leader, check.service} {
		result, err := until(ctx, step)
		if err != nil {
			return err
		}
		if result != "" {
			_, _ = fmt.Fprintln(o.Out, "ok:", result)
		}
	}
	return nil
}

// until retries until there is no error or no time. Of several errors the last one that is not a timeout is returned.
func until(ctx context.Context, try func(context.Context) (string, error)) (string, error) {
	var last error
	for {
		result, err := try(ctx)
		if err == nil {
			return result, nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return "", last
		case <-time.After(checkPause):
		}
	}
}

type checker struct {
	CheckOptions
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

// leader waits for a renewal of the Lease, rather than compare its time: clocks of machines differ.
func (c checker) leader(ctx context.Context) (string, error) {
	first, err := c.lease(ctx)
	if err != nil {
		return "", err
	}
	for {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("lease %s/%s is held by %s and not renewed: no operator is running; check the logs of its pods", c.Namespace, Lease, holder(first))
		case <-time.After(checkPause):
		}
		now, err := c.lease(ctx)
		if err == nil && holder(now) != released && holder(now) == holder(first) && !now.Spec.RenewTime.Equal(first.Spec.RenewTime) {
			return fmt.Sprintf("operator %s is running, and has just renewed lease %s/%s", holder(now), c.Namespace, Lease), nil
		}
		if err == nil {
			first = now
		}
	}
}

func (c checker) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := c.clients.CoordinationV1().Leases(c.Namespace).Get(ctx, Lease, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w; no operator has ever run in this namespace, or this check may not read it", c.Namespace, Lease, err)
	}
	return lease, nil
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return released
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
	// Nothing is sent to the server, and only its status code is used.
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("the operator's Service does not answer: %w; no pod behind it is ready, or a NetworkPolicy is in the way", err)
	}
	err = response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return c.URL + " answers, and requires authentication", err
	}
	if response.StatusCode != http.StatusOK {
		return "", errors.Join(fmt.Errorf("%s answers %s; want 200", c.URL, response.Status), err)
	}
	return c.URL + " answers", err
}
