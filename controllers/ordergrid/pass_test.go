package ordergrid

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ordergrid/ordergrid/controllers/apply"
)

func newRun() *run {
	grid := pairGrid()
	grid.Spec.Shards = 4
	return &run{Reconciler: &Reconciler{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, observation: &observation{grid: grid}, succeeded: map[string]bool{}, broken: map[int32]bool{}}
}

// TestPlan: a step follows those it depends on, and each occurs once.
func TestPlan(t *testing.T) {
	var before []string
	for _, s := range newRun().plan() {
		for _, name := range s.after {
			if !slices.Contains(before, name) {
				t.Errorf("%s needs %q, which is no step before it", s.name, name)
			}
		}
		if slices.Contains(before, s.name) {
			t.Errorf("%s occurs twice", s.name)
		}
		before = append(before, s.name)
	}
}

func TestPass(t *testing.T) {
	boom := errors.New("boom")
	unreachable := &url.Error{Op: "Get", URL: "https://api", Err: errors.New("connection refused")}
	for _, test := range []struct {
		name                  string
		fails                 map[string]error
		did, failed, heldBack string
	}{
		{"all is well", nil, "a b c d", "", ""},
		{"one that others need", map[string]error{"a": boom}, "a c", "a: boom", "b d"},
		{"one that no other needs", map[string]error{"c": boom}, "a b c d", "c: boom", ""},
		{"two", map[string]error{"b": boom, "c": boom}, "a b c", "b: boom, c: boom", "d"},
		{"several errors of one step", map[string]error{"c": errors.Join(boom, errors.New("bang"))}, "a b c d", "c: boom, c: bang", ""},
		{"the API server is unreachable", map[string]error{"a": unreachable}, "a", `a: Get "https://api": connection refused`, "b c d"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var did []string
			do := func(name string) func(context.Context) error {
				return func(context.Context) error { did = append(did, name); return test.fails[name] }
			}
			failed, held := newRun().pass(t.Context(), []step{{"a", do("a"), nil}, {"b", do("b"), []string{"a"}}, {"c", do("c"), nil}, {"d", do("d"), []string{"b"}}})
			var texts []string
			for _, f := range failed {
				texts = append(texts, f.Error())
			}
			if got := strings.Join(did, " "); got != test.did {
				t.Errorf("did %s, want %s", got, test.did)
			}
			if got := strings.Join(texts, ", "); got != test.failed {
				t.Errorf("failed: %s, want %s", got, test.failed)
			}
			if got := strings.Join(held, " "); got != test.heldBack {
				t.Errorf("held back: %s, want %s", got, test.heldBack)
			}
		})
	}
}

// TestPassOfAnOperatorThatEnds runs no further step.
func TestPassOfAnOperatorThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, held := newRun().pass(ctx, []step{
		{"a", func(context.Context) error { cancel(); return ctx.Err() }, nil},
		{"b", func(context.Context) error { t.Error("b was done"); return nil }, nil},
	})
	if len(held) != 1 {
		t.Errorf("held back: %v", held)
	}
}

// TestEachShard: a failing shard stops no other, and later steps skip it.
func TestEachShard(t *testing.T) {
	r := newRun()
	var did []int32
	err := r.eachShard(func(shard int32) error {
		did = append(did, shard)
		if shard == 1 || shard == 2 {
			return errors.New("boom")
		}
		return nil
	})
	if !slices.Equal(did, []int32{0, 1, 2, 3}) || len(each(err)) != 2 {
		t.Errorf("did %v, error %v", did, err)
	}
	did = nil
	if err := r.eachShard(func(shard int32) error { did = append(did, shard); return nil }); err != nil || !slices.Equal(did, []int32{0, 3}) {
		t.Errorf("the next step did %v, error %v", did, err)
	}
}

