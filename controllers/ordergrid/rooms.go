package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

const (
	roomSoon = 5 * time.Second  // interval for a grid that is full, or about to be
	roomLate = 60 * time.Second // and for one that is far from it

	phaseSettles = 2 * time.Second // behind a phase of the calendar, when its books have entered it
)

// rooms queries grid nodes for the memory they have left for orders, independently of the controller's passes: a grid
// is reconciled for it only when its status changes. A node computes its time until full itself; a grid is queried
// again within a quarter of it.
type rooms struct {
	mu    sync.Mutex
	grids map[types.NamespacedName]*gridRoom
	wake  chan ctrlevent.GenericEvent
}

// gridRoom is the state of one grid.
type gridRoom struct {
	pods  map[string]string // address by name: of those that take orders
	due   time.Time
	want  givenFiles
	room  room
	asked bool // room is from an answer, not only initial
}

// givenFiles are the digests of what the pods are given and report back, "" without.
type givenFiles struct {
	limits  fileDigests
	regions fileDigests
}

// room is the memory a grid has left for orders, as coarse as in status.
type room struct {
	known       bool
	refusing    []string // pods that refuse orders for lack of memory
	pod         string   // the fullest
	usedPercent int32
	fullIn      *time.Duration // nil: no growth, or more than a day

	executions map[string]nodestatus.Execution // by pod
	posts      nodestatus.Posts                // of all partitions, as their primaries report
	limits     map[string]nodestatus.Limits    // by pod; nil if none has any
	regions    map[string]nodestatus.Regions   // by pod; nil if none has any
	views      map[string]map[string]viewState // by pod and partition
	journals   map[string]journalState         // by pod
	sinks      []api.SinkStatus                // as reported, by name
	readers    []string                        // sinks with a position in a log, by name
	all        bool                            // every pod that was queried has answered
}

func (a *room) equal(b *room) bool {
	return fmt.Sprint(a.status(), a.refusing, a.known, a.readers, a.all, a.views, a.posts, a.limits, a.regions, a.journals) == fmt.Sprint(b.status(), b.refusing, b.known, b.readers, b.all, b.views, b.posts, b.limits, b.regions, b.journals) &&
		equality.Semantic.DeepEqual(a.sinks, b.sinks) && equality.Semantic.DeepEqual(a.executions, b.executions)
}

// status is nil while nothing is known.
func (a *room) status() *api.MemoryStatus {
	if !a.known {
		return nil
	}
	s := &api.MemoryStatus{Pod: a.pod, UsedPercent: a.usedPercent}
	if a.fullIn != nil {
		s.TimeUntilFull = &metav1.Duration{Duration: *a.fullIn}
	}
	return s
}

// follow registers the pods of a grid that take orders and the files that they are given, and returns what is known; asked
// is false until they were queried.
func (w *rooms) follow(grid types.NamespacedName, pods map[string]string, files givenFiles, now time.Time) (r room, asked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grids == nil {
		w.grids = map[types.NamespacedName]*gridRoom{}
	}
	g := w.grids[grid]
	if g == nil {
		g = &gridRoom{due: now}
		w.grids[grid] = g
	}
	if g.pods = pods; g.want != files {
		g.want, g.due = files, now
	}
	return g.room, g.asked
}

func (w *rooms) forget(grid types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.grids, grid)
}

// takingOrders are the pods that take orders, by name, with their addresses.
func (o *observation) takingOrders() map[string]string {
	pods := map[string]string{}
	for shard := range o.grid.Spec.Shards {
		for ordinal := range int32(api.MaxReplicas) {
			if pod := podNamed(o.pods, api.PodName(o.grid.Name, shard, ordinal)); pod != nil && podReady(pod) && pod.Status.PodIP != "" {
				pods[pod.Name] = statusAddress(pod)
			}
		}
	}
	return pods
}

// watchRooms queries until ctx ends; the manager runs it on the leader.
func (r *Reconciler) watchRooms(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.askRooms(ctx)
		}
	}
}

// askRooms queries the grids that are due, and triggers a reconcile of those whose status changes.
func (r *Reconciler) askRooms(ctx context.Context) {
	w, now := &r.rooms, r.Clock.Now()
	type question struct {
		grid types.NamespacedName
		pods map[string]string
	}
	var due []question
	w.mu.Lock()
	for name, g := range w.grids {
		if len(g.pods) > 0 && !now.Before(g.due) {
			due = append(due, question{name, g.pods})
		}
	}
	w.mu.Unlock()
	places := make(chan struct{}, askAtOnce)
	var all sync.WaitGroup
	for _, q := range due {
		answers := make([]*nodestatus.Memory, 0, len(q.pods))
		var mu sync.Mutex
		var those sync.WaitGroup
		for pod, address := range q.pods {
			places <- struct{}{}
			those.Go(func() {
				defer func() { <-places }()
				if m := r.askMemory(ctx, q.grid.Name, pod, address); m != nil {
					mu.Lock()
					defer mu.Unlock()
					answers = append(answers, m)
				}
			})
		}
		all.Go(func() {
			those.Wait()
			if w.answered(q.grid, roomOf(answers, len(q.pods)), now) && w.wake != nil {
				w.wake <- ctrlevent.GenericEvent{Object: &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Namespace: q.grid.Namespace, Name: q.grid.Name}}}
			}
		})
	}
	all.Wait()
}

