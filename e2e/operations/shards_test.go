//go:build e2e

package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// shards grows the grid from one shard to three and takes one away again. Two loads run: the recorder's, which judges the
// shard that stays, and one of a client that routes its orders as programs do, over all shards there are.
func shards(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, "whenDeleted: Delete", "whenDeleted: Retain", "  memory: 256Mi\n", "  memory: 256Mi\n  scaleIn: {keepDrained: 20s}\n")
	r := f.record(ctx, "shards", 2)
	l := f.spread(ctx, 300, nil)
	before := f.pods(ctx)
	r.step(ctx, drill.Step{Fault: "shards 1 to 3", Type: "ScaleOut", What: "two shards are added"}, func() string {
		f.must(f.kube.Run(ctx, "scale", "ordergrid", grid, "-n", namespace, "--replicas=3"))
		g := f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionRedundant+"=True", api.ConditionProgressing+"=False/Steady")
		if g.Status.OpenShards != 3 || len(f.replaced(ctx, before)) != 0 {
			t.Errorf("%d shards take orders; pods %v were replaced", g.Status.OpenShards, f.replaced(ctx, before))
			return ""
		}
		l.more(t, 1, 500)
		l.more(t, 2, 500)
		return "orders go to three shards, and no pod of the first was replaced"
	})
	sleep(ctx, 5*time.Second)
	r.step(ctx, drill.Step{Fault: "shards 3 to 2", Type: "ScaleIn", What: "the last shard is drained and removed"}, func() string {
		f.must(f.kube.Run(ctx, "scale", "ordergrid", grid, "-n", namespace, "--replicas=2"))
		f.eventually(ctx, "the third shard to be gone", patience, func(ctx context.Context) error {
			g, err := f.state(ctx)
			if err != nil {
				return err
			}
			if g.Status.Shards != 2 || len(g.Status.Leaving) > 0 || g.Status.ObservedGeneration != g.Generation {
				return fmt.Errorf("%d shards, leaving: %+v", g.Status.Shards, g.Status.Leaving)
			}
			return nil
		})
		f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionRedundant+"=True", api.ConditionProgressing+"=False/Steady")
		left := f.must(f.kube.Run(ctx, "get", "statefulsets,pods,services,gridpartitions,roles,serviceaccounts", "-n", namespace, "-l", api.LabelShard+"=2", "-o", "name"))
		if strings.TrimSpace(left) != "" || len(f.replaced(ctx, before)) != 0 {
			t.Errorf("left of shard 2: %s; replaced: %v", left, f.replaced(ctx, before))
			return ""
		}
		l.more(t, 1, 500)
		return "nothing of the third shard is left, and no pod of the first was replaced"
	})
	l.judge(ctx, t)
	r.finish(ctx)
}

// spreadLoad is orders over all shards, each sent once and remembered.
type spreadLoad struct {
	c    *client.Client
	stop atomic.Bool
	wg   sync.WaitGroup

	mu       sync.Mutex
	receipts map[string]client.Receipt
	failed   []error
	took     []time.Duration
	perShard [mostShards]atomic.Int64
}

// spread begins with so many orders a second, without TLS if tls is nil. The cluster's pods have to be reachable from here, as those of the local
// cluster are; names are asked of the cluster's own DNS.
func (f *field) spread(ctx context.Context, rate int, tls client.TLS) *spreadLoad {
	f.Helper()
	c, err := f.dial(ctx, tls)
	if err != nil {
		f.Fatalf("%v; this part puts orders on the grid from here, which takes a cluster whose pods are reachable from here", err)
	}
	l := &spreadLoad{c: c, receipts: map[string]client.Receipt{}}
	const workers = 8
	run := fixorder.NewRun()
	for w := range workers {
		maker, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{Run: run, Probe: w})
		if err != nil {
			f.Fatal(err)
		}
		l.wg.Go(func() { l.run(maker, time.Second*workers/time.Duration(rate)) })
	}
	f.Cleanup(func() {
		l.end()
		c.Close() //nolint:errcheck // it never fails
	})
	return l
}

