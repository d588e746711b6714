package witness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// linkSight is one connection between two grid nodes, as seen by the kernel of one end: the connection that orders are
// copied over, not a separate one. Times are in nanoseconds.
type linkSight struct {
	From      string `json:"f"`
	Boot      string `json:"b"` // of the process at From
	To        string `json:"t"`
	Kind      string `json:"k"`
	Ends      string `json:"e"` // both addresses, which identify a connection
	Interface string `json:"i,omitempty"`
	RTT       int64  `json:"r,omitempty"`
	Resent    uint64 `json:"x,omitempty"`
	Doubled   uint64 `json:"d,omitempty"` // segments the other end got twice
	Quiet     int64  `json:"q,omitempty"` // age of the last segment received
	Queued    int64  `json:"w,omitempty"` // bytes queued here
	Idle      int64  `json:"z,omitempty"` // age of the last segment sent: without traffic the round trip is outdated
}

// seeLinks asks both ends: a fault in one direction may be visible at only one of them, and one may be unreachable.
func (o *Observer) seeLinks(ctx context.Context, f *inject.Fault, before *sight) (*sight, error) {
	s := &sight{At: time.Now(), Boots: map[string]string{}}
	if len(pairs(f)) == 0 {
		return s, nil // the other end is not a grid node: only the executor's counters can show the fault
	}
	targets, err := o.targets(ctx, ends(f))
	if err != nil && before == nil {
		return nil, err
	}
	for pod, peers := range askAll(ctx, s, targets, func(ctx context.Context, p target) (*nodestatus.Peers, error) {
		ctx, cancel := soon(ctx)
		defer cancel()
		return nodestatus.GetPeers(ctx, o.Nodes, p.http())
	}) {
		s.Boots[pod] = peers.BootID
		for _, c := range peers.Connections {
			if concerns(f, pod, c.Pod) && c.Kind != nodestatus.KindBulk {
				s.Links = append(s.Links, lookAtLink(pod, peers.BootID, &c))
			}
		}
	}
	slices.SortFunc(s.Links, func(a, b linkSight) int {
		return strings.Compare(a.From+a.To+a.Kind+a.Ends, b.From+b.To+b.Kind+b.Ends)
	})
	if before != nil {
		return s, nil
	}
	for _, p := range pairs(f) {
		if links := s.between(p); len(links) == 0 {
			return nil, fmt.Errorf("there is no connection between %s and %s before the fault: is %s in sync?", p[0], p[1], p[1])
		}
	}
	return s, nil
}

func lookAtLink(pod, boot string, c *nodestatus.Connection) linkSight {
	l := linkSight{From: pod, Boot: boot, To: c.Pod, Kind: c.Kind, Ends: c.Local + ">" + c.Remote, Interface: c.Interface, Quiet: c.HeardAgoNs, Queued: c.Buffered}
	if t := c.TCP; t != nil {
		l.RTT, l.Resent, l.Doubled, l.Idle = t.RTTNs, t.Retransmits, t.DSACKDups, t.SentAgoNs
		l.Queued += int64(t.NotSent)
		if l.Quiet == 0 {
			l.Quiet = t.ReceivedAgoNs
		}
	}
	return l
}

// ends are the grid nodes to ask: the pods of the fault and their peers; without peers all others of their shards.
func ends(f *inject.Fault) []corev1.Pod {
	out := slices.Clone(f.Pods)
	add := func(p corev1.Pod) {
		if !slices.ContainsFunc(out, func(o corev1.Pod) bool { return o.Name == p.Name }) {
			out = append(out, p)
		}
	}
	for _, p := range f.Peers {
		if isOfGrid(f.Grid, p.Name) {
			add(p)
		}
	}
	if len(f.Peers) > 0 {
		return out
	}
	for shard := range f.Grid.Spec.Shards {
		mates := namesOf(f.Grid, shard)
		if slices.ContainsFunc(f.Pods, func(p corev1.Pod) bool { return slices.Contains(mates, p.Name) }) {
			for _, name := range mates {
				add(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Grid.Namespace, Name: name}})
			}
		}
	}
	return out
}

func namesOf(grid *api.OrderGrid, shard int32) (names []string) {
	for ordinal := range grid.Spec.Replicas {
		names = append(names, api.PodName(grid.Name, shard, ordinal))
	}
	return names
}

func isOfGrid(grid *api.OrderGrid, pod string) bool {
	for shard := range grid.Spec.Shards {
		if slices.Contains(namesOf(grid, shard), pod) {
			return true
		}
	}
	return false
}

// concerns reports whether a connection is on the link that the fault breaks.
func concerns(f *inject.Fault, a, b string) bool {
	return slices.ContainsFunc(pairs(f), func(p pair) bool { return p == pair{a, b} || p == pair{b, a} })
}

// pair is a pod that is hit and one at the other end.
type pair [2]string

// pairs are all pods of the fault with all their peers of the same shard: others have no connection.
func pairs(f *inject.Fault) (out []pair) {
	for _, a := range f.Pods {
		for _, b := range ends(f) {
			hitToo := slices.ContainsFunc(f.Pods, func(p corev1.Pod) bool { return p.Name == b.Name })
			twice := hitToo && b.Name < a.Name // the pair exists in the other order, too
			if a.Name != b.Name && sameShard(f.Grid, a.Name, b.Name) && !twice {
				out = append(out, pair{a.Name, b.Name})
			}
		}
	}
	return out
}

func sameShard(grid *api.OrderGrid, a, b string) bool {
	for shard := range grid.Spec.Shards {
		if names := namesOf(grid, shard); slices.Contains(names, a) {
			return slices.Contains(names, b)
		}
	}
	return false
}

// between are the connections of a pair, seen from both ends.
func (s *sight) between(p pair) (out []linkSight) {
	for _, l := range s.Links {
		if l.From == p[0] && l.To == p[1] || l.From == p[1] && l.To == p[0] {
			out = append(out, l)
		}
	}
	return out
}
