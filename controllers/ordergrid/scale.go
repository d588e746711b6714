package ordergrid

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// Shards come and go while a grid runs. What clients go by is the layout in the records of the partitions, which grid
// nodes hand on: shards 0..open-1 take orders, and shards 0..shards-1 can be asked. A shard that is added is told of once
// it serves. One that is to go stops taking orders first (Draining, which can be taken back), then, once all that it took
// is downstream, is given up for good (Retired), and only then its objects are deleted. All of that stands in the
// records, so whoever goes on, this operator or the next, goes on from there.

// scale is where a grid stands on its way to the number of shards that spec.shards asks for.
type scale struct {
	now      time.Time      // of this pass
	wanted   int32          // spec.shards
	shards   int32          // that this pass works on: those there are or should be, without those being removed
	before   api.GridLayout // what the records say,
	layout   api.GridLayout // and what they are to say
	removing []int32        // shards all of whose partitions are retired, the highest first
	retired  []api.GridPartition
	refused  string   // why shards that should drain do not; a person has to act
	late     string   // what has been under way for longer than spec.updateStrategy.progressDeadline
	waiting  []string // what shards that should open, or drain, wait for

	left     map[int32]int64  // per shard that drains: entries that the sink does not hold
	waitsFor map[int32]string // per shard that leaves
}

// planScale decides, from the records and pods of all shards.
func planScale(grid *api.OrderGrid, records []api.GridPartition, pods []corev1.Pod, now time.Time) *scale {
	s := &scale{now: now, wanted: grid.Spec.Shards, left: map[int32]int64{}, waitsFor: map[int32]string{}}
	shards := map[int32][]*api.GridPartition{}
	for i := range records {
		r := &records[i]
		shards[r.Spec.Shard] = append(shards[r.Spec.Shard], r)
		if l := r.Spec.Layout; l != nil && (l.Revision > s.before.Revision || l.Revision == s.before.Revision && l.NextFirstSeq < s.before.NextFirstSeq) {
			s.before = *l // one that is given up has noted more: where it ended
		}
	}
	present := int32(0)
	for shard, list := range shards {
		if allRetired(list) {
			s.removing = append(s.removing, shard)
			for _, r := range list {
				s.retired = append(s.retired, *r)
			}
		} else {
			present = max(present, shard+1)
		}
	}
	slices.SortFunc(s.removing, func(a, b int32) int { return cmp.Compare(b, a) })
	s.shards = max(s.wanted, present)
	if n := len(s.removing); n > 0 { // one that is made anew has to wait until the former is gone
		s.shards = max(present, min(s.wanted, s.removing[n-1]))
	}
	s.plan(grid, present, func(shard int32) string { return notServing(grid, shard, shards[shard], pods) })
	return s
}

// plan finds the layout; notServing says why a shard cannot take orders, "" if it can.
func (s *scale) plan(grid *api.OrderGrid, present int32, notServing func(shard int32) string) {
	next := s.before
	if next.Revision == 0 { // a new grid is told of as a whole; one that was made before there were layouts, as it is
		next.Shards = cmp.Or(present, s.shards)
		next.Open = next.Shards
	}
	for next.Shards > 1 && slices.Contains(s.removing, next.Shards-1) {
		next.Shards--
		next.Removed++
		next.NextFirstSeq = max(next.NextFirstSeq, s.nextFirstSeq(next.Shards))
	}
	next.Open = min(next.Open, next.Shards)
	if s.wanted < next.Open {
		next.Open = s.drainTo(grid, next.Open, notServing)
	}
	for next.Open < min(s.wanted, s.shards) {
		if why := notServing(next.Open); why != "" {
			s.waiting = append(s.waiting, why)
			break
		}
		next.Open++
	}
	next.Shards = max(next.Shards, next.Open)
	if next != s.before {
		next.Revision++
	}
	s.layout = next
}

// drainTo is how many shards stay open. Those that stay have to serve: they get the orders of the others.
func (s *scale) drainTo(grid *api.OrderGrid, open int32, notServing func(shard int32) string) int32 {
	if why := keptInMemory(grid); why != "" {
		s.refused = fmt.Sprintf("%s cannot be removed, because %s. Set spec.shards back to %d, or give the orders up with spec.scaleIn.policy DiscardOrders",
			shardNames(s.wanted, open), why, open)
		return open
	}
	for shard := range s.wanted {
		if why := notServing(shard); why != "" {
			s.waiting = append(s.waiting, fmt.Sprintf("%s begins to drain once the shards that stay serve: %s", shardNames(s.wanted, open), why))
			return open
		}
	}
	return s.wanted
}

// notServing says why a shard cannot take orders yet. One that never did has to have all its copies.
func notServing(grid *api.OrderGrid, shard int32, records []*api.GridPartition, pods []corev1.Pod) string {
	if len(records) < len(partitionNames(grid, shard)) {
		return fmt.Sprintf("shard %d is being made", shard)
	}
	for _, r := range records {
		switch {
		case r.Spec.Admission == api.AdmissionRetired:
			return fmt.Sprintf("shard %d is being removed and has to be gone before it is made anew", shard)
		case r.Status.Primary == nil:
			return fmt.Sprintf("%s has no primary yet", r.Name)
		case !readyIn(pods, r.Status.Primary):
			return fmt.Sprintf("the primary of %s, %s, is not ready", r.Name, r.Status.Primary.PodName)
		case r.Spec.Layout == nil || r.Spec.Layout.Shards <= shard: // nobody was told of it
			if have := int32(len(r.Status.InSync)); have < r.Spec.Replicas {
				return fmt.Sprintf("%s has %d of %d copies", r.Name, have, r.Spec.Replicas)
			}
		}
	}
	return ""
}

