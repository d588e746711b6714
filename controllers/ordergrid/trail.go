package ordergrid

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// Every decision of the operator is logged, and those that changed a grid, or answered a request, are also in
// status.history: events expire after an hour.

// grave are the decisions about data. They evict routine ones from the history, and not vice versa.
var grave = []string{eventAcceptingLoss, eventAcceptRefused, eventAcceptanceOver, eventNewLineage, eventReasserting, eventReasserted, eventRecordKept, eventReassertRefused}

// routine are the other decisions kept in the history.
var routine = []string{eventShardCreated, eventShardRemoved, eventAddingCopy, eventCopyAdded,
	eventGivingCopyUp, eventCopyGivenUp, eventPodLost, eventPreferredPodRefused}

// byOperator is the author of decisions without a request.
const byOperator = "operator"

// audited records events, and logs each: every decision is one.
type audited struct {
	events.EventRecorder
	memory *memory
}

// Eventf implements events.EventRecorder.
func (a audited) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	a.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	text := fmt.Sprintf(note, args...)
	grid, about := parties(regarding, related)
	ctrl.Log.WithName("ordergrid").Info("decided", "namespace", grid.Namespace, "grid", grid.Name, "about", about, "type", kind, "reason", reason, "action", action, "text", text)
	if slices.Contains(routine, reason) {
		a.memory.of(grid).remember(api.HistoryEntry{Reason: reason, About: about, By: byOperator, Message: text})
	}
}

// parties finds the grid of an event, and its other object.
func parties(regarding, related runtime.Object) (grid types.NamespacedName, about string) {
	for _, o := range []runtime.Object{regarding, related} {
		object, ok := o.(client.Object)
		if !ok {
			continue
		}
		if _, is := o.(*api.OrderGrid); is {
			grid = client.ObjectKeyFromObject(object)
		} else {
			about = object.GetName()
		}
	}
	return grid, about
}

// remember keeps a decision until status is written.
func (m *gridMemory) remember(e api.HistoryEntry) {
	if len(m.trail) < api.MaxHistory {
		m.trail = append(m.trail, e)
	}
}

// history merges old and new entries, cut to its bound: the oldest routine entry is dropped first.
func history(before, fresh []api.HistoryEntry, now metav1.Time) []api.HistoryEntry {
	list := slices.Clone(before)
	for _, e := range fresh {
		e.Time = now
		e.Message, e.By, e.About = messages.Cut(e.Message, messages.MaxNote), messages.Cut(e.By, 256), messages.Cut(e.About, 253)
		list = append(list, e)
	}
	for len(list) > api.MaxHistory {
		i := slices.IndexFunc(list, func(e api.HistoryEntry) bool { return !slices.Contains(grave, e.Reason) })
		list = slices.Delete(list, max(i, 0), max(i, 0)+1)
	}
	return list
}

// lineages are the entries about partitions that went on without orders. They come from status itself, so they are in
// the history even if the operator was down while it happened.
func lineages(before, after []api.PartitionSummary) (list []api.HistoryEntry) {
	for _, e := range partitionEvents(before, after) {
		if e.reason == eventNewLineage {
			list = append(list, api.HistoryEntry{Reason: e.reason, About: e.partition, By: byOperator, Message: e.note})
		}
	}
	return list
}

// asker is who set an annotation, by the managed fields of the object in the API server: the client program and the
// time. The user is in the API server's audit log.
func (r *run) asker(ctx context.Context, p *api.GridPartition, annotation string) string {
	now := &api.GridPartition{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(p), now); err != nil {
		return "unknown"
	}
	return setBy(now.ManagedFields, annotation)
}

func setBy(fields []metav1.ManagedFieldsEntry, annotation string) string {
	key := []byte(`"f:` + annotation + `"`)
	for _, f := range fields {
		if f.FieldsV1 == nil || !bytes.Contains(f.FieldsV1.Raw, key) {
			continue
		}
		if f.Time == nil {
			return f.Manager
		}
		return fmt.Sprintf("%s at %s", f.Manager, f.Time.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return "unknown"
}

// answered reports how an annotation was handled: in an event, in the log, and in the history.
func (r *run) answered(p *api.GridPartition, kind, reason, note, by string) {
	r.recordEvent(p, kind, reason, fmt.Sprintf("%s (requested by %s)", note, by))
	r.remembered.remember(api.HistoryEntry{Reason: reason, About: p.Name, By: by, Message: note})
}

// wrote logs a write that was sent to the API server.
func wrote(ctx context.Context, outcome, kind, name string, more ...any) {
	ctrl.LoggerFrom(ctx).Info("wrote", append([]any{"outcome", outcome, "kind", kind, "name", name}, more...)...)
}

// logWaits logs what a change of the grid waits for, once per change of it.
func (m *gridMemory) logWaits(ctx context.Context, waits string) {
	if m.waits != waits && waits != "" {
		ctrl.LoggerFrom(ctx).Info("waits", "for", waits)
	}
	m.waits = waits
}

// waits is what the operator waits for, empty if nothing is under way.
func (o *observation) waits() string {
	var list []string
	if text := o.resizeText(); text != "" {
		list = append(list, text)
	}
	if _, text := o.scaling(); text != "" {
		list = append(list, text)
	}
	if o.roll != nil && o.roll.outdated > 0 {
		list = append(list, o.roll.String())
	}
	if o.lost != nil {
		list = append(list, o.lost.waiting...)
	}
	return sentences(list)
}
