package ordergrid

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// TLS is enabled for a running grid in stages, each an update of all pods: pods of neighbouring stages are compatible.
// The behaviour of a pod is in its arguments, so the stage is read from the pods and not remembered.

// tlsStage is the behaviour of a pod on its data port.
type tlsStage int

const (
	stagePlain  tlsStage = iota // plain connections only
	stageAccept                 // accepts TLS beside them, and dials other nodes without
	stageDial                   // accepts both, and dials TLS
	stageTLS                    // TLS only
)

// plainQuiet is how long no client may have been connected without TLS before they are refused.
const plainQuiet = time.Minute

const (
	flagTransition = "--tls-transition"
	flagCert       = "--tls-cert"
)

// wantedStage is the final stage of spec.
func wantedStage(s *api.SecuritySpec) tlsStage {
	switch {
	case s.TLS == nil:
		return stagePlain
	case s.Insecure == api.InsecureAccept:
		return stageDial
	}
	return stageTLS
}

// stageOf reads it from a pod's arguments.
func stageOf(spec *corev1.PodSpec) tlsStage {
	for _, c := range spec.Containers {
		if c.Name != containerName {
			continue
		}
		if i := slices.Index(c.Args, flagTransition); i >= 0 && i+1 < len(c.Args) {
			if c.Args[i+1] == nodestatus.TransitionAccept {
				return stageAccept
			}
			return stageDial
		}
		if slices.Contains(c.Args, flagCert) {
			return stageTLS
		}
	}
	return stagePlain
}

// staged is the grid with pods of a stage.
func staged(grid *api.OrderGrid, stage tlsStage) *api.OrderGrid {
	if stage == wantedStage(&grid.Spec.Security) {
		return grid
	}
	grid = grid.DeepCopy()
	if stage == stagePlain {
		grid.Spec.Security.TLS = nil
	}
	if stage != stageTLS {
		grid.Spec.Security.Authorization = nil // without TLS clients cannot be authenticated
	}
	return grid
}

// transitionArgs are the flags of a stage in addition to those of TLS.
func transitionArgs(stage tlsStage) []string {
	switch stage {
	case stageAccept:
		return []string{flagTransition, nodestatus.TransitionAccept}
	case stageDial:
		return []string{flagTransition, nodestatus.TransitionDial}
	}
	return nil
}

// tlsPlan is the present stage of the pods' template, and why not a later one.
type tlsPlan struct {
	stage, wanted tlsStage
	settled       bool // every pod has the stage
	waits         string
	plain         *plainCount // nil: unknown, or impossible
}

// plainCount is the clients without TLS as reported by nodes.
type plainCount struct {
	connections int32
	some        []string
}

func (p *plainCount) String() string {
	if p.connections == 0 {
		return "no client is connected without TLS"
	}
	return fmt.Sprintf("%s without TLS%s", count(int(p.connections), "connection of a client", "connections of clients"), some(p.some))
}

// nextStage is the stage of the template: one further than that of the pods when all are of it, and never further.
func nextStage(now, wanted tlsStage, settled bool) tlsStage {
	if !settled || now == wanted {
		return now
	}
	if now < wanted {
		return now + 1
	}
	return now - 1
}

// stageOfSets is the stage of the StatefulSets' templates. They are written one after the other: of two that differ, it
// is the one decided last, as every decision goes towards spec.
func stageOfSets(sets []appsv1.StatefulSet, wanted tlsStage) (stage tlsStage, there bool) {
	for i := range sets {
		s := stageOf(&sets[i].Spec.Template.Spec)
		if !there || max(s-wanted, wanted-s) < max(stage-wanted, wanted-stage) {
			stage = s
		}
		there = true
	}
	return stage, there
}

// ofAnotherStage names the first pod of another stage; "" for none.
func (o *observation) ofAnotherStage(stage tlsStage) string {
	for i := range o.pods {
		if stageOf(&o.pods[i].Spec) != stage {
			return o.pods[i].Name
		}
	}
	return ""
}

// notOfStage names the first pod that is missing, not ready, or of another stage; "" for none.
func (o *observation) notOfStage(stage tlsStage) string {
	if name := o.ofAnotherStage(stage); name != "" {
		return name
	}
	for i := range o.statefulSets {
		set := &o.statefulSets[i]
		for ordinal := range ptr.Deref(set.Spec.Replicas, 1) {
			if name := fmt.Sprintf("%s-%d", set.Name, ordinal); !o.ready(name) {
				return name
			}
		}
	}
	return ""
}

