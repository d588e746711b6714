package inject

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Labels of everything an injector creates. Objects of a drill are found by its UID: names are reused.
const (
	LabelDrill    = "ordergrid.dev/drill"
	LabelDrillUID = "ordergrid.dev/drill-uid"
)

// maxLabel is the longest value of a label.
const maxLabel = 63

func (d Drill) labels() map[string]string {
	l := map[string]string{LabelDrillUID: string(d.UID)}
	if len(d.Name) <= maxLabel {
		l[LabelDrill] = d.Name
	}
	return l
}

// owner makes a drill own an object, in case the drill is deleted without its finalizer.
func (d Drill) owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: "FailoverDrill", Name: d.Name, UID: d.UID}}
}

// name of the objects of a step.
func (f *Fault) name() string { return fmt.Sprintf("%s-%d", f.Drill.Name, f.Step) }

// mark is the value of annotations that name the step that made a change.
func (f *Fault) mark() string { return fmt.Sprintf("%s/%d", f.Drill.UID, f.Step) }

// short is the beginning of the UID, which tells a drill from an earlier one of its name.
func (d Drill) short() string { return string(d.UID)[:min(8, len(d.UID))] }
