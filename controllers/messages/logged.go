package messages

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Logged passes events on, and makes each a line of the operator's log: every decision is one, and events are gone after an
// hour.
func Logged(r events.EventRecorder) events.EventRecorder { return logged{r} }

type logged struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (l logged) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	l.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	namespace, name := "", ""
	if o, ok := regarding.(client.Object); ok {
		namespace, name = o.GetNamespace(), o.GetName()
	}
	ctrl.Log.WithName("ordergrid").Info("decided", "namespace", namespace, "kind", fmt.Sprintf("%T", regarding), "name", name, "type", kind, "reason", reason, "action", action,
		"text", fmt.Sprintf(note, args...))
}

// LogAuthor makes a line of the operator's log of who asked for what an object says.
func LogAuthor(ctx context.Context, live client.Reader, o client.Object, not string) {
	by := "unknown"
	now, ok := o.DeepCopyObject().(client.Object)
	if ok && live.Get(ctx, client.ObjectKeyFromObject(o), now) == nil {
		by = Author(now.GetManagedFields(), not)
	}
	ctrl.LoggerFrom(ctx).Info("asked", "by", by)
}

// Author is who wrote an object's spec last, by its managed fields: the client program and the time. Which person that was is in
// the API server's audit log. not is the field manager that is not meant, the operator's own.
func Author(fields []metav1.ManagedFieldsEntry, not string) string {
	author, at := "unknown", metav1.Time{}
	for _, f := range fields {
		if f.Subresource == "" && f.Manager != not && f.Time != nil && !f.Time.Before(&at) {
			author, at = fmt.Sprintf("%s at %s", f.Manager, f.Time.UTC().Format("2006-01-02T15:04:05Z")), *f.Time
		}
	}
	return author
}