// TestSlowFailuresEnd: shards that each fail slowly do not block the worker for other grids.
func TestSlowFailuresEnd(t *testing.T) {
	r := newRun()
	clock := r.Clock.(*clocktesting.FakePassiveClock)
	asked := 0
	err := r.eachShard(func(int32) error {
		asked++
		clock.SetTime(clock.Now().Add(patience))
		return errors.New("the webhook did not answer")
	})
	if asked != 2 || len(each(err)) != 4 || len(r.broken) != 4 {
		t.Errorf("%d of 4 shards were tried, %d are skipped, error %v", asked, len(r.broken), err)
	}
}

func TestClassify(t *testing.T) {
	resource := schema.GroupResource{Resource: "networkpolicies"}
	forbidden := apierrors.NewForbidden(resource, "rtd.nodes", errors.New("no"))
	down := apierrors.NewInternalError(errors.New("failed calling webhook"))
	moved := &movedError{apierrors.NewConflict(resource, "rtd.nodes", errors.New("changed"))}
	leaving := &apply.ForeignError{Kind: "Service", Name: "rtd-s0", Leaving: true}
	taken := &apply.ForeignError{Kind: "Service", Name: "rtd-s0"}
	lost := &recordLostError{"rtd-p0", 2}
	overlay := &OverlayError{}
	for _, test := range []struct {
		name   string
		errors []error
		reason string
		again  retry
	}{
		{"none", nil, "", retryNever},
		{"moved", []error{moved}, "", retrySoon},
		{"leaving", []error{leaving}, "", retrySoon},
		{"refused", []error{forbidden}, reasonApplyRefused, retryBackoff},
		{"moved and refused", []error{moved, forbidden}, reasonApplyRefused, retryBackoff},
		{"not known to require action", []error{down}, reasonStepFailed, retryBackoff},
		{"one of two requires action", []error{down, forbidden}, reasonApplyRefused, retryBackoff},
		{"a record is lost, and more", []error{forbidden, taken, lost}, reasonRecordLost, retryBackoff},
		{"only the spec can change it", []error{overlay}, reasonPodTemplateInvalid, retryNever},
		{"the spec, and what is leaving", []error{overlay, leaving}, reasonPodTemplateInvalid, retrySoon},
		{"name taken", []error{taken, forbidden}, reasonNameTaken, retryBackoff},
	} {
		t.Run(test.name, func(t *testing.T) {
			var failed []error
			for i, err := range test.errors {
				failed = append(failed, &failure{"step " + string(rune('a'+i)), err})
			}
			s, again := classify(failed, []string{"update"})
			if again != test.again {
				t.Errorf("again %d, want %d", again, test.again)
			}
			switch {
			case s == nil && test.reason != "":
				t.Errorf("it is not reported, want %s", test.reason)
			case s != nil && s.reason != test.reason:
				t.Errorf("reason %s, want %s", s.reason, test.reason)
			case s != nil && !strings.HasSuffix(s.message, "not done because of that: update"):
				t.Errorf("message %q", s.message)
			}
		})
	}
}

// TestFailingPassDelaysNothing: the pause after failures grows, but not beyond the delay that the pass requested.
func TestFailingPassDelaysNothing(t *testing.T) {
	m := &memory{}
	limiter, request := hurried{apply.RetryLimiter(), m}, reconcile.Request{NamespacedName: types.NamespacedName{Name: "rtd"}}
	other := reconcile.Request{NamespacedName: types.NamespacedName{Name: "other"}}
	m.of(request.NamespacedName).again = 30 * time.Second
	var longest, longestOther time.Duration
	for range 30 {
		longest, longestOther = max(longest, limiter.When(request)), max(longestOther, limiter.When(other))
	}
	if longest != 30*time.Second || longestOther != time.Minute {
		t.Errorf("pauses of up to %v and, for a grid without a requested delay, %v; want 30s and 1m", longest, longestOther)
	}
	m.of(request.NamespacedName).again = 0
	if pause := limiter.When(request); pause != time.Minute {
		t.Errorf("a pause of %v without a requested delay, want 1m", pause)
	}
}
