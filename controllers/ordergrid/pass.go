package ordergrid

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ordergrid/ordergrid/controllers/apply"
)

// run is one pass over one grid.
type run struct {
	*Reconciler
	*observation
	remembered   *gridMemory
	applier      apply.Applier
	templates    []corev1.PodTemplateSpec // by shard
	notAllowed   error                    // spec.podTemplate is refused, and StatefulSets keep their template
	made         map[string]bool          // records that the API server has, once queried because some are missing
	servicesRead *corev1.ServiceList
	gatewaysRead *[]gatewayRights
	again        time.Duration // delay of the next pass without a trigger; 0: not needed

	succeeded map[string]bool // steps of this pass
	broken    map[int32]bool  // shards for which a step failed: the later steps skip them
	slow      time.Duration   // time that failures have taken
}

func (r *run) lookWithin(d time.Duration) { r.again = sooner(r.again, d) }

// sooner is the shorter of two delays, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// step is one action of a pass.
type step struct {
	name  string
	do    func(context.Context) error
	after []string // the steps that it depends on; they precede it
}

// The steps that others depend on, or that are reported by name.
const (
	stepInquiry   = "inquiry"
	stepStage     = "TLS stage"
	stepTemplate  = "pod template"
	stepNodes     = "Kubernetes nodes"
	stepPlaces    = "places"
	stepCopies    = "copies"
	stepPeerKey   = "peer key"
	stepRules     = "authorization"
	stepGuard     = "network policy"
	stepMoves     = "moves"
	stepRestore   = "restore"
	stepPartition = "records"
	stepShards    = "shards"
	stepSinks     = "sinks"
	stepTraded    = "instruments"
	stepFunctions = "functions"
	stepLimits    = "limits"
	stepRegions   = "regions"
)

// plan is the steps of a pass, in this order. A step that fails stops those that depend on it, and no other:
//
// - Nothing of a new grid is created before its pod template is valid. A running grid keeps its template.
// - A pod template has all functions of spec.callbacks, or those that the pods were given before.
// - No pod is made to wait for limits that cannot be given to it, or for a file of regions that is not there.
func (r *run) plan() []step {
	return []step{
		{stepInquiry, r.inquire, nil},
		{stepStage, r.planTLS, nil},
		{stepFunctions, r.planCallbacks, nil},
		{stepTemplate, r.buildPods, []string{stepStage, stepFunctions}},
		{stepNodes, r.readNodes, nil},
		{stepPlaces, r.checkPlaces, []string{stepTemplate, stepNodes}},
		{stepCopies, r.planCopies, []string{stepInquiry, stepNodes}},
		{"client Service", r.applyClientService, []string{stepTemplate}},
		{"external access", r.keepExternal, []string{stepTemplate, stepCopies}},
		{stepPeerKey, r.keepPeerKey, []string{stepTemplate}},
		{"certificates", r.keepCertificates, []string{stepTemplate}},
		{stepRules, r.applyAuthorization, []string{stepTemplate}},
		{stepGuard, r.applyNetworkPolicy, []string{stepTemplate}},
		{stepTraded, r.applyInstruments, []string{stepTemplate}},
		{stepLimits, r.applyLimits, []string{stepTemplate}},
		{stepRegions, r.applyRegions, []string{stepTemplate}},
		{stepMoves, r.planMoves, []string{stepInquiry, stepCopies}},
		{stepRestore, r.planRestore, []string{stepTemplate}},
		{stepPartition, r.applyPartitions, []string{stepTemplate, stepCopies}},
		{stepShards, r.applyShards, []string{stepCopies, stepPeerKey, stepRules, stepLimits, stepRegions}},
		{stepSinks, r.applySinks, []string{stepTemplate, stepRules}},
		{"removal", r.removeShards, []string{stepInquiry, stepPartition}},
		{"lost pods", r.replaceLost, []string{stepInquiry, stepPlaces}},
		{"update", r.rollPods, []string{stepPlaces, stepPartition, stepShards}},
		{"copies of functions", r.removeFiles, []string{stepFunctions, stepShards}},
	}
}

// failure is the error of a step.
type failure struct {
	step string
	error
}

func (f *failure) Error() string { return f.step + ": " + f.error.Error() }
func (f *failure) Unwrap() error { return f.error }

