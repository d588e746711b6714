package apply

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestEveryWriteIsALogLine: exactly the writes that the API server accepted are logged.
func TestEveryWriteIsALogLine(t *testing.T) {
	var out bytes.Buffer
	ctx := ctrl.LoggerInto(context.Background(), logr.FromSlogHandler(slog.NewTextHandler(&out, nil)))
	c := Logged(fake.NewFakeClient())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "trading", Name: "a"}}
	for _, w := range []struct {
		outcome string
		write   func() error
	}{
		{"created", func() error { return c.Create(ctx, pod) }},
		{"updated", func() error { pod.Labels = map[string]string{"a": "b"}; return c.Update(ctx, pod) }},
		{"updated", func() error {
			return c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"c"}}}`)))
		}},
		{"deleted", func() error { return c.Delete(ctx, pod) }},
	} {
		out.Reset()
		if err := w.write(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, "msg=wrote outcome="+w.outcome+" kind=Pod name=a") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", w.outcome, got)
		}
	}
	out.Reset()
	if err := c.Delete(ctx, pod); err == nil || out.Len() > 0 {
		t.Errorf("a refused write (%v) is logged: %s", err, out.String())
	}
}
