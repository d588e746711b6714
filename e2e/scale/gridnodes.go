package scale

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	arbiterkube "github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// gridNodes plays the processes in the pods.
type gridNodes struct {
	client  client.Client
	arbiter *arbiterkube.Arbiter
	fail    func(error) // called once on a violation

	mu      sync.Mutex
	started map[string]*gridNode // by pod
	wait    sync.WaitGroup
}

func newGridNodes(cfg *rest.Config, cl client.Client, fail func(error)) (*gridNodes, error) {
	a, err := arbiterkube.New(cfg, namespace)
	return &gridNodes{client: cl, arbiter: a, fail: fail, started: map[string]*gridNode{}}, err
}

// gridNode is one process.
type gridNode struct {
	all    *gridNodes
	grid   string
	member arbiter.Member

	ready bool // known to run alone

	mu      sync.Mutex
	records map[string]arbiter.Record // by name; the latest that was seen
}

// look is called for every pod; a grid node starts in it when it has its address.
func (g *gridNodes) look(ctx context.Context, pod *corev1.Pod) {
	if pod.Status.PodIP == "" || pod.DeletionTimestamp != nil || pod.Labels[api.LabelGrid] == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started[pod.Name] != nil || ctx.Err() != nil {
		return
	}
	n := &gridNode{all: g, grid: pod.Labels[api.LabelGrid], records: map[string]arbiter.Record{}, member: member(pod.Name, pod.Status.PodIP)}
	g.started[pod.Name] = n
	g.wait.Go(func() {
		if err := n.run(ctx, pod); err != nil && ctx.Err() == nil {
			g.fail(fmt.Errorf("%s: %w", pod.Name, err))
		}
	})
}

func member(pod, ip string) arbiter.Member {
	var boot [8]byte
	_, _ = rand.Read(boot[:]) // never fails
	m := arbiter.Member{PodName: pod, BootID: hex.EncodeToString(boot[:]), Address: net.JoinHostPort(ip, strconv.Itoa(api.DataPort))}
	m.ID = m.PodName + "/" + m.BootID
	return m
}

// peer is the process in a pod, nil if it has not started.
func (g *gridNodes) peer(pod string) *gridNode {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.started[pod]
}

// run answers the operator and follows the records that name it, until ctx ends.
func (n *gridNode) run(ctx context.Context, pod *corev1.Pod) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(api.HTTPPort)))
	if err != nil {
		return err
	}
	page := &http.Server{Handler: http.HandlerFunc(n.answer), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = page.Serve(l) }() // ends with Close
	defer page.Close()

	changes := make(chan arbiter.Record, 16)
	go func() {
		_ = n.all.arbiter.Watch(ctx, n.grid, func(news arbiter.News, _ error) { // it begins again by itself
			for _, r := range news.Records {
				if !slices.Contains(r.Spec.Pods, n.member.PodName) {
					continue
				}
				select {
				case changes <- r:
				case <-ctx.Done():
				}
			}
		})
	}()
	// In a real grid the network shows a peer's start; here it is polled.
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-changes:
			n.see(r)
		case <-again.C:
			if n.done() {
				again.Stop()
			}
		}
		if err := n.act(ctx, pod); err != nil {
			return err
		}
	}
}

func (n *gridNode) see(r arbiter.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Epoch >= n.records[r.Name].Epoch {
		n.records[r.Name] = r
	}
}

func (n *gridNode) snapshot() (list []arbiter.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.records {
		list = append(list, r)
	}
	return list
}

// done reports whether every record has every copy, and the pod is ready.
func (n *gridNode) done() bool {
	for _, r := range n.snapshot() {
		if len(r.InSync) < replicas {
			return false
		}
	}
	return n.ready
}

// act claims unclaimed partitions that this pod should have, admits peers where it is primary, and becomes ready
// once it is a member of everything.
func (n *gridNode) act(ctx context.Context, pod *corev1.Pod) error {
	member := 0
	for _, r := range n.snapshot() {
		next, change := n.propose(r)
		if change {
			now, err := n.all.arbiter.CompareAndSwap(ctx, next)
			switch {
			case err == nil:
				n.see(now)
				r = now
			case errors.Is(err, arbiter.ErrRefused):
				return err
			} // else the watch brings what stands there now
		}
		if slices.ContainsFunc(r.InSync, func(m arbiter.Member) bool { return m.ID == n.member.ID }) {
			member++
		}
	}
	if member < replicas || n.ready {
		return nil
	}
	if err := n.all.becomeReady(ctx, pod); err != nil {
		return err
	}
	n.ready = true
	return nil
}

// propose is the next configuration of a partition, if this process has one to propose.
func (n *gridNode) propose(r arbiter.Record) (next arbiter.Record, change bool) {
	next = r
	next.InSync = slices.Clone(r.InSync)
	next.Epoch++
	next.ChangeID = n.member.BootID + "-" + strconv.FormatUint(next.Epoch, 10)
	next.Observed = time.Now()
	switch {
	case r.Epoch == 0 && r.Spec.PreferredPod == n.member.PodName:
		next.Lineage, next.Primary, next.InSync = 1, n.member, []arbiter.Member{n.member}
		return next, true
	case r.Epoch > 0 && r.Primary.ID == n.member.ID:
		shard, _, _ := cutLast(n.member.PodName, '-')
		for ordinal := range replicas {
			p := n.all.peer(shard + "-" + strconv.Itoa(ordinal))
			if p != nil && !slices.ContainsFunc(r.InSync, func(m arbiter.Member) bool { return m.ID == p.member.ID }) {
				next.InSync = append(next.InSync, p.member)
				return next, true
			}
		}
	}
	return next, false
}

// becomeReady is what a kubelet writes when a pod's probe succeeds.
func (g *gridNodes) becomeReady(ctx context.Context, pod *corev1.Pod) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":null,"lastTransitionTime":%q},`+
		`{"type":"ContainersReady","status":"True","reason":null,"lastTransitionTime":%q}],"containerStatuses":[{"name":%q,"ready":true}]}}`,
		now, now, pod.Spec.Containers[0].Name)
	return g.client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(patch)))
}

// answer is GET /status.
func (n *gridNode) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != nodestatus.Path {
		http.NotFound(w, r)
		return
	}
	page := nodestatus.Node{Grid: n.grid, Pod: n.member.PodName, BootID: n.member.BootID}
	for _, record := range n.snapshot() {
		p := nodestatus.Partition{
			Record: record.Name, Member: n.member.ID, BootID: n.member.BootID, Role: "backup",
			Epoch: record.Epoch, Lineage: record.Lineage, ChangeID: record.ChangeID, Primary: record.Primary.ID,
		}
		_, p.Partition, _ = cutLast(record.Name, '-')
		if record.Primary.ID == n.member.ID {
			p.Role = "primary"
		}
		for _, m := range record.InSync {
			p.InSync = append(p.InSync, m.ID)
		}
		page.Partitions = append(page.Partitions, p)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page) // the client is gone: the error is ignored
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
