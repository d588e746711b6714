package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // deprecated, but required by portforward
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/fabric"
)

// forwarder dials the nodes of a grid through the API server, as kubectl port-forward does: pod addresses are not
// reachable outside the cluster.
type forwarder struct {
	cluster *cluster
	grid    string
	stop    chan struct{}

	mu      sync.Mutex
	tunnels map[string]string // "podIP:port" -> "127.0.0.1:local port"
}

func newForwarder(c *cluster, grid string) *forwarder {
	return &forwarder{cluster: c, grid: grid, stop: make(chan struct{}), tunnels: map[string]string{}}
}

// Dial is client.Config.Dial.
func (f *forwarder) Dial(ctx context.Context, address string) (net.Conn, error) {
	local, err := f.tunnel(ctx, address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", local)
}

// tunnel returns the local end of the tunnel to a pod, opening it first if
// needed. One at a time: a grid has few pods.
func (f *forwarder) tunnel(ctx context.Context, address string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if local := f.tunnels[address]; local != "" {
		return local, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	pods, err := f.cluster.pods(ctx, f.grid)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if hasAddress(&pods[i], host) {
			local, err := f.open(ctx, pods[i].Name, port)
			if err != nil {
				return "", fmt.Errorf("port-forward to pod %s: %w", pods[i].Name, err)
			}
			f.tunnels[address] = local
			return local, nil
		}
	}
	return "", fmt.Errorf("%s: no running pod of grid %s has this address", address, f.grid)
}

// hasAddress reports whether the pod is at host: on the pod network, or on another that Multus put it on. The tunnel
// leads into the pod, whichever it is.
func hasAddress(pod *corev1.Pod, host string) bool {
	if pod.Status.PodIP == host {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	attachments, err := fabric.ParseStatus([]byte(pod.Annotations[v1alpha1.AnnotationNetworkStatus]))
	return err == nil && slices.ContainsFunc(attachments, func(a fabric.Attachment) bool { return slices.Contains(a.Addresses, addr) })
}

func (f *forwarder) open(ctx context.Context, pod, port string) (string, error) {
	dialer, err := f.dialer(pod)
	if err != nil {
		return "", err
	}
	ready := make(chan struct{})
	forward, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + port}, f.stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	failed := make(chan error, 1)
	go func() { failed <- forward.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return "", err
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(10 * time.Second):
		return "", fmt.Errorf("not ready after 10 s")
	}
	ports, err := forward.GetPorts()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local))), nil
}

// dialer tries WebSocket first and falls back to SPDY, as kubectl does.
func (f *forwarder) dialer(pod string) (httpstream.Dialer, error) {
	url := f.cluster.core.Post().Namespace(f.cluster.namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(f.cluster.config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(url, f.cluster.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialer(tunnel, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

func (f *forwarder) close() { close(f.stop) }