// askMemory is nil if the pod does not answer, or another one answers at its address.
func (r *Reconciler) askMemory(ctx context.Context, grid, pod, address string) *nodestatus.Memory {
	m, err := nodestatus.GetMemory(ctx, r.Nodes, address)
	if err == nil && (m.Pod != pod || m.Grid != grid) {
		err = fmt.Errorf("pod %q of grid %q answered in its place", m.Pod, m.Grid)
	}
	if err != nil {
		memoryQuestionsTotal.WithLabelValues("failed").Inc()
		ctrl.LoggerFrom(ctx).V(1).Info("a grid node does not report its memory", "pod", pod, "reason", err.Error())
		return nil
	}
	memoryQuestionsTotal.WithLabelValues("answered").Inc()
	return m
}

// answered stores the answers of a grid's pods, and reports whether they changed.
func (w *rooms) answered(grid types.NamespacedName, now room, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.grids[grid]
	if g == nil {
		return false // it was deleted
	}
	g.due = at.Add(now.again())
	if g.want.limits != (fileDigests{}) && !now.limited(g.want.limits) || g.want.regions != (fileDigests{}) && !now.hasRegions(g.want.regions) {
		g.due = at.Add(roomSoon)
	}
	if next := now.nextPhase().Add(phaseSettles); next.After(at) && next.Before(g.due) {
		g.due = next
	}
	changed := !g.asked || !g.room.equal(&now)
	g.room, g.asked = now, true
	return changed
}

// again is the time until the next query.
func (a *room) again() time.Duration {
	switch {
	case len(a.refusing) > 0 || a.unsettled() || a.journalTrouble():
		return roomSoon
	case a.fullIn != nil:
		return min(max(*a.fullIn/4, roomSoon), roomLate)
	}
	return roomLate
}

// roomOf summarizes the answers of a grid's pods: the one that is full first counts.
func roomOf(answers []*nodestatus.Memory, asked int) (a room) {
	a.all = len(answers) == asked
	var soonest *float64
	share := -1.0
	for _, m := range answers {
		a.known = true
		if m.Full {
			a.refusing = append(a.refusing, m.Pod)
		}
		if m.SecondsUntilFull != nil && (soonest == nil || *m.SecondsUntilFull < *soonest) {
			soonest = m.SecondsUntilFull
		}
		if s := m.UsedShare(); s > share || s == share && m.Pod < a.pod {
			share, a.pod = s, m.Pod
		}
	}
	a.usedPercent = int32(max(0, share)*20) * 5
	if soonest != nil {
		a.fullIn = atLeast(time.Duration(min(*soonest, 1e6) * float64(time.Second)))
	}
	slices.Sort(a.refusing)
	a.sinks, a.readers = sinksOf(answers)
	a.views = viewsOf(answers)
	a.executions = executionsOf(answers)
	a.posts = postsOf(answers)
	a.limits = limitsOf(answers)
	a.regions = regionsOf(answers)
	a.journals = journalsOf(answers)
	return a
}

// roomSteps are the times until full in status, which is written when the next one is reached.
var roomSteps = []time.Duration{24 * time.Hour, 12 * time.Hour, 8 * time.Hour, 4 * time.Hour, 2 * time.Hour, time.Hour, 30 * time.Minute, 20 * time.Minute,
	10 * time.Minute, 5 * time.Minute, 2 * time.Minute, time.Minute, 30 * time.Second, 10 * time.Second, 0}

// atLeast is the step below, nil for more than a day.
func atLeast(d time.Duration) *time.Duration {
	if d > roomSteps[0] {
		return nil
	}
	for i := range roomSteps {
		if d >= roomSteps[i] {
			return &roomSteps[i]
		}
	}
	return &roomSteps[len(roomSteps)-1]
}

// judgeAccepting: every partition takes new orders.
func judgeAccepting(o *observation) judgement {
	available := judgeAvailable(o)
	before := meta.FindStatusCondition(o.grid.Status.Conditions, api.ConditionAcceptingOrders)
	switch {
	case available.status == metav1.ConditionFalse:
		return judgement{metav1.ConditionFalse, available.reason, "see condition " + api.ConditionAvailable}
	case len(o.standbys()) > 0:
		waiting := o.standbys()
		return judgement{metav1.ConditionFalse, reasonStandby, fmt.Sprintf("%d of %d partitions are standbys and refuse orders%s. Orders go to %s; see condition %s",
			len(waiting), o.wantPartitions(), some(waiting), o.otherSite(), api.ConditionStandby)}
	case len(o.room.refusing) > 0:
		return judgement{metav1.ConditionFalse, reasonFull, fmt.Sprintf("orders are refused for lack of memory%s. No acknowledged order is lost. %s",
			some(o.room.refusing), capacityAdvice(o.grid))}
	case !o.roomAsked && before != nil && (before.Reason == reasonFull || before.Reason == reasonAccepting || before.Reason == reasonNodesSilent):
		return judgement{before.Status, before.Reason, before.Message} // this operator has just started
	case !o.roomAsked:
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, "the grid nodes have not been queried for their memory yet"}
	case !o.room.known:
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, fmt.Sprintf("no grid node answers the operator at port %d, path %s, so their memory is unknown; check the connection from the operator to the pods (NetworkPolicy)", api.HTTPPort, nodestatus.MemoryPath)}
	}
	return judgement{metav1.ConditionTrue, reasonAccepting, "every partition takes orders, and has memory for more"}
}

// followRoom adds the memory of the grid's pods.
func (r *Reconciler) followRoom(o *observation) {
	files := givenFiles{}
	if o.limits != nil {
		files.limits = o.limits.files.digests()
	}
	if o.regions != nil {
		files.regions = o.regions.sha256
	}
	o.room, o.roomAsked = r.rooms.follow(client.ObjectKeyFromObject(o.grid), o.takingOrders(), files, r.Clock.Now())
}