// planTLS decides the stage of the pods.
func (r *run) planTLS(ctx context.Context) error {
	wanted := wantedStage(&r.grid.Spec.Security)
	p := &tlsPlan{stage: wanted, wanted: wanted, settled: true}
	o := r.observation
	now, there := stageOfSets(o.statefulSets, wanted)
	if there && now != wanted { // stages further apart are incompatible: the observed stage counts, not the cache
		var err error
		if o, err = r.live(ctx); err != nil {
			return err
		}
		now, there = stageOfSets(o.statefulSets, wanted)
	}
	r.stage = p
	if !there {
		return nil // pods that are created together are of one stage from the beginning
	}
	p.stage = now
	if late := o.ofAnotherStage(now); late != "" {
		p.settled, p.waits = false, "waits for "+late
	}
	if now == stageDial {
		p.plain = r.askForPlain(ctx, o)
	}
	if now != wanted || now == stageDial {
		r.lookWithin(tlsLookTrouble)
	}
	if now == wanted || !p.settled {
		return nil
	}
	p.settled = false
	if late := o.notOfStage(now); late != "" {
		p.waits = "waits for " + late
	} else if p.waits = r.mayAdvance(p); p.waits == "" {
		p.stage = nextStage(now, wanted, true)
	}
	return nil
}

// mayAdvance returns what else a stage waits for when every pod is of it.
func (r *run) mayAdvance(p *tlsPlan) (waits string) {
	now := r.Clock.Now()
	switch {
	case p.stage == stagePlain:
		// Pods of the next stage mount the certificates.
		if known := r.remembered.tls; known == nil || known.generation != r.grid.Generation || known.verdict.status != metav1.ConditionTrue {
			r.lookWithin(tlsLookSoon)
			return "waits for the certificates, see condition " + api.ConditionTLSReady
		}
	case p.stage == stageDial && p.wanted == stageTLS && r.grid.Annotations[api.AnnotationEndPlainClients] == "":
		quiet := r.remembered.plainQuietSince(p.plain != nil && p.plain.connections == 0, now)
		switch {
		case p.plain == nil:
			return "waits until every node has reported its connections without TLS"
		case p.plain.connections > 0:
			return fmt.Sprintf("%s: they have to use TLS, or are refused with kubectl annotate ordergrid %s %s=1", p.plain, r.grid.Name, api.AnnotationEndPlainClients)
		case now.Sub(quiet) < plainQuiet:
			return fmt.Sprintf("no client has been connected without TLS since %s, and none may be for %s", stamp(quiet), plainQuiet)
		}
	}
	return ""
}

// askForPlain queries every node for clients without TLS; nil if one does not answer.
func (r *run) askForPlain(ctx context.Context, o *observation) *plainCount {
	answers := map[string]*answer{}
	for i := range o.pods {
		answers[o.pods[i].Name] = &answer{pod: &o.pods[i]}
	}
	r.ask(ctx, r.grid, answers)
	var count plainCount
	for i := range o.pods {
		a := answers[o.pods[i].Name]
		if a.node == nil || a.node.TLS == nil {
			return nil
		}
		if a.node.TLS.PlainClients == nil { // it is beyond that
			continue
		}
		count.connections += int32(a.node.TLS.PlainClients.Connections)
		for _, c := range a.node.TLS.PlainClients.Some {
			if text := fmt.Sprintf("%.64q at %.64s", c.Name, c.Host); !slices.Contains(count.some, text) {
				count.some = append(count.some, text)
			}
		}
	}
	slices.SortFunc(count.some, cmp.Compare)
	return &count
}

// plainQuietSince is since when no client was connected without TLS.
func (m *gridMemory) plainQuietSince(quiet bool, now time.Time) time.Time {
	switch {
	case !quiet:
		m.plainQuiet = time.Time{}
		return now
	case m.plainQuiet.IsZero():
		m.plainQuiet = now
	}
	return m.plainQuiet
}

// underWay describes the progress of enabling TLS; "" if there is none.
func (p *tlsPlan) underWay() string {
	if p == nil || p.settled && p.stage == p.wanted {
		return ""
	}
	var text []string
	switch p.stage {
	case stagePlain, stageAccept:
		text = append(text, "not every node accepts TLS yet: clients continue without")
	case stageDial:
		text = append(text, "every node accepts TLS and plain connections: clients can switch to TLS now")
	default:
		text = append(text, "the nodes are being replaced by ones that accept TLS only")
	}
	if p.waits != "" {
		text = append(text, p.waits)
	}
	return strings.Join(text, "; ")
}

// clause is the end of a sentence about clients without TLS.
func (p *tlsPlan) clause() string {
	text := ""
	if u := p.underWay(); u != "" {
		text = "; " + u
	}
	if p != nil && p.plain != nil {
		text += "; " + p.plain.String()
	}
	return text
}

// transition is status.tls.transition.
func (p *tlsPlan) transition() api.TLSTransition {
	switch {
	case p == nil || p.stage == stageTLS:
		return ""
	case p.stage == stageDial:
		return api.TLSTransitionBoth
	}
	return api.TLSTransitionStarting
}
