package messages

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Event is an event for users.
type Event struct {
	// Type is corev1.EventTypeNormal or, where action may be required, corev1.EventTypeWarning.
	Type string
	// Reason and Action are in UpperCamelCase.
	Reason, Action string
	// Note is a sentence; Send cuts it to MaxNote.
	Note string
}

// Send emits events about an object.
func Send(r events.EventRecorder, about runtime.Object, list []Event) {
	for _, e := range list {
		r.Eventf(about, nil, e.Type, e.Reason, e.Action, "%s", Cut(e.Note, MaxNote))
	}
}
