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

// Logged records events, and logs each: every decision is one, and events expire after an hour.
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

// LogAuthor logs who set the request in an object.
func LogAuthor(ctx context.Context, live client.Reader, o client.Object, not string) {
	by := "unknown"
	now, ok := o.DeepCopyObject().(client.Object)
	if ok && live.Get(ctx, client.ObjectKeyFromObject(o), now) == nil {
		by = Author(now.GetManagedFields(), not)
	}
	ctrl.LoggerFrom(ctx).Info("asked", "by", by)
}

// Author is the last writer of an object's spec, by its managed fields: the client program and the time. The user is in
// the API server's audit log. not is a field manager to ignore, the operator's own.
func Author(fields []metav1.ManagedFieldsEntry, not string) string {
	author, at := "unknown", metav1.Time{}
	for _, f := range fields {
		if f.Subresource == "" && f.Manager != not && f.Time != nil && !f.Time.Before(&at) {
			author, at = fmt.Sprintf("%s at %s", f.Manager, f.Time.UTC().Format("2006-01-02T15:04:05Z")), *f.Time
		}
	}
	return author
}
