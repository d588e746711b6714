//go:build e2e

package operations

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/probe/clock"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

const (
	// calmFor is how long the grid must be healthy before a step, and quiet how long orders continue afterwards, so that
	// the plot shows how it was without.
	calmFor, quiet = 8 * time.Second, 8 * time.Second
	// imageVariable names the recorder's image where it is not the local cluster's.
	imageVariable = "ORDER_PROBE_IMAGE"
	// mostHistory is read, in bytes.
	mostHistory = 1 << 30
	// rateVariable sets the recorder's orders a second; without it they are defaultRate.
	rateVariable = "ORDERGRID_OPERATIONS_RATE"
	defaultRate  = 1000
)

// ratePerProbe is the rate of each of the recorder's two probes, in orders a second.
func (f *field) ratePerProbe() int {
	f.Helper()
	text := os.Getenv(rateVariable)
	if text == "" {
		return defaultRate / 2
	}
	rate, err := strconv.Atoi(text)
	if err != nil || rate < 2 || rate > 100_000 {
		f.Fatalf("%s: value %q, allowed: 2..100000 orders a second", rateVariable, text)
	}
	return rate / 2
}

// recorder puts orders on the grid while things are done to it.
type recorder struct {
	*field
	name  string
	api   *drill.Client
	steps int
}

// record begins to put orders on the grid, at the rate of rateVariable. The grid has to be there, with at least copies of every order;
// change alters the recorder's manifest, in pairs of old and new.
func (f *field) record(ctx context.Context, name string, copies int, change ...string) *recorder {
	f.Helper()
	manifest, err := os.ReadFile("testdata/recorder.yaml")
	if err != nil {
		f.Fatal(err)
	}
	token, uid := rand.Text(), rand.Text()
	authority, err := pki.New(pkix.Name{CommonName: "recorder"}, pki.Period{})
	if err != nil {
		f.Fatal(err)
	}
	cert, key, err := authority.Issue(pki.Identity{Names: []string{drill.ServerNameOf(uid)}})
	if err != nil {
		f.Fatal(err)
	}
	secure, err := drill.Trusting(authority.PEM, uid)
	if err != nil {
		f.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	fill := append(change, "@CERT@", encode(cert), "@KEY@", encode(key), "@IMAGE@", cmp.Or(os.Getenv(imageVariable), "ordergrid.dev/order-probe:dev"), "@RATE@", strconv.Itoa(f.ratePerProbe()), "@TOKEN@", token, "@COPIES@", strconv.Itoa(copies))
	remove := func(ctx context.Context) (string, error) {
		return f.kube.Run(ctx, "delete", "pod", "recorder", "-n", namespace, "--ignore-not-found", "--wait", "--grace-period=1")
	}
	f.must(remove(ctx))
	f.must(f.kube.Apply(ctx, []byte(strings.NewReplacer(fill...).Replace(string(manifest)))))
	r := &recorder{field: f, name: name}
	t := f.T
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			out, err := f.kube.Run(ctx, "logs", "recorder", "-n", namespace, "--tail=100")
			t.Logf("$ kubectl logs recorder (%v)\n%s", err, out)
		}
		if _, err := remove(ctx); err != nil {
			t.Error(err)
		}
	})
	f.must(f.kube.Run(ctx, "wait", "pod/recorder", "-n", namespace, "--for=condition=Ready", "--timeout=2m"))
	r.api = drill.NewClient("https://"+net.JoinHostPort(r.pod(ctx).Status.PodIP, strconv.Itoa(drill.Port)), token, secure)
	f.eventually(ctx, "the recorder puts orders on the grid", patience, func(ctx context.Context) error {
		err := r.phase(ctx, drill.Running)
		if err != nil && r.pod(ctx).Status.Phase == corev1.PodFailed {
			f.Fatalf("the recorder has ended: %v", err)
		}
		return err
	})
	return r
}

func (r *recorder) pod(ctx context.Context) *corev1.Pod {
	r.Helper()
	pod := &corev1.Pod{}
	if err := r.kube.Get(ctx, pod, "pod", "recorder", "-n", namespace); err != nil {
		r.Fatal(err)
	}
	return pod
}

func (r *recorder) phase(ctx context.Context, wanted drill.Phase) error {
	s, err := r.api.State(ctx)
	if err == nil && s.Phase != wanted {
		err = fmt.Errorf("the recorder is %s %s%s", s.Phase, s.Error, s.Progress)
	}
	return err
}

// step does something to the grid while orders flow: act returns the evidence that it was done. The step's type decides whether
// it ends grid processes (drill.EndsProcess), and its pods which; without pods, all.
func (r *recorder) step(ctx context.Context, s drill.Step, act func() (witness string)) *drill.Record {
	r.Helper()
	r.calm(ctx)
	return r.hit(ctx, s, func() {}, act)
}

