package orderprobe

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// probeLabels are on every object of a probe. They do not include the grid's label, by which grid pods are selected.
func probeLabels(probe *api.OrderProbe) map[string]string {
	l := objects.Labels(objects.Probe, probe.Name)
	l[api.LabelProbe] = probe.Name
	return l
}

func probeMeta(probe *api.OrderProbe, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: probe.Namespace, Labels: probeLabels(probe)}
}

// channelName names the ConfigMap in which one probe pod reports that it is ready, and its measurements.
func channelName(probe *api.OrderProbe, index int) string {
	return probe.Name + "-" + strconv.Itoa(index)
}

// runName names the ConfigMap with the start time.
func runName(probe *api.OrderProbe) string { return probe.Name + "-run" }

// reportName names the ConfigMap with the report.
func reportName(probe *api.OrderProbe) string { return probe.Name + "-report" }
