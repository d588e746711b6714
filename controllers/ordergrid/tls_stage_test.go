package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// TestStagesAreNeighbours: for every spec, and however often it changes, a template is of the stage of all pods or of a
// neighbouring one, and the desired stage is reached.
func TestStagesAreNeighbours(t *testing.T) {
	for wanted := stagePlain; wanted <= stageTLS; wanted++ {
		for now := stagePlain; now <= stageTLS; now++ {
			if got := nextStage(now, wanted, false); got != now {
				t.Errorf("with pods of two stages: %d to %d goes on with %d", now, wanted, got)
			}
			at := now
			for range 4 {
				next := nextStage(at, wanted, true)
				if next-at > 1 || at-next > 1 {
					t.Errorf("%d to %d skips from %d to %d", now, wanted, at, next)
				}
				at = next
			}
			if at != wanted {
				t.Errorf("%d to %d ends at %d", now, wanted, at)
			}
		}
	}
}

// TestStageIsInThePod: the stage is read from the pods that were built for it, and a stage without certificates for all
// clients does not authenticate them.
func TestStageIsInThePod(t *testing.T) {
	grid := guardedGrid()
	for stage := stagePlain; stage <= stageTLS; stage++ {
		template := pod(staged(grid, stage), 0, testDefaults)
		c := &template.Spec.Containers[0]
		c.Args = append(c.Args, transitionArgs(stage)...)
		if got := stageOf(&template.Spec); got != stage {
			t.Errorf("stage %d is read as %d: %v", stage, got, c.Args)
		}
		args := strings.Join(c.Args, " ")
		if strings.Contains(args, "--authorization") != (stage == stageTLS) {
			t.Errorf("stage %d: %s", stage, args)
		}
	}
	if staged(grid, stageTLS) != grid {
		t.Error("a grid at its final stage is copied")
	}
}

// says makes the nodes answer with plain clients in a stage.
func (f *fakeNodes) connected(grid *api.OrderGrid, ordinal int32, connections int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &nodestatus.Node{Grid: grid.Name, Pod: api.PodName(grid.Name, 0, ordinal), BootID: "0123456789abcdef", TLS: &nodestatus.TLS{
		Transition: nodestatus.TransitionDial, PlainClients: &nodestatus.PlainClients{Connections: connections}}}
	if connections > 0 {
		n.TLS.PlainClients.Some = []nodestatus.PlainClient{{Host: "10.1.2.3", Name: "old-gateway"}}
	}
	f.answers[podIP(0, ordinal)+":9400"] = n
}

// templateStage is the stage of the StatefulSet's template.
func (r *rolling) templateStage() tlsStage {
	r.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rtd-s0", Namespace: r.namespace}}
	r.get(set)
	return stageOf(&set.Spec.Template.Spec)
}

func (r *rolling) wantStage(when string, stage tlsStage, transition api.TLSTransition, reason, text string) {
	r.t.Helper()
	c := meta.FindStatusCondition(r.grid.Status.Conditions, api.ConditionSecure)
	var got api.TLSTransition
	if r.grid.Status.TLS != nil {
		got = r.grid.Status.TLS.Transition
	}
	if s := r.templateStage(); s != stage || got != transition || c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
		r.t.Fatalf("%s: template of stage %d, want %d; transition %q, want %q; Secure %+v, want %s with %q", when, s, stage, got, transition, c, reason, text)
	}
}

// rolled has both pods replaced by ones of the present template, with the update's usual rules.
func (r *rolling) rolled(revision string) {
	r.t.Helper()
	r.revision(revision)
	stage := r.templateStage()
	for i, ordinal := range []int32{1, 0} {
		if !r.gone(ordinal) { // not evicted by the operator yet
			if err := r.client.Delete(r.t.Context(), r.pod(ordinal), client.GracePeriodSeconds(0)); err != nil {
				r.t.Fatal(err)
			}
		}
		r.run(r.grid)
		if s := r.templateStage(); s != stage {
			r.t.Fatalf("the template goes on to stage %d while a pod is missing", s)
		}
		r.back(ordinal, revision, fmt.Sprintf("%016x", int(revision[3])*16+i))
		if i == 0 {
			r.run(r.grid)
			if s := r.templateStage(); s != stage {
				r.t.Fatalf("the template goes on to stage %d while a pod is of another", s)
			}
		}
	}
}

