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
	"github.com/ordergrid/ordergrid/probe/clock"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// moreShards grows the grid from one shard to three, and every order has to be in the files of the pods, whichever partition
// was where when it came.
func moreShards(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx)
	r := f.record(ctx, "more-shards", 2)
	r.step(ctx, drill.Step{Fault: "shards 1 to 3", Type: "ScaleOut", What: "two shards are added, and partitions move there"}, func() string {
		f.scale(ctx, 3)
		return "three shards share the partitions"
	})
	r.finish(ctx)
}

// shards grows the grid from one shard to three and takes two away again. The partitions move, with their orders, while
// two loads run: the recorder's, which judges every order, and one of a client that sends as programs do. There is nothing
// downstream: the files of a shard that is removed go with it.
func shards(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, withoutSinks...)
	r := f.record(ctx, "shards", 2)
	l := f.spread(ctx, 300, nil)
	before := f.pods(ctx)
	l.more(t, 2000)
	early := l.some(20)
	scale := func(to int32, what string) string {
		f.scale(ctx, to)
		if replaced := f.replaced(ctx, before); len(replaced) != 0 {
			t.Errorf("pods %v were replaced", replaced)
			return ""
		}
		l.more(t, 500)
		if refused := l.again(ctx, t, early); refused != len(early) {
			t.Errorf("of %d orders acknowledged before, sent again, %d were refused as duplicates", len(early), refused)
			return ""
		}
		return fmt.Sprintf("%s; %d orders of before, sent again, are refused", what, len(early))
	}
	r.step(ctx, drill.Step{Fault: "shards 1 to 3", Type: "ScaleOut", What: "two shards are added, and partitions move there"}, func() string {
		return scale(3, "three shards share the partitions, and no pod of the first was replaced")
	})
	_ = clock.Wait(ctx, 5*time.Second)
	r.step(ctx, drill.Step{Fault: "shards 3 to 1", Type: "ScaleIn", What: "two shards give their partitions away and are removed"}, func() string {
		said := scale(1, "nothing of two shards is left, and no pod of the first was replaced")
		for _, shard := range []string{"1", "2"} {
			left := f.must(f.kube.Run(ctx, "get", "statefulsets,pods,services,roles,serviceaccounts", "-n", namespace, "-l", api.LabelShard+"="+shard, "-o", "name"))
			if strings.TrimSpace(left) != "" {
				t.Errorf("left of shard %s: %s", shard, left)
			}
		}
		return said
	})
	l.judge(ctx, t)
	r.finish(ctx)
}

// withoutSinks are the changes of the grid's manifest after which nothing is downstream.
var withoutSinks = []string{"  sinks:\n", "", "  - name: file\n    type: File\n    file:\n", "", "      volume: PersistentVolumeClaim\n", "", "      size: 10Gi\n", "",
	"      storageClassName: ordergrid-operations\n", "", "      whenDeleted: Delete\n", ""}

// scale changes the number of shards, and waits until they share the partitions.
func (f *field) scale(ctx context.Context, to int32) {
	f.Helper()
	f.must(f.kube.Run(ctx, "scale", "ordergrid", grid, "-n", namespace, fmt.Sprintf("--replicas=%d", to)))
	f.eventually(ctx, fmt.Sprintf("%d shards, each with its part", to), patience, func(ctx context.Context) error { return f.spreadOver(ctx, to) })
	f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionRedundant+"=True", api.ConditionProgressing+"=False/Steady")
}