// pass runs each step of a plan once, and returns the failures and the steps that were skipped because of them. It ends
// early only where no step can succeed: the operator is stopping, or the API server is unreachable.
func (r *run) pass(ctx context.Context, plan []step) (failed []error, held []string) {
	over := false
	for _, s := range plan {
		if over || slices.ContainsFunc(s.after, func(name string) bool { return !r.succeeded[name] }) {
			held = append(held, s.name)
			continue
		}
		err := s.do(ctx)
		if r.succeeded[s.name] = err == nil; err == nil {
			continue
		}
		for _, e := range each(err) {
			failed = append(failed, &failure{s.name, e})
		}
		_, unreachable := errors.AsType[net.Error](err)
		over = ctx.Err() != nil || unreachable
	}
	if r.notAllowed != nil {
		failed = append(failed, &failure{stepTemplate, r.notAllowed})
	}
	return failed, held
}

// each are the errors that were joined into one.
func each(err error) []error {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return joined.Unwrap()
	}
	return []error{err}
}

// patience bounds the time that failures of single shards may take: a webhook that does not answer blocks the worker,
// and so the other grids, with each of them.
const patience = 10 * time.Second

// eachShard runs f for every shard; a failing one stops no other. A shard for which an earlier step of the pass has
// failed is skipped.
func (r *run) eachShard(do func(shard int32) error) error {
	var failed []error
	for shard := range r.grid.Spec.Shards {
		if r.broken[shard] {
			continue
		}
		if r.broken[shard] = r.slow > patience; r.broken[shard] {
			failed = append(failed, fmt.Errorf("shard %d is skipped in this pass: failures of others took %v", shard, r.slow))
			continue
		}
		began := r.Clock.Now()
		if err := do(shard); err != nil {
			failed, r.broken[shard] = append(failed, err), true
			r.slow += r.Clock.Now().Sub(began)
		}
	}
	return errors.Join(failed...)
}

// retry is when a failed pass is retried; of several failures the latter counts.
type retry int

const (
	retryNever   retry = iota // only a change of an object helps, which triggers a reconcile
	retrySoon                 // the obstacle is already being removed
	retryBackoff              // as the work queue does
)

// stall is why the operator cannot go on.
type stall struct{ reason, message string }

// gravest orders the reasons of a stall: the first is the condition's reason, all of them are in its message.
var gravest = []string{reasonRecordLost, reasonPodTemplateInvalid, reasonPodTemplateNotAllowed, reasonNameTaken, reasonUnguarded, reasonApplyRefused, reasonStepFailed}

// classify maps the failures of a pass to a stall and to the time of the retry.
func classify(failed []error, held []string) (*stall, retry) {
	var (
		s           stall
		texts, who  []string
		again, rank = retryNever, len(gravest)
	)
	for _, err := range failed {
		f, _ := errors.AsType[*failure](err)
		reason, when := f.classify()
		again = max(again, when)
		if reason == "" {
			continue
		}
		if at := slices.Index(gravest, reason); at < rank {
			s.reason, rank = reason, at
		}
		texts = append(texts, f.error.Error())
		if !slices.Contains(who, f.step) {
			who = append(who, f.step)
		}
	}
	if len(texts) == 0 {
		return nil, again
	}
	s.message = fmt.Sprintf("%s. Failed: %s", sentences(texts), strings.Join(who, ", "))
	if len(held) > 0 {
		s.message += "; not done because of that" + some(held)
	}
	return &s, again
}

// classify maps one failure; the reason is empty where it resolves itself.
func (f *failure) classify() (reason string, again retry) {
	err := f.error
	if _, moved := errors.AsType[*movedError](err); moved {
		return "", retrySoon
	}
	if _, is := errors.AsType[*OverlayError](err); is {
		return reasonPodTemplateInvalid, retryNever
	}
	if _, is := errors.AsType[*unguardedError](err); is {
		return reasonUnguarded, retryNever // GridFunctions and RiskProfiles are watched
	}
	if _, is := errors.AsType[*LimitError](err); is {
		return reasonPodTemplateNotAllowed, retryNever
	}
	if foreign, is := errors.AsType[*apply.ForeignError](err); is {
		if foreign.Leaving {
			return "", retrySoon
		}
		return reasonNameTaken, retryBackoff // the deletion of the foreign object triggers no reconcile
	}
	if _, is := errors.AsType[*recordLostError](err); is {
		return reasonRecordLost, retryBackoff
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return reasonApplyRefused, retryBackoff
	}
	return reasonStepFailed, retryBackoff
}
