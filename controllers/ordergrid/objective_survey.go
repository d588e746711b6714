package ordergrid

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// failures are the reasons of refusals that are the end of an order, or that its sender would call a failure. Those that
// belong to a session on its way to another primary are none: the client goes on by itself.
var failures = []string{"bad_fix", "duplicate_cl_ord_id", "too_large", "capacity", "overloaded", "insufficient_in_sync"}

// updateMemory is what the operator remembers of one grid's update. Losing it costs one more window.
type updateMemory struct {
	before *survey   // the window began with it
	missed string    // how orders did not keep to the objective when they were judged last; empty: they did
	since  time.Time // when that began
}

// held is how a change of the grid is held by what orders meet, and what else it waits for.
type held struct {
	missed  string   // how orders do not keep to spec.updateStrategy.objective; empty: they do, or nobody knows
	tooLong bool     // and have not for spec.updateStrategy.progressDeadline
	waiting []string // what it waits for
	again   time.Duration
}

func (h *held) lookWithin(d time.Duration) { h.again = sooner(h.again, d) }

// keepToObjective reports whether what would be done now may be, because orders keep to the objective, and says what speaks
// against it. asked is whether there is anything to do, and next names it.
func (r *run) keepToObjective(ctx context.Context, o *observation, m *updateMemory, h *held, asked bool, next string) (open bool) {
	objective, now := o.grid.Spec.UpdateStrategy.Objective, r.Clock.Now()
	if objective == nil {
		*m = updateMemory{}
		return asked
	}
	if !asked {
		m.before = nil // the next window begins when something could be done: a hand-over is not in it
		return false
	}
	if m.missed == "" && heldBack(o.grid) { // another process of the operator found that
		m.missed, m.since = "orders did not keep to spec.updateStrategy.objective when they were measured last", now
	}
	window := objective.Window.Duration
	if m.before == nil || now.Sub(m.before.at) > 2*window {
		m.before = r.survey(ctx, o, now)
	}
	if left := window - now.Sub(m.before.at); left > 0 {
		h.lookWithin(left)
		if m.missed == "" {
			h.waiting = append(h.waiting, fmt.Sprintf("orders are measured for %s before %s", window, next))
		}
		m.hold(o, h, now)
		return false
	}
	latest := r.survey(ctx, o, now)
	state, text := judgeOrders(objective, m.before, latest)
	m.before = latest
	open = m.conclude(h, state, text, now)
	if m.before != nil {
		h.lookWithin(window)
	}
	m.hold(o, h, now)
	return open
}

// conclude takes what was found about the orders of a window.
func (m *updateMemory) conclude(h *held, state orderState, text string, now time.Time) (open bool) {
	switch {
	case state == ordersMiss:
		if m.missed == "" {
			m.since = now
		}
		m.missed = text
	case state == ordersUnknown, state == ordersFew && m.missed != "": // silence is no proof that it is well again
		h.waiting = append(h.waiting, text)
	default:
		*m = updateMemory{}
		h.waiting = append(h.waiting, text)
		return true
	}
	return false
}

// hold says that the change is held, and whether that has lasted too long.
func (m *updateMemory) hold(o *observation, h *held, now time.Time) {
	h.missed = m.missed
	h.tooLong = m.missed != "" && now.Sub(m.since) >= o.grid.Spec.UpdateStrategy.ProgressDeadline.Duration
}

// heldBack says whether the update was held by its objective when status was written last: that survives the operator.
func heldBack(grid *api.OrderGrid) bool {
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionProgressing)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reasonObjectiveMissed
}

// survey asks every pod of the grid, many at the same time.
func (r *Reconciler) survey(ctx context.Context, o *observation, now time.Time) *survey {
	s := &survey{at: now, pods: map[string]*orderCount{}}
	places := make(chan struct{}, askAtOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range o.pods {
		pod := &o.pods[i]
		if pod.Status.PodIP == "" || !podReady(pod) {
			continue // it is no primary
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			c, err := r.countOf(ctx, pod)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				questionsTotal.WithLabelValues("failed").Inc()
				s.silent = append(s.silent, fmt.Sprintf("%s: %v", pod.Name, err))
				return
			}
			questionsTotal.WithLabelValues("answered").Inc()
			s.pods[pod.Name] = c
		})
	}
	wg.Wait()
	return s
}

func (r *Reconciler) countOf(ctx context.Context, pod *corev1.Pod) (*orderCount, error) {
	reading, err := scrape.Get(ctx, r.Nodes, statusAddress(pod))
	if err != nil {
		return nil, err
	}
	latency, err := reading.Latency()
	if err != nil {
		return nil, err
	}
	c := &orderCount{shard: pod.Labels[api.LabelShard], uid: pod.UID, made: pod.CreationTimestamp.Time, began: reading.Total("process_start_time_seconds"),
		acknowledged: reading.Sum("orders_total", "outcome", "acknowledged"), latency: latency}
	for _, reason := range failures {
		c.refused += reading.Sum("rejects_total", "reason", reason)
	}
	return c, nil
}
