//go:build e2e

package operations

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/subscriber"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

const (
	// listeners are WebSocket clients of two gateways; what they subscribe to has listenedRate orders a second.
	listeners, listenedRate = 1000, 10
	listenerToken           = "0123456789abcdef-listeners"
	// streamGateway serves them. Its grid is without TLS, as the grid of all operations is.
	streamGateway = `
apiVersion: v1
kind: Secret
metadata: {name: page-tokens, namespace: ordergrid-operations}
stringData: {page: ` + listenerToken + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: page-clients, namespace: ordergrid-operations}
data:
  clients.json: '{"clients": [{"name": "page", "tokenFile": "page", "topics": ["orders.ACC.>"]}]}'
---
apiVersion: ordergrid.dev/v1alpha1
kind: OrderGateway
metadata: {name: page, namespace: ordergrid-operations}
spec:
  gridRef: {name: trades}
  replicas: 2
  listeners: [{name: stream, protocol: WebSocket, port: 7441, insecure: Accept}]
  streams:
    clientsFrom: {configMap: {name: page-clients}, tokensFrom: {secretName: page-tokens}}
`
)

// streams has a thousand clients listen to the orders of an account, by two pods of an OrderGateway, while both nodes,
// each the primary of half of the partitions, and both gateways are killed. Each client gets each of the orders once, in the order of its partition.
func streams(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, withoutSinks...)
	f.must(f.kube.Apply(ctx, []byte(streamGateway)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		f.must(f.kube.Run(ctx, "delete", "ordergateway/page", "configmap/page-clients", "secret/page-tokens", "-n", namespace, "--ignore-not-found", "--wait"))
	})
	f.gatewaysServe(ctx, nil)
	r := f.record(ctx, "streams", 2)
	l := f.listen(ctx)
	for _, pod := range []string{api.PodName(grid, 0, 0), api.PodName(grid, 0, 1)} {
		r.calm(ctx)
		step := ofPod(pod)
		step.Fault, step.What = "node killed", pod+", while 1,000 clients listen"
		r.hit(ctx, step, func() { f.killPod(ctx, step) }, func() string {
			l.more(t, 100)
			return pod + " was killed, and 100 further orders reached all clients"
		})
		f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionRedundant+"=True")
	}
	for _, pod := range f.gateways(ctx) {
		r.step(ctx, drill.Step{Fault: "gateway killed", Type: "GatewayKill", What: pod + ", while 1,000 clients listen"}, func() string {
			f.must(f.kube.Run(ctx, "delete", "pod", pod, "-n", namespace, "--grace-period=0", "--force"))
			f.gatewaysServe(ctx, []string{pod})
			l.more(t, 100)
			return pod + " was killed, and 100 further orders reached all clients"
		})
	}
	l.judge(ctx, t)
	r.finish(ctx)
}

// gateways are the pods that serve, by name.
func (f *field) gateways(ctx context.Context) (names []string) {
	f.Helper()
	var list corev1.PodList
	if err := f.kube.Get(ctx, &list, "pods", "-n", namespace, "-l", "ordergrid.dev/gateway=page", "--field-selector=status.phase=Running"); err != nil {
		f.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// gatewaysServe waits for two pods that serve, none of them one of gone.
func (f *field) gatewaysServe(ctx context.Context, gone []string) {
	f.Helper()
	f.eventually(ctx, "two gateways that serve", patience, func(ctx context.Context) error {
		g := &api.OrderGateway{}
		if err := f.kube.Get(ctx, g, "ordergateway", "page", "-n", namespace); err != nil {
			return err
		}
		names := f.gateways(ctx)
		if g.Status.ReadyReplicas != 2 || len(names) != 2 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(gone, n) }) {
			return fmt.Errorf("pods %v, ready: %d; Ready: %s", names, g.Status.ReadyReplicas, told(meta.FindStatusCondition(g.Status.Conditions, api.ConditionReady)))
		}
		return nil
	})
}

// listening is the clients, and the orders that they listen to.
type listening struct {
	c        *client.Client
	all      []*subscriber.Subscriber
	at       []atomic.Pointer[map[int]uint64] // where each client is, now and then
	acked    atomic.Int64
	stop     atomic.Bool
	ends     atomic.Pointer[map[int]uint64]
	load, wg sync.WaitGroup
	failed   error
}

// listen begins with orders, and with clients that are given to both gateways by the Service.
func (f *field) listen(ctx context.Context) *listening {
	f.Helper()
	c, err := f.dial(ctx, nil)
	if err != nil {
		f.Fatalf("%v; this part takes a cluster whose pods are reachable from here", err)
	}
	ip := f.must(f.kube.Run(ctx, "get", "service", "page-gateway", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}"))
	// A pod that is killed may leave a connection that nothing ends.
	page := subscriber.Gateway{Address: net.JoinHostPort(strings.TrimSpace(ip), "7441"), Token: listenerToken, Silence: 10 * time.Second}
	l := &listening{c: c, at: make([]atomic.Pointer[map[int]uint64], listeners)}
	reading, cancel := context.WithCancel(ctx)
	for i := range listeners {
		s := &subscriber.Subscriber{Name: fmt.Sprint("client ", i), Topics: "orders.ACC.>", Gateway: func(int) subscriber.Gateway { return page }}
		l.all = append(l.all, s)
		l.wg.Go(func() { s.Run(reading, func(last map[int]uint64) bool { return l.done(i, last) }) })
	}
	l.load.Go(func() {
		for n, next := 0, time.Now(); !l.stop.Load(); n++ {
			if _, err := c.Submit(ctx, testgrid.Order(fmt.Sprintf("LISTENED-%d", n), 305)); err != nil {
				l.failed = fmt.Errorf("order %d: %w", n, err)
				return
			}
			l.acked.Add(1)
			next = next.Add(time.Second / listenedRate)
			time.Sleep(time.Until(next))
		}
	})
	f.Cleanup(func() {
		l.stop.Store(true)
		cancel()
		l.load.Wait()
		l.wg.Wait()
		c.Close() //nolint:errcheck // it never fails
	})
	l.more(f.T, 50)
	return l
}

// done notes where a client is, and reports whether it has what it is to get.
func (l *listening) done(i int, last map[int]uint64) bool {
	if last == nil {
		return false
	}
	now := maps.Clone(last)
	l.at[i].Store(&now)
	ends := l.ends.Load()
	return ends != nil && reached(last, *ends)
}

func reached(last, ends map[int]uint64) bool {
	for p, seq := range ends {
		if last[p] < seq {
			return false
		}
	}
	return true
}

// more waits until n further orders are acknowledged and every client has got them.
func (l *listening) more(t *testing.T, n int64) {
	t.Helper()
	end, from := time.Now().Add(patience), l.acked.Load()
	for l.acked.Load() < from+n {
		if time.Sleep(100 * time.Millisecond); time.Now().After(end) {
			t.Fatalf("%d further orders were acknowledged in %v, want %d", l.acked.Load()-from, patience, n)
		}
	}
	_, ends := l.logged(t)
	for i := 0; i < listeners; {
		if at := l.at[i].Load(); at != nil && reached(*at, ends) {
			i++
		} else if time.Sleep(100 * time.Millisecond); time.Now().After(end) {
			t.Fatalf("client %d is at %v, want %v", i, at, ends)
		}
	}
}

// logged are the entries of the orders that are listened to, by partition, and the last of each.
func (l *listening) logged(t *testing.T) (logged map[int][]uint64, ends map[int]uint64) {
	t.Helper()
	logged, ends = map[int][]uint64{}, map[int]uint64{}
	for _, p := range l.c.Table() {
		_, err := l.c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind == order.KindOrder && bytes.Contains(e.Bytes, []byte("\x011=ACC\x01")) {
				logged[int(p.ID)] = append(logged[int(p.ID)], e.Seq)
				ends[int(p.ID)] = e.Seq
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return logged, ends
}

// judge ends the orders, and holds what each client got against the log.
func (l *listening) judge(ctx context.Context, t *testing.T) {
	t.Helper()
	l.stop.Store(true)
	l.load.Wait()
	if l.failed != nil {
		t.Error(l.failed)
	}
	logged, ends := l.logged(t)
	l.ends.Store(&ends)
	l.wg.Wait()
	messages, resumed, wrong := 0, 0, 0
	for _, s := range l.all {
		if missed := s.Missed(logged); missed != "" {
			if wrong++; wrong <= 5 {
				t.Error(missed)
			}
		}
		resumed += s.Resumed
		for _, got := range s.Got {
			messages += len(got)
		}
	}
	t.Logf("%d orders, %d clients, %d messages, %d connections resumed, %d clients with a gap or a repetition", l.acked.Load(), listeners, messages, resumed, wrong)
	if resumed < listeners {
		t.Errorf("%d connections were resumed, want one of each client at least: the part shows nothing", resumed)
	}
}
