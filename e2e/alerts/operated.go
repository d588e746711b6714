package alerts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/dashboards/live"
	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// dropEvery is how many orders of a partition the nodes keep for each that they lose.
const dropEvery = 50

// operatedCase is one that needs an operator. All of them share one world, one after
// the other.
type operatedCase struct {
	alerts []alert
	how    string
	// prepare sets up the precondition of the cause; may be nil.
	prepare, cause, undo func(ctx context.Context, r *live.Run) error
	limit                time.Duration // for firing; 0 is a minute
}

// operated are those cases. The one that leaves something behind comes last.
func operated() []operatedCase {
	var backup live.Backup
	var strangers newcomers
	var drill wedged
	return []operatedCase{
		{alerts: []alert{named("ProbeIncorrect")}, how: fmt.Sprintf("an OrderProbe measures nodes that throw every %dth order away; the time includes the run", dropEvery),
			cause: measureLoss,
			undo: func(ctx context.Context, r *live.Run) error {
				return r.Kube().Delete(ctx, &api.OrderProbe{ObjectMeta: object("control")})
			}},
		{alerts: []alert{named("ConfigurationRegressed")}, how: "etcd gets the records back that it had before a fail-over",
			prepare: func(ctx context.Context, r *live.Run) (err error) {
				backup, err = r.Outdate(ctx)
				return err
			},
			cause: func(context.Context, *live.Run) error { return backup.Restore() },
			undo:  func(ctx context.Context, r *live.Run) error { return r.Reassert(ctx) }},
		{alerts: []alert{named("DataLossSuspected"), named("NoPrimary", "seen_by", "operator")}, how: "SIGKILL of both nodes, which come back empty",
			cause: func(ctx context.Context, r *live.Run) error { return r.KillAll(ctx, time.Second) },
			undo:  func(ctx context.Context, r *live.Run) error { return r.AcceptLoss(ctx) }},
		{alerts: []alert{named("NotSchedulable"), named("FabricNotReady")}, how: "a grid with spec.fabric, whose pods are not scheduled, in a cluster without Multus",
			cause: func(ctx context.Context, r *live.Run) error { return r.Kube().Create(ctx, nowhere()) },
			undo:  func(ctx context.Context, r *live.Run) error { return r.Kube().Delete(ctx, nowhere()) }},
		{alerts: []alert{named("TLSNotReady")}, how: "a grid whose certificates are to come from cert-manager, in a cluster without it",
			cause: func(ctx context.Context, r *live.Run) error { return r.Kube().Create(ctx, uncertified()) },
			undo:  func(ctx context.Context, r *live.Run) error { return r.Kube().Delete(ctx, uncertified()) }},
		{alerts: []alert{named("GridInsecure", "grid", "open")}, how: "a grid with spec.security.insecure: Accept",
			cause: func(ctx context.Context, r *live.Run) error { return r.Kube().Create(ctx, open()) },
			undo:  func(ctx context.Context, r *live.Run) error { return r.Kube().Delete(ctx, open()) }},
		{alerts: []alert{named("FunctionsNotLoaded", "grid", live.Grid)}, how: "a grid is to call a function whose ConfigMap has another module than the GridFunction names", limit: 2 * time.Minute,
			cause: func(ctx context.Context, r *live.Run) error {
				for _, o := range otherModule() {
					if err := r.Kube().Create(ctx, o); err != nil {
						return err
					}
				}
				return callbacks(ctx, r, `{"post":[{"name":"counts"}]}`)
			},
			undo: func(ctx context.Context, r *live.Run) error {
				all := []error{callbacks(ctx, r, "null")}
				for _, o := range otherModule() {
					all = append(all, r.Kube().Delete(ctx, o))
				}
				return errors.Join(all...)
			}},
		{alerts: []alert{named("PartitionsImbalanced")}, how: "a grid of one shard gets a second one, whose pods are not created", limit: 3 * time.Minute,
			prepare: lopsided,
			cause: func(ctx context.Context, r *live.Run) error {
				return r.Kube().Patch(ctx, oneSided(), kube.RawPatch(types.MergePatchType, []byte(`{"spec":{"shards":2}}`)))
			},
			undo: func(ctx context.Context, r *live.Run) error { return r.Kube().Delete(ctx, oneSided()) }},
		{alerts: []alert{named("PartitionMoveStuck")}, how: "a second shard whose pods are ready by the API server's word, with no process in them", limit: 2 * time.Minute,
			cause: func(ctx context.Context, r *live.Run) error { return r.EmptyShard(ctx) },
			undo:  func(ctx context.Context, r *live.Run) error { return r.RemoveEmptyShard(ctx) }},
		{alerts: []alert{named("TokensNotReviewed")}, how: "the nodes lose the right to have tokens looked at, and clients come with new tokens",
			prepare: strangers.prepare, cause: strangers.cause, undo: strangers.undo},
		{alerts: []alert{named("DrillFaultsRemain")}, how: "Chaos Mesh goes away with its finalizer on a drill's fault, and the drill is aborted; 30 s are the operator's",
			prepare: drill.prepare, cause: drill.cause, undo: drill.undo, limit: 2 * time.Minute},
		{alerts: []alert{named("OperatorDown")}, how: "the operator is stopped",
			cause: func(_ context.Context, r *live.Run) error { r.StopOperator(); return nil },
			undo:  func(_ context.Context, r *live.Run) error { return r.StartOperator() }},
		{alerts: []alert{named("ReconcileErrors", "controller", "ordergrid")}, how: "a foreign Service has the name of an OrderGrid's",
			cause: func(ctx context.Context, r *live.Run) error {
				for _, o := range taken() {
					if err := r.Kube().Create(ctx, o); err != nil {
						return err
					}
				}
				return nil
			},
			undo: func(ctx context.Context, r *live.Run) error {
				var all []error
				for _, o := range taken() {
					all = append(all, r.Kube().Delete(ctx, o))
				}
				return errors.Join(all...)
			}},
	}
}

