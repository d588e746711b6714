package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// probePort is the metrics port of a probe pod.
const probePort = 9401

// Probe creates an OrderProbe of the scenario stac-pair and starts its pods. Ended returns its verdict.
func (r *Run) Probe(ctx context.Context, name string, rates []int32, warmup, measure time.Duration) error {
	one := int32(1)
	probe := &api.OrderProbe{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: api.OrderProbeSpec{
		GridRef: api.GridReference{Name: gridName}, Scenario: api.ScenarioPair,
		Overrides: &api.ProbeOverrides{RatesPerProbe: rates, Warmup: &metav1.Duration{Duration: warmup}, Measure: &metav1.Duration{Duration: measure}, Repeats: &one},
	}}
	if err := r.kube.Create(ctx, probe); err != nil {
		return err
	}
	job := &batchv1.Job{}
	if err := r.Until(ctx, "the operator has made the Job of "+name, func() bool {
		return r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: name}, job) == nil
	}); err != nil {
		return err
	}
	account, err := r.account(ctx, job.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	for i := range int(*job.Spec.Completions) {
		if err := r.startProbe(job, account, i); err != nil {
			return err
		}
	}
	return nil
}

// Ended waits for the result of an OrderProbe and returns its verdict.
func (r *Run) Ended(ctx context.Context, name string) (string, error) {
	probe := &api.OrderProbe{}
	err := r.Until(ctx, "OrderProbe "+name+" has a result", func() bool {
		return r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: name}, probe) == nil &&
			(meta.IsStatusConditionTrue(probe.Status.Conditions, api.ConditionComplete) || meta.IsStatusConditionTrue(probe.Status.Conditions, api.ConditionFailed))
	})
	if c := meta.FindStatusCondition(probe.Status.Conditions, api.ConditionFailed); err == nil && c != nil && c.Status == metav1.ConditionTrue {
		return "", fmt.Errorf("OrderProbe %s failed: %s", name, c.Message)
	}
	return string(probe.Status.Verdict), err
}

// account is a directory as mounted by Kubernetes: the token of a service account, and the CA.
func (r *Run) account(ctx context.Context, name string) (string, error) {
	dir := filepath.Join(r.o.Dir, "account-"+name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	token := &authenticationv1.TokenRequest{}
	if err := r.kube.SubResource("token").Create(ctx, account, token); err != nil {
		return "", fmt.Errorf("token of %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token.Status.Token), 0o600); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "ca.crt"), r.config.CAData, 0o600)
}

// startProbe runs one pod of the Job with the operator's own command line; only addresses that need a cluster's DNS
// differ.
func (r *Run) startProbe(job *batchv1.Job, account string, index int) error {
	var endpoints, metrics []string
	for i := range replicas {
		endpoints = append(endpoints, fmt.Sprintf("%s:%d", nodeIP(i), api.DataPort))
		metrics = append(metrics, fmt.Sprintf("http://%s:%d", nodeIP(i), api.HTTPPort))
	}
	args := append([]string{}, job.Spec.Template.Spec.Containers[0].Args...)
	for i, a := range args {
		if a == "--endpoint" {
			args[i+1] = strings.Join(endpoints, ",")
		}
		args[i] = strings.ReplaceAll(args[i], "$(PROBE_INDEX)", strconv.Itoa(index))
	}
	address := fmt.Sprintf("%s:%d", probeIP(r.probes), probePort)
	r.probes++
	args = append(args, "--metrics", strings.Join(metrics, ","), "--http", address, "--shared-cores", "--api-server", strings.TrimSuffix(r.config.Host, "/"), "--account-dir", account)
	pod := fmt.Sprintf("%s-%d", job.Name, index)
	p, err := r.spawn(pod, nil, filepath.Join(r.o.Bin, "order-probe"), args...)
	if err != nil {
		return err
	}
	r.others = append(r.others, p)
	return r.addTarget("probes", address, namespace, pod, map[string]string{api.LabelProbe: job.Name})
}