// dial is a client of the grid's Service from here.
func (f *field) dial(ctx context.Context, tls client.TLS) (*client.Client, error) {
	f.Helper()
	dns := &corev1.Service{}
	if err := f.kube.Get(ctx, dns, "service", "kube-dns", "-n", "kube-system"); err != nil {
		return nil, err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(dns.Spec.ClusterIP, "53"))
	}}
	dialer := &net.Dialer{Resolver: resolver}
	return client.Dial(ctx, client.Config{
		Endpoints: []string{"trades-client." + namespace + ".svc:7400"}, Grid: grid, TLS: tls, RequestTimeout: 10 * time.Second, TableEvery: 2 * time.Second,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".svc") {
				address = net.JoinHostPort(host+".cluster.local.", port)
			}
			return dialer.DialContext(ctx, "tcp", address)
		},
	})
}

func (l *spreadLoad) run(maker *fixorder.Maker, every time.Duration) {
	next := time.Now()
	for n := int64(1); !l.stop.Load(); n++ {
		now := time.Now()
		fix := maker.Make(n, n, now, now)
		id := clOrdIDOf(fix)
		r, err := l.c.Submit(context.Background(), fix)
		l.mu.Lock()
		if err != nil {
			l.failed = append(l.failed, fmt.Errorf("%s: %w", id, err))
		} else {
			l.receipts[id] = r
			l.perShard[r.Partition.Shard()].Add(1)
			l.took = append(l.took, time.Since(now))
		}
		l.mu.Unlock()
		next = next.Add(every)
		time.Sleep(time.Until(next))
	}
}

func clOrdIDOf(fix []byte) string {
	_, rest, _ := strings.Cut(string(fix), "\x0111=")
	id, _, _ := strings.Cut(rest, "\x01")
	return id
}

// more waits for n further orders of a shard.
func (l *spreadLoad) more(t *testing.T, shard int, n int64) {
	t.Helper()
	from := l.perShard[shard].Load()
	for end := time.Now().Add(patience); l.perShard[shard].Load() < from+n; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d further orders went to shard %d in %v, want %d", l.perShard[shard].Load()-from, shard, patience, n)
		}
	}
}

// judge holds every receipt against the grid: found by its id and its ClOrdID, or, of the removed shard, said to be
// downstream.
func (l *spreadLoad) judge(ctx context.Context, t *testing.T) { l.judgeBy(ctx, t, l.c) }

// end ends the orders, and waits for the answers to those under way.
func (l *spreadLoad) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

// judgeBy asks with another client.
func (l *spreadLoad) judgeBy(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	l.end()
	for _, err := range l.failed[:min(len(l.failed), 5)] {
		t.Errorf("an order failed: %v", err)
	}
	slices.Sort(l.took)
	s := l.c.Stats()
	t.Logf("%d orders over shards %d, %d, %d; %d failed; p50 %v, p99 %v, longest %v; %d orders were sent on from a closed partition, duplicates %d, violations %d", len(l.receipts),
		l.perShard[0].Load(), l.perShard[1].Load(), l.perShard[2].Load(), len(l.failed), l.took[len(l.took)/2], l.took[len(l.took)*99/100], l.took[len(l.took)-1], s.Moved, s.Duplicates, s.Violations)
	ids := make([]string, 0, len(l.receipts))
	for id := range l.receipts {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(l.receipts[a].Seq, l.receipts[b].Seq) })
	step := max(1, len(ids)/2000)
	for i := 0; i < len(ids); i += step {
		id, r := ids[i], l.receipts[ids[i]]
		o, err := c.GetByClOrdID(ctx, id)
		_, byID := c.Get(ctx, r.ID())
		if gone := r.Partition.Shard() >= 2; gone && (!errors.Is(err, client.ErrFreed) || !errors.Is(byID, client.ErrFreed)) || !gone && (err != nil || byID != nil || o.ID != r.ID()) {
			t.Fatalf("order %s with id %s: %v, %v; %v", id, r.ID(), o.ID, err, byID)
		}
	}
	t.Logf("%d of them looked up by id and ClOrdID", (len(ids)+step-1)/step)
}
