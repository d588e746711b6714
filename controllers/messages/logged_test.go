package messages

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestEveryEventIsALogLine(t *testing.T) {
	var out bytes.Buffer
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(&out, nil)))
	r := events.NewFakeRecorder(1)
	Send(Logged(r), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "trading", Name: "a"}}, []Event{{Type: "Normal", Reason: "Injected", Action: "Inject", Note: "100% of it"}})
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for key, want := range map[string]string{"msg": "decided", "namespace": "trading", "name": "a", "kind": "*v1.Pod", "reason": "Injected", "action": "Inject", "type": "Normal", "text": "100% of it"} {
		if line[key] != want {
			t.Errorf("%s is %v, want %s", key, line[key], want)
		}
	}
	if got := <-r.Events; got != "Normal Injected 100% of it" {
		t.Errorf("the event is %q", got)
	}
}

func TestAuthor(t *testing.T) {
	at := func(minute int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 11, 22, 10, minute, 0, 0, time.UTC)}
	}
	fields := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-create", Time: at(0)}, {Manager: "kubectl-edit", Time: at(5)}, {Manager: "argocd"},
		{Manager: "operator", Time: at(9)}, {Manager: "kubectl", Subresource: "status", Time: at(8)},
	}
	if got, want := Author(fields, "operator"), "kubectl-edit at 2026-11-22T10:05:00Z"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Author(nil, "operator"); got != "unknown" {
		t.Errorf("%q without a manager", got)
	}
}
