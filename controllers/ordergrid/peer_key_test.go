package ordergrid

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestPeersProved: certificates stand for the key only where every node refuses connections without TLS.
func TestPeersProved(t *testing.T) {
	keyed := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0-0"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: peerKeyVolume}}}}
	before := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0-1"}}
	at := func(stage tlsStage, settled bool) *tlsPlan {
		return &tlsPlan{stage: stage, wanted: stageTLS, settled: settled}
	}
	for name, c := range map[string]struct {
		tls      bool
		stage    *tlsPlan
		insecure bool
		pods     []corev1.Pod
		status   metav1.ConditionStatus
		reason   string
		says     string
	}{
		"a key":                              {pods: []corev1.Pod{keyed}, status: metav1.ConditionTrue, reason: reasonPeerKey, says: "rtd.peer-key"},
		"a pod without":                      {pods: []corev1.Pod{keyed, before}, status: metav1.ConditionFalse, reason: reasonPodsBefore, says: "1 pod is of a release without a peer key: rtd-s0-1;"},
		"given up":                           {insecure: true, pods: []corev1.Pod{keyed}, status: metav1.ConditionFalse, reason: reasonPeersInsecure, says: api.AnnotationInsecurePeers},
		"certificates":                       {tls: true, stage: at(stageTLS, true), pods: []corev1.Pod{keyed, before}, status: metav1.ConditionTrue, reason: reasonCertificates},
		"certificates, insecure":             {tls: true, stage: at(stageTLS, true), insecure: true, pods: []corev1.Pod{keyed}, status: metav1.ConditionTrue, reason: reasonCertificates},
		"TLS begins, a pod without":          {tls: true, stage: at(stagePlain, false), pods: []corev1.Pod{keyed, before}, status: metav1.ConditionFalse, reason: reasonPodsBefore},
		"TLS begins":                         {tls: true, stage: at(stageAccept, false), pods: []corev1.Pod{keyed}, status: metav1.ConditionTrue, reason: reasonPeerKey},
		"both are taken, insecure":           {tls: true, stage: at(stageDial, true), insecure: true, pods: []corev1.Pod{keyed}, status: metav1.ConditionFalse, reason: reasonPeersInsecure},
		"the last pods of the stage before":  {tls: true, stage: at(stageTLS, false), insecure: true, pods: []corev1.Pod{keyed}, status: metav1.ConditionFalse, reason: reasonPeersInsecure},
		"certificates, no stage was decided": {tls: true, pods: []corev1.Pod{keyed}, status: metav1.ConditionTrue, reason: reasonCertificates},
	} {
		grid := pairGrid()
		grid.Spec.Security = api.SecuritySpec{}
		if c.tls {
			grid.Spec.Security.TLS = &api.TLSSpec{}
		}
		if c.insecure {
			grid.Annotations = map[string]string{api.AnnotationInsecurePeers: string(api.UnprovedPeersAccept)}
		}
		j := judgePeers(&observation{grid: grid, pods: c.pods, stage: c.stage, peerKey: true})
		if j.status != c.status || j.reason != c.reason || !strings.Contains(j.message, c.says) {
			t.Errorf("%s: %+v, want %s %s", name, j, c.status, c.reason)
		}
	}
}
