package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/arbitertest"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

// fixture is a namespace of a real API server.
type fixture struct {
	*kube.Arbiter
	admin client.Client
	cfg   *rest.Config
	ns    string
	n     int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{cfg: envtest.Config(t)}
	f.admin = envtest.Client(t, f.cfg)
	f.ns = envtest.Namespace(t, f.admin, "arbiter-")
	var err error
	if f.Arbiter, err = kube.New(f.cfg, f.ns); err != nil {
		t.Fatal(err)
	}
	return f
}

// partition creates an unclaimed GridPartition, as the operator does.
func (f *fixture) partition(t *testing.T) string {
	t.Helper()
	f.n++
	name := fmt.Sprintf("g-s0-p%d", f.n)
	gp := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name, Labels: map[string]string{api.LabelGrid: "g"}}, Spec: api.GridPartitionSpec{
		GridRef: api.GridReference{Name: "g"}, LearnerRate: arbiter.MinLearnerRate, Replicas: 3, MinInSync: 1, PreferredPod: "g-s0-0"}}
	if err := f.admin.Create(t.Context(), gp); err != nil {
		t.Fatal(err)
	}
	return name
}

// put proposes r for the current record.
func (f *fixture) put(t *testing.T, name string, r arbiter.Record) (arbiter.Record, error) {
	t.Helper()
	now, err := f.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Version = name, now.Version
	return f.CompareAndSwap(t.Context(), r)
}

// reach brings a new partition to the record old by changes that are allowed.
func (f *fixture) reach(t *testing.T, old arbiter.Record) string {
	t.Helper()
	name := f.partition(t)
	if old.Spec.Standby {
		f.setSpec(t, name, arbiter.Spec{Standby: true})
	}
	for e := uint64(1); e <= old.Epoch; e++ {
		step := arbitertest.Rec(e, 1, fmt.Sprintf("c%d", e), arbitertest.A, arbitertest.A)
		step.Standby = old.Spec.Standby
		if e == old.Epoch {
			step = old
		}
		if step.Lineage > 1 {
			f.setSpec(t, name, arbiter.Spec{AcceptDataLossEpoch: e - 1})
		}
		if _, err := f.put(t, name, step); err != nil {
			t.Fatalf("on the way to %+v: epoch %d: %v", old, e, err)
		}
		if old.Spec.AcceptDataLossEpoch == e || e == old.Epoch && old.Spec.AcceptDataLossEpoch == 0 {
			f.setSpec(t, name, old.Spec)
		}
	}
	return name
}

// setSpec does what the operator does when an administrator has asked for it.
func (f *fixture) setSpec(t *testing.T, name string, s arbiter.Spec) {
	t.Helper()
	var gp api.GridPartition
	if err := f.admin.Get(t.Context(), client.ObjectKey{Namespace: f.ns, Name: name}, &gp); err != nil {
		t.Fatal(err)
	}
	gp.Spec.AcceptDataLossEpoch, gp.Spec.ReassertChangeID = int64(s.AcceptDataLossEpoch), s.ReassertChangeID
	gp.Spec.Site = siteOf(s)
	if err := f.admin.Update(t.Context(), &gp); err != nil {
		t.Fatal(err)
	}
}

// siteOf is what a spec has of a pair of sites.
func siteOf(s arbiter.Spec) *api.PartitionSite {
	if !s.Standby && s.Source == "" && s.Promote == (arbiter.Promote{}) && s.Demote == (arbiter.Demote{}) {
		return nil
	}
	site := &api.PartitionSite{Role: api.SiteActive, Source: s.Source}
	if s.Standby {
		site.Role = api.SiteStandby
	}
	if p := s.Promote; p.Term > 0 {
		site.Promote = &api.SitePromotion{Term: int64(p.Term), Mode: api.PromoteClean, Seq: int64(p.Seq), Hash: p.Hash}
		if p.Forced {
			site.Promote.Mode = api.PromoteForced
		}
	}
	if s.Demote.Wanted {
		site.Demote = &api.SiteDemotion{Term: int64(s.Demote.Term)}
	}
	return site
}

