package workload

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestForgetDropsTheSeriesOfOneObject(t *testing.T) {
	m := NewMetrics("Thing", "thing", "thing")
	for _, name := range []string{"a", "b"} {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		m.Record(object, []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}, {Type: "Full", Status: metav1.ConditionFalse}})
	}
	m.Forget(types.NamespacedName{Namespace: "n", Name: "a"})
	if n := testutil.CollectAndCount(m.conditions); n != 2 {
		t.Errorf("%d series, want the 2 of b", n)
	}
	if got := testutil.ToFloat64(m.conditions.WithLabelValues("n", "b", "Ready")); got != 1 {
		t.Errorf("Ready of b is %v, want 1", got)
	}
}