func object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: live.Namespace}
}

// nowhere is a grid that the world without nodes and networks has no place for.
func nowhere() kube.Object {
	return &api.OrderGrid{ObjectMeta: object("nowhere"), Spec: api.OrderGridSpec{Replicas: 2, Partitions: 2, Memory: resource.MustParse("128Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept},
		Fabric: &api.FabricSpec{Network: api.NetworkReference{Name: "infiniband"}, Interface: "fabric0"}}}
}

// uncertified is a grid without an issuer of certificates.
func uncertified() kube.Object {
	return &api.OrderGrid{ObjectMeta: object("uncertified"), Spec: api.OrderGridSpec{Replicas: 2, Partitions: 2, Memory: resource.MustParse("128Mi"),
		Security: api.SecuritySpec{TLS: &api.TLSSpec{Issuer: api.IssuerCertManager, CertManager: &api.CertManagerSpec{IssuerRef: api.IssuerReference{Name: "desk"}}}}}}
}

// open is a grid without authentication of clients.
func open() kube.Object {
	return &api.OrderGrid{ObjectMeta: object("open"), Spec: api.OrderGridSpec{Replicas: 2, Partitions: 2, Memory: resource.MustParse("128Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
}

// otherModule are a GridFunction and a ConfigMap with a module that it does not name.
func otherModule() []kube.Object {
	return []kube.Object{
		&corev1.ConfigMap{ObjectMeta: object("modules"), BinaryData: map[string][]byte{"counts.wasm": examples.CountAccounts}},
		&api.GridFunction{ObjectMeta: object("counts"), Spec: api.GridFunctionSpec{Kind: api.FunctionPost, Module: api.FunctionModule{
			ConfigMap: &api.ConfigMapFile{Name: "modules", Key: "counts.wasm"}, SHA256: fmt.Sprintf("%x", sha256.Sum256(examples.AuditTrail))}}},
	}
}

// callbacks sets spec.callbacks of the grid of the run.
func callbacks(ctx context.Context, r *live.Run, json string) error {
	return r.Kube().Patch(ctx, &api.OrderGrid{ObjectMeta: object(live.Grid)}, kube.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"callbacks":%s}}`, json)))
}

// oneSided is a grid with all its partitions on one shard.
func oneSided() *api.OrderGrid {
	return &api.OrderGrid{ObjectMeta: object("one-sided"), Spec: api.OrderGridSpec{Shards: 1, Replicas: 2, Partitions: 4, Memory: resource.MustParse("128Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
}

// lopsided makes it, and waits for its records.
func lopsided(ctx context.Context, r *live.Run) error {
	grid := oneSided()
	if err := r.Kube().Create(ctx, grid); err != nil {
		return err
	}
	return r.Until(ctx, "the partitions of the grid have records", func() bool {
		now := &api.OrderGrid{}
		return r.Kube().Get(ctx, kube.ObjectKeyFromObject(grid), now) == nil && len(now.Status.Partitions) == int(grid.Spec.Partitions)
	})
}

// taken are a Service, and a grid that needs one of that name.
func taken() []kube.Object {
	const grid = "taken"
	return []kube.Object{
		&corev1.Service{ObjectMeta: object(api.ClientServiceName(grid)), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&api.OrderGrid{ObjectMeta: object(grid), Spec: api.OrderGridSpec{Replicas: 2, Partitions: 2, Memory: resource.MustParse("128Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept}}},
	}
}

func measureLoss(ctx context.Context, r *live.Run) error {
	if !live.CanDrop {
		return cannot{"needs nodes that can be told to lose orders: build this program with -tags faulty, as `make alerts-check` does"}
	}
	if err := r.Probe(ctx, "control", []int32{200}, time.Second, 5*time.Second); err != nil {
		return err
	}
	verdict, err := r.Ended(ctx, "control")
	if err == nil && verdict != string(api.VerdictIncorrect) {
		err = fmt.Errorf("the verdict on a grid that loses orders is %s, want %s", verdict, api.VerdictIncorrect)
	}
	return err
}

// operatedCases runs them with an API server, the operator and nodes that find each
// other by its records.
func operatedCases(ctx context.Context, o Options, results *results) (err error) {
	wanted := slices.DeleteFunc(operated(), func(c operatedCase) bool { return !o.wants(c.alerts) })
	if len(wanted) == 0 {
		return nil
	}
	if _, err := envtest.FindAssets(); err != nil {
		for _, c := range wanted {
			results.add(c.alerts, c.how, nil, cannot{err.Error()})
		}
		return nil
	}
	options := live.Options{Bin: o.Bin, Dir: filepath.Join(o.Dir, "operated"), Prometheus: o.Prometheus, Labels: o.Labels,
		Rules: filepath.Join(o.Dir, "rules.yml"), Say: o.Say}
	if live.CanDrop {
		options.DropEvery = dropEvery
	}
	r, err := live.Start(ctx, options)
	defer func() { err = errors.Join(err, r.Close()) }()
	if err != nil {
		return err
	}
	_ = clock.Wait(ctx, 8*time.Second) // a few scrapes of a healthy grid
	for _, c := range wanted {
		rows, err := c.run(ctx, o, r)
		if results.add(c.alerts, c.how, rows, err); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (c operatedCase) run(ctx context.Context, o Options, r *live.Run) ([]row, error) {
	o.Say("%v: %s", c.alerts, c.how)
	if err := r.Redundant(ctx); err != nil {
		return nil, err
	}
	if c.prepare != nil {
		if err := c.prepare(ctx, r); err != nil {
			return nil, fmt.Errorf("prepare %v: %w", c.alerts, err)
		}
	}
	return trial{
		alerts: c.alerts, how: c.how, limit: c.limit,
		cause: func(ctx context.Context) error { return c.cause(ctx, r) },
		undo:  func(ctx context.Context) error { return c.undo(ctx, r) },
	}.run(ctx, o, &prometheus.Server{URL: live.PrometheusURL})
}
