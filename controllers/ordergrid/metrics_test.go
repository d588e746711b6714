package ordergrid

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestSeriesOfConditionsEnd: FabricReady has no series once spec.fabric is taken out, whatever it was last.
func TestSeriesOfConditionsEnd(t *testing.T) {
	o := &observation{grid: pairGrid()}
	fabric := metav1.Condition{Type: api.ConditionFabricReady, Status: metav1.ConditionFalse}
	available := metav1.Condition{Type: api.ConditionAvailable, Status: metav1.ConditionTrue}
	record(o, []metav1.Condition{available, fabric})
	record(o, []metav1.Condition{available})
	if conditionGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, api.ConditionFabricReady) {
		t.Error("FabricReady has a series, and the grid has no such condition: an alert on it would not end")
	}
	if !conditionGauge.DeleteLabelValues(o.grid.Namespace, o.grid.Name, api.ConditionAvailable) {
		t.Error("Available has no series")
	}
}