// The CEL rules of the CRD and the Go rules of the in-memory arbiter decide alike, with
// the same messages.
func TestCELAndGoRulesAgree(t *testing.T) {
	f := newFixture(t)
	for _, c := range arbitertest.Transitions() {
		t.Run(c.Name, func(t *testing.T) {
			name := f.reach(t, c.Old)
			_, err := f.put(t, name, c.New)
			goErr := arbiter.CheckTransition(c.Old, c.New)
			switch {
			case (err == nil) != (goErr == nil):
				t.Fatalf("the API server says %v, Go says %v", err, goErr)
			case err != nil && !errors.Is(err, arbiter.ErrRefused):
				t.Fatalf("got %v, want ErrRefused", err)
			case err != nil && !strings.Contains(err.Error(), strings.TrimPrefix(goErr.Error(), arbiter.ErrRefused.Error()+": ")):
				t.Fatalf("the API server says %v\nGo says %v", err, goErr)
			}
		})
	}
}

func TestRoundTripAndConflict(t *testing.T) {
	f := newFixture(t)
	name := f.partition(t)
	unclaimed, err := f.Get(t.Context(), name)
	if err != nil || unclaimed.Epoch != 0 || !reflect.DeepEqual(unclaimed.Spec, arbiter.Spec{Grid: "g", LearnerRate: arbiter.MinLearnerRate, Replicas: 3, MinInSync: 1, PreferredPod: "g-s0-0"}) {
		t.Fatalf("unclaimed: %+v, %v", unclaimed, err)
	}
	want := arbitertest.Rec(1, 1, "first", arbitertest.A, arbitertest.A)
	want.Observed = time.Now().Truncate(time.Second)
	claimed, err := f.put(t, name, want)
	if err != nil || !arbiter.SameConfiguration(claimed, want) || claimed.Version == unclaimed.Version || !claimed.Observed.Equal(want.Observed) {
		t.Fatalf("claimed: %+v, %v", claimed, err)
	}
	if !reflect.DeepEqual(claimed.Spec, unclaimed.Spec) {
		t.Fatalf("the status PUT changed the spec: %+v", claimed.Spec)
	}
	f.setSpec(t, name, arbiter.Spec{AcceptDataLossEpoch: 1, ReassertChangeID: "true-one"})
	asked, err := f.Get(t.Context(), name)
	if err != nil || asked.Spec.AcceptDataLossEpoch != 1 || asked.Spec.ReassertChangeID != "true-one" {
		t.Fatalf("what an administrator asked for: %+v, %v", asked.Spec, err)
	}
	late := arbitertest.Rec(2, 1, "late", arbitertest.A, arbitertest.A, arbitertest.B)
	late.Name, late.Version = name, unclaimed.Version
	if _, err := f.CompareAndSwap(t.Context(), late); !errors.Is(err, arbiter.ErrConflict) {
		t.Fatalf("stale version: %v", err)
	}
	if _, err := f.Get(t.Context(), "missing"); !errors.Is(err, arbiter.ErrNotFound) {
		t.Fatalf("unknown name: %v", err)
	}
}

// Primary and backup race for the next epoch: one wins, in either order.
func TestOneWinnerOfARace(t *testing.T) {
	f := newFixture(t)
	name := f.reach(t, arbitertest.Rec(2, 1, "c2", arbitertest.A, arbitertest.A, arbitertest.B))
	now, err := f.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		who := []arbiter.Member{arbitertest.A, arbitertest.B}[i%2]
		wg.Go(func() {
			r := arbitertest.Rec(3, 1, fmt.Sprintf("race%d", i), who, who)
			r.Name, r.Version = name, now.Version
			switch _, err := f.CompareAndSwap(t.Context(), r); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, arbiter.ErrConflict):
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d winners", won.Load())
	}
}

