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

// failures are the reasons of refusals that fail an order for its sender. Refusals while a session moves to another
// primary are not among them: the client retries.
var failures = []string{"bad_fix", "duplicate_cl_ord_id", "too_large", "capacity", "overloaded", "insufficient_in_sync"}

// updateMemory is the operator's state of one grid's update. Losing it costs one more window.
type updateMemory struct {
	before *survey   // the window began with it
	missed string    // how orders missed the objective at the last judgement; empty: they met it
	since  time.Time // when that began
}

// held is why a change of the grid is held by its objective, and what else it waits for.
type held struct {
	missed  string   // how orders miss spec.updateStrategy.objective; empty: they meet it, or it is unknown
	tooLong bool     // for longer than spec.updateStrategy.progressDeadline
	waiting []string // what it waits for
	again   time.Duration
}

func (h *held) lookWithin(d time.Duration) { h.again = sooner(h.again, d) }

// keepToObjective reports whether the next change may be made because orders meet the objective, with what blocks it.
// asked is whether there is a change to make, and next names it.
func (r *run) keepToObjective(ctx context.Context, o *observation, m *updateMemory, h *held, asked bool, next string) (open bool) {
	objective, now := o.grid.Spec.UpdateStrategy.Objective, r.Clock.Now()
	if objective == nil {
		*m = updateMemory{}
		return asked
	}
	if !asked {
		m.before = nil // the next window begins when a change is possible: it excludes hand-overs
		return false
	}
	if m.missed == "" && heldBack(o.grid) { // an earlier operator process found that
		m.missed, m.since = "orders missed spec.updateStrategy.objective when they were measured last", now
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

// conclude handles the judgement of a window.
func (m *updateMemory) conclude(h *held, state orderState, text string, now time.Time) (open bool) {
	switch {
	case state == ordersMiss:
		if m.missed == "" {
			m.since = now
		}
		m.missed = text
	case state == ordersUnknown, state == ordersFew && m.missed != "": // silence is no proof of recovery
		h.waiting = append(h.waiting, text)
	default:
		*m = updateMemory{}
		h.waiting = append(h.waiting, text)
		return true
	}
	return false
}

// hold holds the change, and checks whether that has lasted too long.
func (m *updateMemory) hold(o *observation, h *held, now time.Time) {
	h.missed = m.missed
	h.tooLong = m.missed != "" && now.Sub(m.since) >= o.grid.Spec.UpdateStrategy.ProgressDeadline.Duration
}

// heldBack reports whether the update was held by its objective in the last status: that survives a restart of the
// operator.
func heldBack(grid *api.OrderGrid) bool {
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionProgressing)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reasonObjectiveMissed
}

// survey queries every pod of the grid, concurrently.
func (r *Reconciler) survey(ctx context.Context, o *observation, now time.Time) *survey {
	s := &survey{at: now, pods: map[string]*orderCount{}}
	places := make(chan struct{}, askAtOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range o.pods {
		pod := &o.pods[i]
		if pod.Status.PodIP == "" || !podReady(pod) {
			continue // it is not a primary
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
