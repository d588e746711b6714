package ordergrid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// Reasons of SinksReady, and of sinks in status.
const (
	reasonSinksReady        = "SinksReady"
	reasonSinkReady         = "Ready"
	reasonSinkPreparing     = "Preparing"
	reasonSinkPrepareFailed = "PrepareFailed"
	reasonSinkNotReady      = "NotReady"
	reasonSinksNotLooked    = "NotLooked"
)

// sinkState is the state of a sink with a pod.
type sinkState struct{ name, reason, message string }

// applySinks runs the pods of sinks that need one, and removes those of sinks that are gone. Everything of a sink is
// owned by its Deployment, so that Kubernetes' garbage collector removes it with that.
func (r *run) applySinks(ctx context.Context) error {
	var have appsv1.DeploymentList
	if err := r.list(ctx, r.Client, r.grid, &have, client.MatchingLabels{api.LabelGrid: r.grid.Name}); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	sinks := r.grid.SinksWithPods()
	var failed []error
	states := make([]sinkState, 0, len(sinks))
	for i := range sinks {
		state, err := r.applySink(ctx, &sinks[i])
		if err != nil {
			failed = append(failed, fmt.Errorf("sink %s: %w", sinks[i].Name, err))
			continue
		}
		if state.reason != reasonSinkReady {
			r.lookWithin(tlsLookTrouble) // pods that cannot start change no object that is watched
		}
		states = append(states, state)
	}
	if len(failed) == 0 {
		r.sinkPods = states
	}
	for i := range have.Items {
		d := &have.Items[i]
		name := d.Labels[api.LabelSink]
		if name == "" || !owned(r.grid, d) || slices.ContainsFunc(sinks, func(s api.SinkSpec) bool { return s.Name == name }) {
			continue
		}
		if _, err := r.delete(ctx, &appsv1.Deployment{}, d.Name); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// applySink makes the objects of a sink. A Job that prepares the target has to succeed before the Deployment gets its
// pod, or the pod's next template.
func (r *run) applySink(ctx context.Context, s *api.SinkSpec) (sinkState, error) {
	job := sinkJob(r.grid, s, r.Defaults)
	done, trouble, err := r.jobState(ctx, job)
	if err != nil {
		return sinkState{}, err
	}
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: r.grid.Namespace, Name: api.SinkName(r.grid.Name, s.Name)}
	err = r.Client.Get(ctx, key, d)
	if client.IgnoreNotFound(err) != nil {
		return sinkState{}, fmt.Errorf("read Deployment %s: %w", key.Name, err)
	}
	if missing := apierrors.IsNotFound(err); done || missing {
		replicas := int32(0)
		if done {
			replicas = 1
		}
		if _, err := r.applier.Apply(ctx, r.grid, sinkDeployment(r.grid, s, r.Defaults, replicas)); err != nil {
			return sinkState{}, err
		}
		if missing {
			if err := r.Live.Get(ctx, key, d); err != nil {
				return sinkState{}, fmt.Errorf("read Deployment %s: %w", key.Name, err)
			}
		}
	}
	objects := []client.Object{sinkServiceAccount(r.grid, s)}
	if r.grid.Spec.Security.PolicyType() == api.NetworkPolicyRestricted {
		objects = append(objects, sinkPolicy(r.grid, s))
	}
	if job != nil && !done {
		objects = append(objects, job)
	}
	for _, o := range objects {
		if _, err := r.applier.Apply(ctx, d, o); err != nil {
			return sinkState{}, err
		}
	}
	if trouble.reason != "" {
		trouble.name = s.Name
		trouble.message += r.sinkTrouble(ctx, s)
		return trouble, nil
	}
	return r.podState(ctx, s, d), nil
}

// jobState reports whether a sink's target is prepared, and otherwise why not.
func (r *run) jobState(ctx context.Context, want *batchv1.Job) (done bool, trouble sinkState, err error) {
	if want == nil {
		return true, sinkState{}, nil
	}
	job := &batchv1.Job{}
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(want), job)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return false, sinkState{}, fmt.Errorf("read Job %s: %w", want.Name, err)
	case err == nil && job.Status.CompletionTime != nil:
		return true, sinkState{}, nil
	case err == nil && messages.JobFailure(job) != "":
		return false, sinkState{reason: reasonSinkPrepareFailed, message: fmt.Sprintf("Job %s failed: %s. Mend what it reports, then delete the Job: the operator makes it again", want.Name, messages.JobFailure(job))}, nil
	}
	return false, sinkState{reason: reasonSinkPreparing, message: fmt.Sprintf("Job %s prepares the target", want.Name)}, nil
}

func (r *run) podState(ctx context.Context, s *api.SinkSpec, d *appsv1.Deployment) sinkState {
	if d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas > 0 && d.Status.UpdatedReplicas > 0 {
		return sinkState{name: s.Name, reason: reasonSinkReady}
	}
	return sinkState{name: s.Name, reason: reasonSinkNotReady, message: fmt.Sprintf("the pod of Deployment %s is not ready%s; see `kubectl logs -n %s deployment/%s`", d.Name, r.sinkTrouble(ctx, s), d.Namespace, d.Name)}
}

// sinkTrouble is why a pod of a sink does not run, to be appended to a message; "" if it is not known.
func (r *run) sinkTrouble(ctx context.Context, s *api.SinkSpec) string {
	var pods corev1.PodList
	if err := r.list(ctx, r.Client, r.grid, &pods, client.MatchingLabels{api.LabelGrid: r.grid.Name, api.LabelSink: s.Name}); err != nil {
		return "" // status has less to tell
	}
	return messages.First(pods.Items, messages.PodTrouble)
}

// judgeSinks: the pods of all sinks that need one are ready.
func judgeSinks(o *observation) judgement {
	n := len(o.grid.SinksWithPods())
	if n == 0 {
		return judgement{}
	}
	if len(o.sinkPods) < n {
		return judgement{metav1.ConditionUnknown, reasonSinksNotLooked, "the pods of sinks were not looked at; see condition Stalled"}
	}
	var reason string
	var texts []string
	for _, s := range o.sinkPods {
		if s.reason == reasonSinkReady {
			continue
		}
		if reason == "" || s.reason == reasonSinkPrepareFailed {
			reason = s.reason
		}
		texts = append(texts, fmt.Sprintf("sink %s: %s", s.name, s.message))
	}
	if len(texts) > 0 {
		return judgement{metav1.ConditionFalse, reason, strings.Join(texts, ". ") + ". Entries that a sink does not hold are kept in memory"}
	}
	return judgement{metav1.ConditionTrue, reasonSinksReady, all(n, "sink with a pod is", "sinks with pods are") + " ready"}
}

// sinkReason is the state of a sink's pod for status; "" if it has none or is not known.
func (o *observation) sinkReason(s *api.SinkSpec) string {
	for _, state := range o.sinkPods {
		if state.name == s.Name {
			return state.reason
		}
	}
	return ""
}
