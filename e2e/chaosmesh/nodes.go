package chaosmesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

const probeTimeout = time.Minute

// Nodes tries on every ready node which faults its kernel can be given: a pod of
// the image, which has order-probe, runs on each for a moment.
func (m *Mesh) Nodes(ctx context.Context, image string) ([]nodefeatures.Report, error) {
	var nodes corev1.NodeList
	if err := m.api.List(ctx, &nodes); err != nil {
		return nil, err
	}
	var pods []client.Object
	defer func() {
		for _, pod := range pods {
			_ = m.api.Delete(context.WithoutCancel(ctx), pod, client.GracePeriodSeconds(0))
		}
	}()
	for i := range nodes.Items {
		if !ready(&nodes.Items[i]) {
			m.report("node %s is not ready and is left out", nodes.Items[i].Name)
			continue
		}
		pod := probePod(nodes.Items[i].Name, image)
		if err := m.api.Create(ctx, pod); err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var reports []nodefeatures.Report
	err := kube.WaitFor(ctx, "an answer of every node", nil, func(ctx context.Context) (bool, string, error) {
		reports = reports[:0]
		var missing []string
		for _, o := range pods {
			pod := &corev1.Pod{}
			if err := m.api.Get(ctx, client.ObjectKeyFromObject(o), pod); err != nil {
				return false, "", err
			}
			report, err := answer(pod)
			if err != nil {
				missing = append(missing, pod.Spec.NodeName+": "+err.Error())
				continue
			}
			reports = append(reports, *report)
		}
		return len(missing) == 0, strings.Join(missing, "; "), nil
	})
	return reports, err
}

func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// probePod has two capabilities and nothing of the node's.
func probePod(node, image string) *corev1.Pod {
	no, root := false, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-features-", Namespace: metav1.NamespaceSystem},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "node-features", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				Args: []string{"node-features", "--node", node}, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext: &corev1.SecurityContext{
					RunAsUser: &root, RunAsNonRoot: &no,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "SYS_ADMIN"}},
				},
			}},
		},
	}
}

// answer reads the result of a pod, or returns why there is none.
func answer(pod *corev1.Pod) (*nodefeatures.Report, error) {
	for _, c := range pod.Status.ContainerStatuses {
		switch end, wait := c.State.Terminated, c.State.Waiting; {
		case end != nil && end.ExitCode != 0:
			return nil, fmt.Errorf("exit code %d: %s", end.ExitCode, strings.TrimSpace(end.Message))
		case end != nil:
			report := &nodefeatures.Report{}
			err := json.Unmarshal([]byte(end.Message), report)
			return report, err
		case wait != nil && wait.Message != "":
			return nil, errors.New(wait.Reason + ": " + wait.Message)
		}
	}
	return nil, errors.New("the pod is " + strings.ToLower(string(pod.Status.Phase)))
}
