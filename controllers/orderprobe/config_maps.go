package orderprobe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/pod"
)

// channel is the ConfigMap one pod writes to. The operator creates it empty, so that it is deleted with the probe and
// the pod needs no permission to create.
func channel(probe *api.OrderProbe, index int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: probeMeta(probe, channelName(probe, index))}
}

// barrier is the ConfigMap the pods wait for. A zero time leaves it without the key.
func barrier(probe *api.OrderProbe, startAt time.Time) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: probeMeta(probe, runName(probe))}
	if !startAt.IsZero() {
		m.Data = map[string]string{pod.KeyStartAt: startAt.UTC().Format(time.RFC3339Nano)}
	}
	return m
}

// reportMap is the ConfigMap with the report.
func reportMap(probe *api.OrderProbe, files map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: probeMeta(probe, reportName(probe)), Data: files}
}