func allRetired(records []*api.GridPartition) bool {
	for _, r := range records {
		if r.Spec.Admission != api.AdmissionRetired {
			return false
		}
	}
	return len(records) > 0
}

// dropRetired leaves out the records of shards that are being removed: whatever is missing of them is not missed.
func dropRetired(records []api.GridPartition) []api.GridPartition {
	stays := map[int32]bool{}
	for i := range records {
		if records[i].Spec.Admission != api.AdmissionRetired {
			stays[records[i].Spec.Shard] = true
		}
	}
	return slices.DeleteFunc(records, func(p api.GridPartition) bool { return !stays[p.Spec.Shard] })
}

// working is the grid as this pass makes it: with the shards there are, whatever spec asks for in the end.
func (s *scale) working(grid *api.OrderGrid) *api.OrderGrid {
	if grid.Spec.Shards != s.shards {
		grid = grid.DeepCopy()
		grid.Spec.Shards = s.shards
	}
	return grid
}

// leaves says whether a shard is on its way out.
func (s *scale) leaves(shard int32) bool { return shard >= s.wanted && shard >= s.layout.Open }

// tell writes the layout, and what it means for the partition, into its record. record is as it is now, nil if it is new.
func (s *scale) tell(desired, record *api.GridPartition) {
	layout := s.layout
	desired.Spec.Layout = &layout
	switch {
	case record != nil && record.Spec.Admission == api.AdmissionRetired:
		desired.Spec.Admission = api.AdmissionRetired
	case desired.Spec.Shard < s.layout.Open:
		desired.Spec.Admission = api.AdmissionOpen
	case s.leaves(desired.Spec.Shard), record != nil && record.Spec.Admission == api.AdmissionDraining:
		desired.Spec.Admission = api.AdmissionDraining
	default: // new: nobody knows of it, and it is open when they do
		desired.Spec.Admission = api.AdmissionOpen
	}
}

// underWay says what is on its way, "" if nothing is.
func (s *scale) underWay() (reason, message string) {
	var parts []string
	for _, l := range s.leaving() {
		reason = reasonRemovingShards
		text := fmt.Sprintf("shard %d: %s", l.Shard, strings.ToLower(string(l.Stage)))
		if l.OrdersLeft != nil && *l.OrdersLeft > 0 {
			text += fmt.Sprintf(", %d entries are not downstream", *l.OrdersLeft)
		}
		if l.WaitsFor != "" {
			text += ", waits: " + l.WaitsFor
		}
		parts = append(parts, text)
	}
	if s.layout.Open < s.wanted {
		reason = cmp.Or(reason, reasonAddingShards)
	}
	if len(s.waiting) > 0 {
		reason = cmp.Or(reason, reasonRemovingShards)
	}
	if reason == "" {
		return "", ""
	}
	parts = append(parts, s.waiting...)
	text := fmt.Sprintf("%d of %d shards take orders", s.layout.Open, s.wanted)
	if len(parts) > 0 {
		text += "; " + strings.Join(parts[:min(len(parts), 4)], "; ")
	}
	return reason, text
}

// judgeLate finds out whether a change of the number of shards takes too long, or else when it will. Since when is in
// condition Progressing, which survives the operator.
func (s *scale) judgeLate(grid *api.OrderGrid, now time.Time) (again time.Duration) {
	reason, text := s.underWay()
	c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionProgressing)
	if reason == "" || c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
		return 0
	}
	allowed := grid.Spec.UpdateStrategy.ProgressDeadline.Duration
	left := allowed - now.Sub(c.LastTransitionTime.Time)
	if left <= 0 && allowed > 0 {
		s.late = fmt.Sprintf("the number of shards has been changing for longer than spec.updateStrategy.progressDeadline, %v: %s. See what it waits for%s", allowed, text, s.wayBack())
	}
	return max(left, 0)
}

// wayBack is how a person takes a change of the number of shards back; "" where there is none: of a grid that has no shard yet,
// and of shards that have been given up.
func (s *scale) wayBack() string {
	to := s.layout.Open
	for _, l := range s.leaving() {
		if l.Stage == api.LeavingDraining {
			to = max(to, l.Shard+1)
		}
	}
	if to < 1 || to == s.wanted {
		return ""
	}
	return fmt.Sprintf(", or set spec.shards back to %d", to)
}

// leaving lists the shards on their way out for status.
func (s *scale) leaving() (list []api.LeavingShard) {
	for shard := max(s.wanted, s.layout.Open); shard < s.shards; shard++ {
		l := api.LeavingShard{Shard: shard, Stage: api.LeavingDraining, WaitsFor: messages.Cut(s.waitsFor[shard], 1024)}
		if left, known := s.left[shard]; known {
			l.OrdersLeft = &left
		}
		list = append(list, l)
	}
	for i := len(s.removing) - 1; i >= 0; i-- {
		shard := s.removing[i]
		list = append(list, api.LeavingShard{Shard: shard, Stage: api.LeavingRemoving, WaitsFor: messages.Cut(s.waitsFor[shard], 1024)})
	}
	return list
}

// shardNames is the subject of a sentence about shards from..to-1.
func shardNames(from, to int32) string {
	if to == from+1 {
		return fmt.Sprintf("shard %d", from)
	}
	return fmt.Sprintf("each of shards %d to %d", from, to-1)
}
