package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// pageLimit bounds the size of a page, in bytes; pageTime the wait for it.
const (
	pageLimit = 16 << 20
	pageTime  = 10 * time.Second
)

// nodePages reads the HTTP pages of the nodes of a grid.
type nodePages struct {
	cluster *cluster
	grid    string
	way     way
	client  *http.Client
}

func newPages(c *cluster, grid string, direct bool) *nodePages {
	p := &nodePages{cluster: c, grid: grid}
	if !direct {
		p.way.tunnels = newForwarder(c, grid)
	}
	p.client = nodestatus.NewClient(pageTime, p.way.dialContext)
	return p
}

func (p *nodePages) close() { p.way.close() }

// answer is a node's /status, or why there is none.
type answer struct {
	node *nodestatus.Node
	why  string
}

// status queries every running pod of the grid concurrently.
func (p *nodePages) status(ctx context.Context) (map[string]answer, error) {
	pods, err := p.cluster.pods(ctx, p.grid)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	answers := map[string]answer{}
	for i := range pods {
		pod := &pods[i]
		all.Go(func() {
			node, err := nodestatus.Get(ctx, p.client, address(pod, api.HTTPPort))
			a := answer{node: node}
			switch {
			case err != nil:
				a = answer{why: err.Error()}
			case node.Pod != pod.Name:
				a = answer{why: fmt.Sprintf("another node, %s, answers at %s", node.Pod, pod.Status.PodIP)}
			}
			mu.Lock()
			defer mu.Unlock()
			answers[pod.Name] = a
		})
	}
	all.Wait()
	return answers, nil
}

// page reads one page of a node.
func (p *nodePages) page(ctx context.Context, pod *corev1.Pod, path string) ([]byte, error) {
	url := "http://" + address(pod, api.HTTPPort) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, pageLimit+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s: %.100q", path, resp.Status, body)
	case len(body) > pageLimit:
		return nil, fmt.Errorf("%s: more than %d bytes", path, pageLimit)
	}
	return body, nil
}
