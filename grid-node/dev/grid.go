package dev

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"github.com/ordergrid/ordergrid/internal/proc"
)

// Node is one process of the grid, as GET /v1/nodes lists it.
type Node struct {
	Pod      string `json:"pod"`
	Address  string `json:"address"` // data port
	HTTP     string `json:"http"`    // base URL of metrics and health
	PID      int    `json:"pid"`     // 0: it ended and is about to be started again
	Starts   int    `json:"starts"`  // processes started so far in this place
	Replaced bool   `json:"replaced,omitempty"`
}

// grid is what runs: places, each held by one process at a time. Two places share a pod's
// name after a replacement.
type grid struct {
	o Options
	s *supervisor

	nodeTLS, clientTLS *TLS   // nil without Options.TLS
	peerKey            string // file with the key of the nodes

	mu     sync.Mutex
	url    string
	places []place
	ports  proc.HeldPorts // of places: while a node starts, and while one that was killed is started again
}

// place is where a node listens and which pod it is.
type place struct {
	shard, ordinal int
	data, http     string
	replaced       bool
}

// start assigns addresses, shard by shard, and starts the nodes.
func (g *grid) start(url string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.url = url
	o := &g.o
	n := o.Shards * o.Replicas
	data, err := g.take(o.Port, n)
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	web, err := g.take(o.HTTPPort, n)
	if err != nil {
		return fmt.Errorf("--http-port: %w", err)
	}
	for i := range n {
		g.places = append(g.places, place{shard: i / o.Replicas, ordinal: i % o.Replicas, data: data[i], http: web[i]})
	}
	for i := range g.places {
		if err := g.s.start(i, g.args(i)); err != nil {
			return err
		}
	}
	return nil
}

func (g *grid) info(url string) Info {
	info := Info{Grid: g.o.Grid, Arbiter: url, TLS: g.clientTLS}
	for _, n := range g.nodes() {
		info.Endpoints = append(info.Endpoints, n.Address)
		info.HTTP = append(info.HTTP, n.HTTP)
		info.PIDs = append(info.PIDs, n.PID)
	}
	return info
}

func (g *grid) nodes() []Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]Node, 0, len(g.places))
	for i, p := range g.places {
		pid, starts := g.s.state(i)
		out = append(out, Node{Pod: podName(g.o.Grid, p.shard, p.ordinal), Address: p.data, HTTP: "http://" + p.http,
			PID: pid, Starts: starts, Replaced: p.replaced})
	}
	return out
}

// maxReplacements bounds the processes of a grid.
const maxReplacements = 64

// replace starts another process under a pod's name, on an address of its own, beside the
// present one: what Kubernetes does when a pod is force-deleted while its node is
// unreachable. The old process keeps running and is not restarted when it ends.
func (g *grid) replace(pod string) (Node, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.places, func(p place) bool { return !p.replaced && podName(g.o.Grid, p.shard, p.ordinal) == pod })
	if i < 0 {
		return Node{}, fmt.Errorf("pod: value %.80q, allowed: a pod of GET /v1/nodes", pod)
	}
	next := len(g.places)
	if next >= g.o.Shards*g.o.Replicas+maxReplacements {
		return Node{}, fmt.Errorf("there were %d replacements already, allowed: %d; start a new grid", maxReplacements, maxReplacements)
	}
	data, err := g.ports.Take(g.o.host(next), 0)
	if err != nil {
		return Node{}, err
	}
	web, err := g.ports.Take(g.o.host(next), 0)
	if err != nil {
		return Node{}, err
	}
	p := g.places[i]
	g.s.abandon(i)
	g.places[i].replaced = true
	p.data, p.http = data, web
	g.places = append(g.places, p)
	if err := g.s.start(next, g.args(next)); err != nil {
		return Node{}, err
	}
	pid, starts := g.s.state(next)
	return Node{Pod: pod, Address: data, HTTP: "http://" + web, PID: pid, Starts: starts}, nil
}

// host is the address of node i.
func (o *Options) host(i int) string {
	if !o.HostPerNode {
		return o.Host
	}
	addr := netip.MustParseAddr(o.Host)
	for range i {
		addr = addr.Next()
	}
	return addr.String()
}

// loopbackRoom reports whether there are enough addresses from host on, none of which is
// 127.0.0.1, which other programs use.
func loopbackRoom(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() || !addr.IsLoopback() {
		return false
	}
	b := addr.As4()
	return b[3] == 1 && (b[1] != 0 || b[2] != 0)
}

// take reserves a port for each of n nodes: from first on, or any if first is 0.
func (g *grid) take(first, n int) ([]string, error) {
	var out []string
	for i := range n {
		want := 0
		if first != 0 {
			want = first + i
		}
		addr, err := g.ports.Take(g.o.host(i), want)
		if err != nil {
			return nil, fmt.Errorf("%w; choose another with this flag, or 0 for any", err)
		}
		out = append(out, addr)
	}
	return out, nil
}

// args are the arguments of the node in place i.
func (g *grid) args(i int) []string {
	o, p := &g.o, g.places[i]
	args := []string{"serve", "--grid", o.Grid, "--arbiter", g.url,
		"--shard", strconv.Itoa(p.shard), "--partitions", strconv.Itoa(o.Partitions),
		"--replicas", strconv.Itoa(o.Replicas),
		"--pod", podName(o.Grid, p.shard, p.ordinal),
		"--listen", p.data, "--advertise", p.data, "--http", p.http}
	if g.peerKey != "" {
		args = append(args, "--peer-key-file", g.peerKey)
	}
	if t := g.nodeTLS; t != nil {
		args = append(args, "--tls-cert", t.Cert, "--tls-key", t.Key, "--tls-ca", t.CA)
	}
	for _, other := range g.places {
		if other.shard == p.shard {
			args = append(args, "--peers", other.data)
		}
	}
	return append(args, o.Args...)
}
