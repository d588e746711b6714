package inject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

const (
	// labelNodeFeatures is on the Jobs that test a node; its value is the hash of the node's name.
	labelNodeFeatures = "ordergrid.dev/node-features"
	// featureTime bounds a Job: its image may have to be pulled.
	featureTime = 2 * time.Minute
)

// featureReport is the result for one node: a report, or why there will be none, or neither yet.
type featureReport struct {
	report  *nodefeatures.Report
	problem string
}

// nodeFeatures runs a Job on every node of the scope and reads its termination message.
func (c *ChaosMesh) nodeFeatures(ctx context.Context, scope *Scope) (map[string]featureReport, error) {
	out := map[string]featureReport{}
	for _, node := range scope.Nodes {
		if r, known := c.features.get(scope.Drill, node); known {
			out[node] = r
			continue
		}
		r, err := c.tryNode(ctx, scope.Drill, node)
		if err != nil {
			return nil, err
		}
		if r.report != nil || r.problem != "" {
			c.features.put(scope.Drill, node, r)
		}
		out[node] = r
	}
	return out, nil
}

func (c *ChaosMesh) tryNode(ctx context.Context, d Drill, node string) (featureReport, error) {
	want := c.featureJob(d, node)
	job := &batchv1.Job{}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(want), job)
	if apierrors.IsNotFound(err) {
		err = c.Client.Create(ctx, want)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return featureReport{problem: fmt.Sprintf("the features of node %s cannot be tested: %v", node, err)}, nil
		}
		return featureReport{}, client.IgnoreAlreadyExists(err)
	}
	if err != nil {
		return featureReport{}, err
	}
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return featureReport{}, err
	}
	return readFeatures(job, pods.Items, node), nil
}

// readFeatures reads the termination message of the Job's pod.
func readFeatures(job *batchv1.Job, pods []corev1.Pod, node string) featureReport {
	reason := ""
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			switch end := s.State.Terminated; {
			case end != nil && end.ExitCode == 0:
				r := &nodefeatures.Report{}
				if err := json.Unmarshal([]byte(end.Message), r); err != nil || r.Features == nil {
					return featureReport{problem: fmt.Sprintf("the features of node %s are not known: the termination message of pod %s is not a report of order-probe node-features: %q", node, pods[i].Name, clip(end.Message, 100))}
				}
				r.Node = node
				return featureReport{report: r}
			case end != nil:
				reason = fmt.Sprintf("pod %s ended with exit code %d: %s", pods[i].Name, end.ExitCode, clip(end.Message, 200))
			case s.State.Waiting != nil:
				reason = fmt.Sprintf("pod %s waits: %s %s", pods[i].Name, s.State.Waiting.Reason, clip(s.State.Waiting.Message, 200))
			}
		}
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			if reason == "" {
				reason = fmt.Sprintf("no pod of Job %s/%s was started; kubectl describe job has the reason. It needs the capabilities NET_ADMIN and SYS_ADMIN, which the Pod Security Standards Baseline and Restricted refuse: name a namespace that allows them with the operator's flag --drill-node-features-namespace", job.Namespace, job.Name)
			}
			return featureReport{problem: fmt.Sprintf("the features of node %s could not be detected: %s", node, reason)}
		}
	}
	return featureReport{}
}

func (c *ChaosMesh) featureJob(d Drill, node string) *batchv1.Job {
	meta := metav1.ObjectMeta{Namespace: c.featureNamespace(d), Name: featureJobName(d, node), Labels: d.labels()}
	meta.Labels[labelNodeFeatures] = hashOf(node)
	if meta.Namespace == d.Namespace {
		meta.OwnerReferences = d.owner()
	}
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit:            ptr.To[int32](0),
		ActiveDeadlineSeconds:   ptr.To(int64(featureTime / time.Second)),
		TTLSecondsAfterFinished: ptr.To(int32(10 * featureTime / time.Second)),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
			Spec: corev1.PodSpec{
				NodeName:                     node,
				RestartPolicy:                corev1.RestartPolicyNever,
				AutomountServiceAccountToken: ptr.To(false),
				EnableServiceLinks:           ptr.To(false),
				Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				SecurityContext:              &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}},
				Containers:                   []corev1.Container{c.featureContainer(node)},
			},
		},
	}}
}

func (c *ChaosMesh) featureContainer(node string) corev1.Container {
	return corev1.Container{
		Name:            "node-features",
		Image:           c.ProbeImage,
		ImagePullPolicy: c.ProbePullPolicy,
		Args:            []string{"node-features", "--node", node},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: ptr.To[int64](0), RunAsNonRoot: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "SYS_ADMIN"}},
		},
	}
}

func (c *ChaosMesh) featureNamespace(d Drill) string {
	if c.ProbeNamespace != "" {
		return c.ProbeNamespace
	}
	return d.Namespace
}

func featureJobName(d Drill, node string) string {
	return "drill-" + d.short() + "-node-" + hashOf(node)
}

func hashOf(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return fmt.Sprintf("%016x", h.Sum64())
}

// featureJobs are the existing Jobs of a drill.
func (c *ChaosMesh) featureJobs(ctx context.Context, d Drill) ([]batchv1.Job, error) {
	var jobs batchv1.JobList
	err := c.Client.List(ctx, &jobs, client.InNamespace(c.featureNamespace(d)),
		client.MatchingLabels{LabelDrillUID: string(d.UID)}, client.HasLabels{labelNodeFeatures})
	return jobs.Items, err
}

func (c *ChaosMesh) removeFeatureJobs(ctx context.Context, d Drill) error {
	jobs, err := c.featureJobs(ctx, d)
	for i := range jobs {
		if e := c.Client.Delete(ctx, &jobs[i], client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(e) != nil {
			err = errors.Join(err, e)
		}
	}
	return err
}
