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
	notAllowed   error                    // spec.podTemplate is refused, and StatefulSets keep the template they have
	made         map[string]bool          // records that the API server has, once it was asked because some are missing
	servicesRead *corev1.ServiceList
	again        time.Duration // when to look again without being woken; 0: not needed

	succeeded map[string]bool // steps of this pass
	broken    map[int32]bool  // shards of which a step failed: the later steps leave them alone
	slow      time.Duration   // what failures have taken
}

func (r *run) lookWithin(d time.Duration) { r.again = sooner(r.again, d) }

// sooner is the earlier of two times to wait, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// step is one thing that a pass does.
type step struct {
	name  string
	do    func(context.Context) error
	after []string // the steps that it needs; they stand before it
}

// The steps that others need, or a person is told of as such.
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
	stepPartition = "records"
	stepShards    = "shards"
)

// plan is what a pass does, in this order. A step that fails stops those that need it, and no other:
//
//   - Nothing of a new grid is made before its pod template is right. A grid that runs keeps the template it has.
//   - What a pod needs comes before the pod, shard by shard: its record, its rights, its Service, what it mounts.
//   - No pod is replaced by an update while anything is not as it should be that decides whether one may go: copies,
//     records, disruption budgets, places. A pod on a lost node is judged by what the API server says alone.
//   - A partition is sent to another shard, and a shard is removed, by what the records say, read when that is decided.
func (r *run) plan() []step {
	return []step{
		{stepInquiry, r.inquire, nil},
		{stepStage, r.planTLS, nil},
		{stepTemplate, r.buildPods, []string{stepStage}},
		{stepNodes, r.readNodes, nil},
		{stepPlaces, r.checkPlaces, []string{stepTemplate, stepNodes}},
		{stepCopies, r.planCopies, []string{stepInquiry, stepNodes}},
		{"client Service", r.applyClientService, []string{stepTemplate}},
		{"external access", r.keepExternal, []string{stepTemplate, stepCopies}},
		{stepPeerKey, r.keepPeerKey, []string{stepTemplate}},
		{"certificates", r.keepCertificates, []string{stepTemplate}},
		{stepRules, r.applyAuthorization, []string{stepTemplate}},
		{stepGuard, r.applyNetworkPolicy, []string{stepTemplate}},
		{stepMoves, r.planMoves, []string{stepInquiry, stepCopies}},
		{stepPartition, r.applyPartitions, []string{stepTemplate, stepCopies}},
		{stepShards, r.applyShards, []string{stepCopies, stepPeerKey, stepRules}},
		{"removal", r.removeShards, []string{stepInquiry, stepPartition}},
		{"lost pods", r.replaceLost, []string{stepInquiry, stepPlaces}},
		{"update", r.rollPods, []string{stepPlaces, stepPartition, stepShards}},
	}
}

// failure is what a step failed of.
type failure struct {
	step string
	error
}

func (f *failure) Error() string { return f.step + ": " + f.error.Error() }
func (f *failure) Unwrap() error { return f.error }

// pass does each step of a plan once, and returns what failed and the steps that were not done because of that. It ends
// early only where no step can succeed: the operator is ending, or the API server cannot be reached.
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

// patience bounds what failures of single shards may take: a webhook that does not answer holds up the worker, and so the
// other grids, with each of them.
const patience = 10 * time.Second

// eachShard does something for every shard, one that fails stopping no other. A shard of which an earlier step of the pass
// has failed is left alone.
func (r *run) eachShard(do func(shard int32) error) error {
	var failed []error
	for shard := range r.grid.Spec.Shards {
		if r.broken[shard] {
			continue
		}
		if r.broken[shard] = r.slow > patience; r.broken[shard] {
			failed = append(failed, fmt.Errorf("shard %d is not looked after in this pass: what failed of others took %v", shard, r.slow))
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

// retry says when a failed pass is tried again; of several failures the latter counts.
type retry int

const (
	retryNever   retry = iota // only a change of an object helps, and that wakes the controller
	retrySoon                 // what stands in the way is already leaving
	retryBackoff              // as the work queue does
)

// stall is why the operator cannot go on.
type stall struct{ reason, message string }

// gravest orders the reasons of a stall: one is said in the condition's reason, all of them in its message.
var gravest = []string{reasonRecordLost, reasonPodTemplateInvalid, reasonPodTemplateNotAllowed, reasonNameTaken, reasonApplyRefused, reasonStepFailed}

// classify says what the failures of a pass mean: whether a person has to act, and when to try again.
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

// classify says what one failure means; the reason is empty where what stands in the way goes by itself.
func (f *failure) classify() (reason string, again retry) {
	err := f.error
	if _, moved := errors.AsType[*movedError](err); moved {
		return "", retrySoon
	}
	if _, is := errors.AsType[*OverlayError](err); is {
		return reasonPodTemplateInvalid, retryNever
	}
	if _, is := errors.AsType[*LimitError](err); is {
		return reasonPodTemplateNotAllowed, retryNever
	}
	if foreign, is := errors.AsType[*apply.ForeignError](err); is {
		if foreign.Leaving {
			return "", retrySoon
		}
		return reasonNameTaken, retryBackoff // the foreign object does not wake the controller when it goes
	}
	if _, is := errors.AsType[*recordLostError](err); is {
		return reasonRecordLost, retryBackoff
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return reasonApplyRefused, retryBackoff
	}
	return reasonStepFailed, retryBackoff
}
