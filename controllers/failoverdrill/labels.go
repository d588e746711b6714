package failoverdrill

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// drillLabels are on every object of a drill. They do not include the grid's label, by which grid pods are selected.
func drillLabels(d *api.FailoverDrill) map[string]string {
	l := objects.Labels(objects.Drill, d.Name)
	l[api.LabelDrill] = d.Name
	l[api.LabelDrillUID] = string(d.UID)
	return l
}

func drillMeta(d *api.FailoverDrill, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: d.Namespace, Labels: drillLabels(d)}
}

func recorderName(d *api.FailoverDrill) string { return api.RecorderName(d.Name) }

// drillOf is the drill for the injectors.
func drillOf(d *api.FailoverDrill) inject.Drill {
	return inject.Drill{Namespace: d.Namespace, Name: d.Name, UID: d.UID}
}

// recorderOf is the recorder in status.
func recorderOf(d *api.FailoverDrill) api.DrillRecorder {
	if d.Status.Recorder == nil {
		return api.DrillRecorder{}
	}
	return *d.Status.Recorder
}

// targetOf keeps of a pod what a restarted operator needs of it.
func targetOf(p *corev1.Pod) api.DrillTargetPod {
	return api.DrillTargetPod{Name: p.Name, UID: string(p.UID), IP: p.Status.PodIP, Node: p.Spec.NodeName}
}
