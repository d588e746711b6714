package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// StartDrill creates a FailoverDrill of the grid and runs the pod of its recorder. The caller plays Chaos Mesh.
func (r *Run) StartDrill(ctx context.Context, d *api.FailoverDrill) error {
	d.Spec.GridRef.Name = gridName
	if err := r.kube.Create(ctx, d); err != nil {
		return err
	}
	job := &batchv1.Job{}
	if err := r.Until(ctx, "the operator has made the Job of the recorder of "+d.Name, func() bool {
		return r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: api.RecorderName(d.Name)}, job) == nil
	}); err != nil {
		return err
	}
	return r.startRecorder(ctx, job)
}

// startRecorder plays the Job controller and the kubelet, with the operator's own command line; only addresses and
// directories that need a cluster differ.
func (r *Run) startRecorder(ctx context.Context, job *batchv1.Job) error {
	pod := &corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
	pod.Name, pod.Namespace, pod.Spec.NodeName = job.Name+"-0", namespace, "another-machine"
	pod.Labels[batchv1.ControllerUidLabel] = string(job.UID)
	container := &pod.Spec.Containers[0]
	var endpoints []string
	for i := range replicas {
		endpoints = append(endpoints, fmt.Sprintf("%s:%d", nodeIP(i), api.DataPort))
	}
	ip := probeIP(r.probes)
	r.probes++
	args := slices.Clone(container.Args)
	for flag, value := range map[string]string{"--endpoint": strings.Join(endpoints, ","), "--http": fmt.Sprintf("%s:%d", ip, recorder.Port), "--dir": filepath.Join(r.o.Dir, pod.Name)} {
		i := slices.Index(args, flag)
		if i < 0 {
			return fmt.Errorf("the recorder's command line has no %s: %v", flag, args)
		}
		args[i+1] = value
	}
	ref := container.Env[0].ValueFrom.SecretKeyRef
	secret := &corev1.Secret{}
	if err := r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: ref.Name}, secret); err != nil {
		return err
	}
	if err := r.mount(secret, pod.Name, args); err != nil {
		return err
	}
	p, err := r.spawn(pod.Name, []string{recorder.TokenVariable + "=" + string(secret.Data[ref.Key])}, filepath.Join(r.o.Bin, "order-probe"), args...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.others = append(r.others, p)
	r.mu.Unlock()
	if err := r.kube.Create(ctx, pod); err != nil {
		return err
	}
	return r.Runs(ctx, pod, ip)
}

// mount writes the files of the recorder's Secret, and adjusts its command line.
func (r *Run) mount(secret *corev1.Secret, pod string, args []string) error {
	dir := filepath.Join(r.o.Dir, pod+"-identity")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for flag, key := range map[string]string{"--http-cert": certificates.KeyCert, "--http-key": certificates.KeyKey, "--http-ca": certificates.KeyCA} {
		i := slices.Index(args, flag)
		if i < 0 {
			return fmt.Errorf("the recorder's command line has no %s: %v", flag, args)
		}
		args[i+1] = filepath.Join(dir, key)
		if err := os.WriteFile(args[i+1], secret.Data[key], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Runs marks a pod as ready, like its kubelet.
func (r *Run) Runs(ctx context.Context, pod *corev1.Pod, ip string) error {
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return r.kube.Status().Update(ctx, pod)
}