// TestTLSIsTurnedOn takes a running grid without TLS to TLS, on a real API server: stage by stage, each only when every
// pod is of the previous one, and not past clients still without TLS.
func TestTLSIsTurnedOn(t *testing.T) {
	r := newRolling(t)
	r.wantStage("before", stagePlain, "", reasonInsecureAccepted, "add spec.security.tls beside insecure: Accept")
	r.grid.Spec.Security.TLS = &api.TLSSpec{Clients: []string{"gateway"}}
	r.update(r.grid)
	r.run(r.grid) // creates the certificates, which pods of the next stage mount
	r.wantStage("asked for", stagePlain, api.TLSTransitionStarting, reasonPlainClients, "not every node accepts TLS yet")
	if r.grid.TakesTLS() {
		t.Error("probes would use TLS")
	}
	r.secret("rtd.tls-client-gateway")
	r.run(r.grid)
	r.wantStage("with certificates", stageAccept, api.TLSTransitionStarting, reasonPlainClients, "clients continue without")
	r.rolled("rev2")
	r.run(r.grid)
	r.wantStage("every pod accepts TLS", stageDial, api.TLSTransitionBoth, reasonPlainClients, "")
	r.rolled("rev3")
	for ordinal := range int32(2) {
		r.nodes.connected(r.grid, ordinal, 1)
	}
	r.run(r.grid)
	r.wantStage("clients change", stageDial, api.TLSTransitionBoth, reasonPlainClients, `2 connections of clients without TLS: "old-gateway" at 10.1.2.3`)
	if n := r.grid.Status.TLS.PlainClients; n == nil || *n != 2 {
		t.Errorf("status.tls.plainClients is %v", n)
	}
	// The annotation claims that every client has TLS, which is wrong.
	r.grid.Spec.Security.Insecure, r.grid.Spec.Security.NetworkPolicy.Type = "", api.NetworkPolicyRestricted
	r.update(r.grid)
	r.pass(2 * plainQuiet)
	r.run(r.grid)
	r.wantStage("with a plain client", stageDial, api.TLSTransitionBoth, reasonTurningOnTLS, "ordergrid.dev/end-plain-clients=1")
	for ordinal := range int32(2) {
		r.nodes.connected(r.grid, ordinal, 0)
	}
	r.run(r.grid)
	r.wantStage("at once", stageDial, api.TLSTransitionBoth, reasonTurningOnTLS, "none may be for 1m0s")
	r.pass(plainQuiet + time.Second)
	r.run(r.grid)
	r.wantStage("when all has been quiet", stageTLS, "", reasonTurningOnTLS, "accept TLS only")
	r.rolled("rev4")
	r.run(r.grid)
	r.wantStage("in the end", stageTLS, "", reasonClientsProven, "are authenticated")
	// And back to accepting clients without TLS.
	r.grid.Spec.Security.Insecure = api.InsecureAccept
	r.update(r.grid)
	r.run(r.grid)
	r.wantStage("opened again", stageDial, api.TLSTransitionBoth, reasonPlainClients, "")
}

// TestPlainClientsAreEnded: the annotation ends the wait for the last client.
func TestPlainClientsAreEnded(t *testing.T) {
	r := newRolling(t)
	r.grid.Spec.Security.TLS, r.grid.Spec.Security.Insecure, r.grid.Spec.Security.NetworkPolicy.Type = &api.TLSSpec{}, "", api.NetworkPolicyNone
	r.update(r.grid)
	r.run(r.grid)
	r.run(r.grid)
	r.rolled("rev2")
	r.run(r.grid)
	r.rolled("rev3")
	for ordinal := range int32(2) {
		r.nodes.connected(r.grid, ordinal, 3)
	}
	r.run(r.grid)
	r.wantStage("six connections", stageDial, api.TLSTransitionBoth, reasonTurningOnTLS, "6 connections")
	r.ask(r.grid, api.AnnotationEndPlainClients, "1")
	r.run(r.grid)
	r.wantStage("asked for", stageTLS, "", reasonTurningOnTLS, "accept TLS only")
	if p := r.pod(0); p.Status.Phase != corev1.PodRunning {
		t.Errorf("pod 0 is %s", p.Status.Phase)
	}
}