// calm waits until the grid has been healthy for a while.
func (r *recorder) calm(ctx context.Context) {
	r.Helper()
	r.eventually(ctx, fmt.Sprintf("%s without trouble", calmFor), patience, func(ctx context.Context) error {
		state, err := r.api.State(ctx)
		if err == nil && state.Calm < calmFor {
			err = fmt.Errorf("calm for %s; %s", state.Calm.Round(time.Second), cmp.Or(state.Missing, fmt.Sprintf("the longest gap of the last seconds is %s", state.WorstGap)))
		}
		return err
	})
}

// hit is a step of a fault that is over once it is injected; act waits for its effect.
func (r *recorder) hit(ctx context.Context, s drill.Step, inject func(), act func() (witness string)) *drill.Record {
	r.Helper()
	index := r.steps
	r.steps++
	s.Fault, s.Provider, s.Repetition = cmp.Or(s.Fault, r.name), cmp.Or(s.Provider, "kubectl"), 1
	if _, err := r.api.Begin(ctx, index, s); err != nil {
		r.Fatal(err)
	}
	inject()
	r.tell(ctx, index, drill.Injected, drill.Note{})
	witness := drill.Witness{State: drill.NotSeen}
	if seen := act(); seen != "" {
		witness = drill.Witness{State: drill.Seen, Message: seen}
	}
	r.tell(ctx, index, drill.Recovered, drill.Note{Witness: witness})
	var record *drill.Record
	r.eventually(ctx, s.What+": served, and redundant again", patience, func(ctx context.Context) (err error) {
		if record, err = r.api.Step(ctx, index); err == nil && !record.Over {
			err = errors.New(cmp.Or(record.Missing, "a session is without service"))
		}
		return err
	})
	r.Logf("%s: %+v; p99 %s, longest gap of a session %s; %s", s.What, record.Counts, record.P99, record.WorstGap, witness.Message)
	_ = clock.Wait(ctx, quiet)
	return record
}

func (r *recorder) tell(ctx context.Context, index int, e drill.Event, n drill.Note) {
	r.Helper()
	if _, err := r.api.Tell(ctx, index, e, n); err != nil {
		r.Fatal(err)
	}
}

// finish ends the orders, has every copy and every sink compared with what was acknowledged, keeps certificate and plot,
// and wants no order lost, repeated or failed.
func (r *recorder) finish(ctx context.Context) *certificate.Certificate {
	r.Helper()
	end := drill.Finish{Context: drill.Context{Drill: namespace + "/" + r.name, Grid: namespace + "/" + grid, Suite: "operations", StepsAsked: r.steps,
		Expect: drill.Expect{FailedOrders: drill.FailedOrdersNone}}}
	for _, pod := range r.pods(ctx) {
		if pod.Status.PodIP != "" {
			end.Nodes = append(end.Nodes, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(api.DataPort)))
		}
	}
	if err := r.api.Finish(ctx, end); err != nil {
		r.Fatal(err)
	}
	r.eventually(ctx, "a certificate", 10*time.Minute, func(ctx context.Context) error { return r.phase(ctx, drill.Done) })
	dir := filepath.Join(r.root, "out", "operations", r.name)
	if err := r.fetch(ctx, dir); err != nil {
		r.Fatal(err)
	}
	c, err := Keep(dir)
	if err != nil {
		r.Fatal(err)
	}
	failed := c.Orders.Created - c.Orders.Acknowledged
	r.Logf("%s: %s %v\ncreated %d, acknowledged %d, lost %d, duplicated %d, gaps %d, out of order %d; negative control: %s\n%s%s", r.name, c.Verdict, c.Reasons,
		c.Orders.Created, c.Orders.Acknowledged, c.Ledger.Lost, c.Ledger.Duplicated, c.Ledger.Gaps, c.Ledger.OutOfOrder, c.Control.Result, Header, Rows(c))
	if c.Ledger.Missing()+c.Ledger.Duplicated+c.Ledger.Gaps+c.Ledger.OutOfOrder != 0 || c.Verdict == certificate.Violated {
		r.Errorf("%s: a promise about orders was broken: %v", r.name, c.Reasons)
	}
	if failed != 0 || c.Orders.Acknowledged == 0 {
		r.Errorf("%s: %d of %d orders failed, wanted none of many: %v", r.name, failed, c.Orders.Created, c.Notes)
	}
	if c.Control.Result != certificate.ControlPassed || len(c.Unread) > 0 {
		r.Errorf("%s: the certificate proves nothing: negative control %s, unread %v", r.name, c.Control.Result, c.Unread)
	}
	for i := range c.Steps {
		if w := c.Steps[i].Witness; w.State != drill.Seen {
			r.Errorf("%s: nothing shows that it was done", c.Steps[i].What)
		}
	}
	return c
}

// fetch takes history and certificate from the recorder.
func (r *recorder) fetch(ctx context.Context, dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, certificate.HistoryFile))
	if err != nil {
		return err
	}
	_, err = r.api.History(ctx, f, mostHistory)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	canonical, err := r.api.Certificate(ctx)
	if err != nil {
		return err
	}
	text, err := r.api.Text(ctx)
	if err != nil {
		return err
	}
	page, err := r.api.Page(ctx)
	if err != nil {
		return err
	}
	return certificate.Write(dir, canonical, text, page)
}
