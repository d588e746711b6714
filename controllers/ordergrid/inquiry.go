package ordergrid

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

const (
	// troubleAfter is how long a primary may be missing before its grid nodes are asked what is left. A take-over needs
	// a fraction of it.
	troubleAfter = 5 * time.Second
	// lookAgain is the interval of queries while the problem lasts.
	lookAgain = 5 * time.Second
	// nodeTimeout bounds one query.
	nodeTimeout = 2 * time.Second
	// askAtOnce bounds the concurrent queries of one grid.
	askAtOnce = 64
)

// NewNodeClient returns the operator's HTTP client for grid nodes.
func NewNodeClient() *http.Client { return nodestatus.NewClient(nodeTimeout, nil) }

// finding is what is known about one partition.
type finding struct {
	record *api.GridPartition
	memory *recollection

	journal bool // its members have one on a claim
	asked   bool // the pods of the grid were asked, as far as they have an address
	silent  bool // one of them in which a process may run did not answer
	loss    loss
	loading loading // of the archive that it begins with
	lead    *lead   // a configuration ahead of the record; nil: none is known
	// pending is what an annotation waits for; it is part of the condition's message.
	pending map[string]string
}

// answer is what is known of one pod.
type answer struct {
	pod  *corev1.Pod      // nil: there is none of that name
	node *nodestatus.Node // nil: it did not answer
}

// inquire checks partitions that have problems. Healthy ones cost nothing: their nodes are asked once after the
// operator has started, and otherwise only while the primary is missing, the record went back, or an annotation
// requests something.
func (r *run) inquire(ctx context.Context) error {
	r.findings = make(map[string]*finding, len(r.partitions))
	remembered := r.remembered.recollect(r.partitions)
	answers := map[string]*answer{}
	var troubled []*finding
	for i := range r.partitions {
		f := &finding{record: &r.partitions[i], memory: remembered[r.partitions[i].UID], pending: map[string]string{}}
		r.findings[f.record.Name] = f
		ask, wait := f.needsAnswers(r.Clock.Now(), readyIn(r.pods, f.record.Status.Primary))
		r.lookWithin(wait)
		if !ask {
			continue
		}
		troubled = append(troubled, f)
	}
	if len(troubled) > 0 { // partitions move: a record that went back may name pods that no longer hold them
		for i := range r.pods {
			answers[r.pods[i].Name] = &answer{pod: &r.pods[i]}
		}
	}
	r.ask(ctx, r.grid, answers)
	var failed []error
	for _, f := range troubled {
		f.journal = r.grid.Spec.Journal != nil
		if err := r.judge(ctx, f, answers); err != nil {
			failed = append(failed, fmt.Errorf("check %s: %w", f.record.Name, err))
		}
		if f.unsettled() {
			r.lookWithin(lookAgain)
		}
	}
	return errors.Join(failed...)
}

// needsAnswers reports whether the nodes have to be asked now, or the time until it may become necessary.
func (f *finding) needsAnswers(now time.Time, primaryReady bool) (ask bool, wait time.Duration) {
	m, p := f.memory, f.record
	if here := configurationOf(p); !m.highest.ahead(here) {
		m.highest = here
	}
	if p.Status.Epoch == 0 { // only the nodes know the state before this object
		return madeAgain(p) || f.wanted(api.AnnotationReassert) || p.Spec.Restore != nil, 0
	}
	if primaryReady {
		m.awaySince = time.Time{}
	} else if m.awaySince.IsZero() {
		m.awaySince = now
	}
	ask = !m.met || m.highest.ahead(configurationOf(p)) || f.wanted(api.AnnotationAcceptDataLoss) || f.wanted(api.AnnotationReassert)
	m.met = true
	if !primaryReady && !ask {
		wait = troubleAfter - now.Sub(m.awaySince)
	}
	return ask || !primaryReady && wait <= 0, max(wait, 0)
}

// wanted reports whether that annotation requests something.
func (f *finding) wanted(annotation string) bool {
	_, there := f.record.Annotations[annotation]
	return there
}

// unsettled reports whether the answer may change without triggering a reconcile.
func (f *finding) unsettled() bool {
	return !f.memory.awaySince.IsZero() || f.record.Spec.Restore != nil && f.record.Status.Epoch == 0 || f.lead != nil || madeAgain(f.record) || f.wanted(api.AnnotationAcceptDataLoss) || f.wanted(api.AnnotationReassert)
}

// ask queries every pod that has an address, concurrently.
func (r *Reconciler) ask(ctx context.Context, grid *api.OrderGrid, answers map[string]*answer) {
	places := make(chan struct{}, askAtOnce)
	var wg sync.WaitGroup
	for _, a := range answers {
		if a.pod == nil || a.pod.Status.PodIP == "" {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			a.node = r.askNode(ctx, grid, a.pod)
		})
	}
	wg.Wait()
}

func (r *Reconciler) askNode(ctx context.Context, grid *api.OrderGrid, pod *corev1.Pod) *nodestatus.Node {
	n, err := nodestatus.Get(ctx, r.Nodes, statusAddress(pod))
	if err == nil && (n.Pod != pod.Name || n.Grid != grid.Name) {
		// The address has been given to another pod.
		err = fmt.Errorf("pod %q of grid %q answered in its place", n.Pod, n.Grid)
	}
	if err != nil {
		questionsTotal.WithLabelValues("failed").Inc()
		ctrl.LoggerFrom(ctx).Info("a grid node does not answer", "pod", pod.Name, "reason", err.Error())
		return nil
	}
	questionsTotal.WithLabelValues("answered").Inc()
	return n
}

func statusAddress(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(api.HTTPPort))
}

// judge evaluates the answers. Serious conclusions are checked against the API server first, read after the nodes
// answered: the cache may be behind, and a node may have just changed the record.
func (r *Reconciler) judge(ctx context.Context, f *finding, answers map[string]*answer) error {
	f.asked = true
	for _, a := range answers {
		f.silent = f.silent || a.node == nil && mayRun(a.pod)
	}
	f.loading = loadedBy(f.record.Name, answers)
	f.lead = f.findLead(answers)
	if f.record.Status.Epoch > 0 && (!f.memory.awaySince.IsZero() || f.wanted(api.AnnotationAcceptDataLoss)) {
		var err error
		if f.loss, err = r.judgeLoss(ctx, f, answers); err != nil {
			return err
		}
	}
	if f.lead == nil && f.loss.verdict != fateGone {
		return nil
	}
	now := &api.GridPartition{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(f.record), now); err != nil {
		return client.IgnoreNotFound(err) // the next pass handles its deletion
	}
	if configurationOf(now) != configurationOf(f.record) {
		f.record, f.loss = now, loss{} // judged again when the cache has it, too
		if here := configurationOf(now); !f.memory.highest.ahead(here) {
			f.memory.highest = here
		}
		f.lead = f.findLead(answers)
	}
	if f.lead != nil && len(f.lead.holders) > 0 {
		f.loss = loss{} // the record names former members; the present ones hold the orders
	}
	if f.lead != nil && f.lead.ahead(f.memory.highest) {
		f.memory.highest = f.lead.configuration
	}
	return nil
}

// mayRun reports whether a process may run in a pod, as far as Kubernetes reports: it has a Kubernetes node, which has
// not reported that the container ended, or never began. One that begins later is empty.
func mayRun(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" && pod.Status.PodIP == "" {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == containerName && c.State.Running == nil
	})
}

// livePod is the pod from the API server, nil if there is none.
func (r *Reconciler) livePod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return pod, err
}