// nodeConfig has the rights of a pod: the Role that the operator creates.
func (f *fixture) nodeConfig(t *testing.T, names ...string) *rest.Config {
	t.Helper()
	user := "node-of-" + f.ns
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "node"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"ordergrid.dev"}, Resources: []string{"gridpartitions"}, ResourceNames: names, Verbs: []string{"get"}},
		{APIGroups: []string{"ordergrid.dev"}, Resources: []string{"gridpartitions"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"ordergrid.dev"}, Resources: []string{"gridpartitions/status"}, ResourceNames: names, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "node"},
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "node"},
		Subjects: []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: user}}}
	for _, o := range []client.Object{role, binding} {
		if err := f.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cfg := rest.CopyConfig(f.cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	return cfg
}

// With the Role of its shard a node can watch the grid's records, read and change its own,
// and nothing else.
func TestRoleIsEnough(t *testing.T) {
	f := newFixture(t)
	mine, other := f.partition(t), f.partition(t)
	cfg := f.nodeConfig(t, mine)
	a, err := kube.New(cfg, f.ns)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan arbiter.Record, 64)
	done := make(chan error, 1)
	go func() {
		done <- a.Watch(ctx, "g", func(n arbiter.News, err error) {
			if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "forbidden") { // RBAC reaches the authorizer a moment later
				t.Errorf("watch: %v", err)
			}
			for _, r := range n.Records {
				if r.Name == mine {
					seen <- r
				}
			}
		})
	}()
	first := <-seen
	if first.Epoch != 0 {
		t.Fatalf("first: %+v", first)
	}
	for e := uint64(1); e <= 5; e++ {
		r := arbitertest.Rec(e, 1, fmt.Sprintf("c%d", e), arbitertest.A, arbitertest.A)
		r.Name, r.Version = mine, first.Version
		if first, err = a.CompareAndSwap(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for r := range seen {
		if r.Epoch == 5 && r.ChangeID == "c5" {
			break
		}
	}
	if _, err := a.Get(t.Context(), other); err == nil || errors.Is(err, arbiter.ErrNotFound) {
		t.Errorf("another partition was readable: %v", err)
	}
	r := arbitertest.Rec(1, 1, "theft", arbitertest.A, arbitertest.A)
	r.Name, r.Version = other, "1"
	if _, err := a.CompareAndSwap(t.Context(), r); !errors.Is(err, arbiter.ErrRefused) {
		t.Errorf("another partition was writable: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("watch ended with %v", err)
	}
}

func TestEventsAreAboutTheObject(t *testing.T) {
	f := newFixture(t)
	name := f.partition(t)
	cfg := f.nodeConfig(t, name)
	a, err := kube.New(cfg, f.ns)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := a.Get(t.Context(), name); err == nil {
			break
		} else if !strings.Contains(err.Error(), "forbidden") {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	rec, err := kube.NewRecorder(cfg, a, "g-s0-0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go rec.Run(ctx)
	for i := range 200 { // far over the rate limit: it must neither block nor post them all
		rec.Event(name, "ReplicationGap", fmt.Sprintf("gap %d", i), true)
	}
	var events corev1.EventList
	for len(events.Items) == 0 {
		if err := f.admin.List(t.Context(), &events, client.InNamespace(f.ns)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	ev := events.Items[0]
	var gp api.GridPartition
	if err := f.admin.Get(t.Context(), client.ObjectKey{Namespace: f.ns, Name: name}, &gp); err != nil {
		t.Fatal(err)
	}
	if ev.InvolvedObject.UID != gp.UID || ev.Type != corev1.EventTypeWarning || ev.Reason != "ReplicationGap" || ev.Source.Host != "g-s0-0" {
		t.Fatalf("event %+v", ev)
	}
	if n := len(events.Items); n > 30 {
		t.Fatalf("%d events posted, the limit is a burst of 20 and 1 a second", n)
	}
}

// watched is a watch of grid g, and the requests that it makes.
func (f *fixture) watched(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) <-chan arbiter.News {
	t.Helper()
	cfg := rest.CopyConfig(f.cfg)
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	a, err := kube.New(cfg, f.ns)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	news, done := make(chan arbiter.News, 64), make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Watch(ctx, "g", func(n arbiter.News, err error) {
			if err == nil {
				news <- n
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return news
}

func names(n arbiter.News) (list []string) {
	for _, r := range n.Records {
		list = append(list, r.Name)
	}
	slices.Sort(list)
	return list
}

// All records of the grid come first, then each change, each new one, and each that is
// deleted; another grid's do not, whatever label it has.
func TestWatchOfAGrid(t *testing.T) {
	f := newFixture(t)
	first, second := f.partition(t), f.partition(t)
	stranger := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "h-p0", Labels: map[string]string{api.LabelGrid: "g"}},
		Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "h"}, Replicas: 1, MinInSync: 1, PreferredPod: "h-s0-0"}}
	if err := f.admin.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	news := f.watched(t, nil)
	if n := <-news; !n.All || !slices.Equal(names(n), []string{first, second}) {
		t.Fatalf("the list: %+v", n)
	}
	if _, err := f.put(t, second, arbitertest.Rec(1, 1, "c", arbitertest.A, arbitertest.A)); err != nil {
		t.Fatal(err)
	}
	if n := <-news; n.All || !slices.Equal(names(n), []string{second}) || n.Records[0].Epoch != 1 {
		t.Fatalf("a change: %+v", n)
	}
	if err := f.admin.Delete(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	third := f.partition(t)
	if n := <-news; n.All || !slices.Equal(names(n), []string{third}) {
		t.Fatalf("a new one: %+v", n)
	}
	gp := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: second}}
	if err := f.admin.Delete(t.Context(), gp); err != nil {
		t.Fatal(err)
	}
	if n := <-news; n.All || len(n.Records) != 0 || !slices.Equal(n.Gone, []string{second}) {
		t.Fatalf("a deleted one: %+v", n)
	}
}

// tamper changes what an API server answers.
type tamper func(*http.Request) *http.Response

func (f tamper) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if resp := f(r); resp != nil {
			return resp, nil
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// However a stream ends, all records are listed again, which covers lost changes and
// deletions. An expired version (410, as a response or as an event) is such an end.
func TestWatchBeginsAgainWithAList(t *testing.T) {
	gone := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}`
	for what, answer := range map[string]struct {
		status int
		body   string
	}{
		"410 as the answer":  {http.StatusGone, gone},
		"410 as an event":    {http.StatusOK, `{"type":"ERROR","object":` + gone + `}` + "\n"},
		"a stream that ends": {http.StatusOK, ""},
		"not a stream":       {http.StatusOK, "<html>"},
		"a proxy's error":    {http.StatusBadGateway, ""},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			kept, lost := f.partition(t), f.partition(t)
			var streams atomic.Int32
			news := f.watched(t, tamper(func(r *http.Request) *http.Response {
				if r.URL.Query().Get("watch") == "" || streams.Add(1) > 1 {
					return nil
				}
				// What happens now is in no stream.
				if err := f.admin.Delete(t.Context(), &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: lost}}); err != nil {
					t.Error(err)
				}
				return &http.Response{StatusCode: answer.status, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(answer.body)), Request: r}
			}).wrap)
			if n := <-news; !n.All || !slices.Equal(names(n), []string{kept, lost}) {
				t.Fatalf("the first list: %+v", n)
			}
			if n := <-news; !n.All || !slices.Equal(names(n), []string{kept}) {
				t.Fatalf("after the stream: %+v", n)
			}
		})
	}
}

// An idle node has one stream, whatever the number of partitions, and sends no requests.
func TestRequestsOfAWatch(t *testing.T) {
	f := newFixture(t)
	for range 8 {
		f.partition(t)
	}
	var mu sync.Mutex
	var asked []string
	news := f.watched(t, tamper(func(r *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		q := r.URL.Query()
		asked = append(asked, fmt.Sprintf("%s %s watch=%s label=%s limited=%t", r.Method, path.Base(r.URL.Path), q.Get("watch"), q.Get("labelSelector"), q.Get("timeoutSeconds") != ""))
		return nil
	}).wrap)
	<-news
	last := f.partition(t)
	if n := <-news; n.Records[0].Name != last {
		t.Fatalf("%+v", n)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"GET gridpartitions watch= label=ordergrid.dev/grid=g limited=false", "GET gridpartitions watch=true label=ordergrid.dev/grid=g limited=true"}
	if !slices.Equal(asked, want) {
		t.Fatalf("asked %q, want %q", asked, want)
	}
}