// spreadOver reports whether so many shards share the partitions, as even as may be, each with all its copies there.
func (f *field) spreadOver(ctx context.Context, shards int32) error {
	g, err := f.state(ctx)
	if err != nil {
		return err
	}
	if g.Status.ObservedGeneration != g.Generation || g.Status.Shards != shards || len(g.Status.Leaving)+len(g.Status.Moves) > 0 || g.Status.MovesLeft > 0 {
		return fmt.Errorf("%d shards, leaving: %+v, moves: %+v, %d left", g.Status.Shards, g.Status.Leaving, g.Status.Moves, g.Status.MovesLeft)
	}
	list := &api.GridPartitionList{}
	if err := f.kube.Get(ctx, list, "gridpartitions", "-n", namespace); err != nil {
		return err
	}
	has := make([]int32, shards)
	for i := range list.Items {
		p := &list.Items[i]
		if p.Spec.Shard >= shards || int32(len(p.Status.InSync)) != p.Spec.Replicas {
			return fmt.Errorf("%s is on shard %d with %d copies", p.Name, p.Spec.Shard, len(p.Status.InSync))
		}
		for _, m := range p.Status.InSync {
			if !strings.HasPrefix(m.PodName, api.ShardName(grid, p.Spec.Shard)+"-") {
				return fmt.Errorf("%s is of shard %d and has a copy on %s", p.Name, p.Spec.Shard, m.PodName)
			}
		}
		has[p.Spec.Shard]++
	}
	if slices.Max(has)-slices.Min(has) > 1 {
		return fmt.Errorf("the shards have %d partitions", has)
	}
	return nil
}

// spreadLoad is orders over all partitions, each sent once and remembered.
type spreadLoad struct {
	c    *client.Client
	stop atomic.Bool
	wg   sync.WaitGroup

	mu       sync.Mutex
	receipts map[string]client.Receipt
	sent     map[string][]byte // of the first
	failed   []error
	took     []time.Duration
	acked    atomic.Int64
}

// spread begins with so many orders a second, without TLS if tls is nil. The cluster's pods have to be reachable from here, as those of the local
// cluster are; names are asked of the cluster's own DNS.
func (f *field) spread(ctx context.Context, rate int, tls client.TLS) *spreadLoad {
	f.Helper()
	c, err := f.dial(ctx, tls)
	if err != nil {
		f.Fatalf("%v; this part puts orders on the grid from here, which takes a cluster whose pods are reachable from here", err)
	}
	l := &spreadLoad{c: c, receipts: map[string]client.Receipt{}, sent: map[string][]byte{}}
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
			if len(l.sent) < 1000 {
				l.sent[id] = slices.Clone(fix)
			}
			l.acked.Add(1)
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

// more waits for n further orders.
func (l *spreadLoad) more(t *testing.T, n int64) {
	t.Helper()
	from := l.acked.Load()
	for end := time.Now().Add(patience); l.acked.Load() < from+n; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d further orders were acknowledged in %v, want %d", l.acked.Load()-from, patience, n)
		}
	}
}

// some are orders that were acknowledged.
func (l *spreadLoad) some(n int) map[string][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := map[string][]byte{}
	for id, fix := range l.sent {
		if len(some) < n {
			some[id] = fix
		}
	}
	return some
}

// again sends orders a second time, as new ones, and counts those that are refused for their ClOrdID.
func (l *spreadLoad) again(ctx context.Context, t *testing.T, orders map[string][]byte) (refused int) {
	t.Helper()
	for id, fix := range orders {
		switch r, err := l.c.Submit(ctx, fix); {
		case errors.Is(err, client.ErrDuplicateClOrdID):
			refused++
		default:
			t.Errorf("order %s was sent again: receipt %v, %v", id, r, err)
		}
	}
	return refused
}

// judge holds receipts against the grid: found by their ids and ClOrdIDs.
func (l *spreadLoad) judge(ctx context.Context, t *testing.T) { l.judgeBy(ctx, t, l.c) }

// end ends the orders, and waits for the answers to those in progress.
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
	t.Logf("%d orders; %d failed; p50 %v, p99 %v, longest %v; duplicates %d, violations %d", len(l.receipts), len(l.failed),
		l.took[len(l.took)/2], l.took[len(l.took)*99/100], l.took[len(l.took)-1], s.Duplicates, s.Violations)
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
		if err != nil || byID != nil || o.ID != r.ID() {
			t.Fatalf("order %s with id %s: %v, %v; %v", id, r.ID(), o.ID, err, byID)
		}
	}
	t.Logf("%d of them looked up by id and ClOrdID", (len(ids)+step-1)/step)
}
