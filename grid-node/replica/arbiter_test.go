package replica_test

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// arbiterModel is the API server: one record, compare-and-swap, a watch, and their failure
// modes.
type arbiterModel struct {
	w       *world
	rec     replica.Config
	version int
	queue   []arbiterCall
	mode    arbiterMode
	held    []arbiterCall // proposals in flight that land late
	slow    []func()      // answers in flight
	deaf    uint64        // the process whose watch is as late as its answer
	noWatch bool
	deafPod string // receives neither watch events nor answers
	history []replica.Config
	spec    replica.Config // the operator's spec: the fields of Config that no proposal has
}

type arbiterMode string

const (
	arbiterOK          arbiterMode = "ok"
	arbiterDown        arbiterMode = "down"         // nothing is done, answers are lost
	arbiterCommitsLost arbiterMode = "commits-lost" // done, the answer is lost
	arbiterLate        arbiterMode = "late"         // the answer is lost and the change is done later
	arbiterSlow        arbiterMode = "slow"         // done, and reported to all but the proposer
	arbiterRefuses     arbiterMode = "refuses"
)

type arbiterCall struct {
	from *node
	name string // of the requesting process
	boot uint64
	put  *replica.Config // nil: get
}

func (a *arbiterModel) init(w *world) {
	a.w, a.mode, a.version = w, arbiterOK, 1
	a.rec = replica.Config{Version: "1"}
}

func (a *arbiterModel) get(n *node) {
	a.queue = append(a.queue, arbiterCall{from: n, name: n.name(), boot: n.self.Boot})
}

func (a *arbiterModel) propose(n *node, c *replica.Config) {
	a.queue = append(a.queue, arbiterCall{from: n, name: n.name(), boot: n.self.Boot, put: c})
}

func (a *arbiterModel) busy() bool { return len(a.queue) > 0 }

// answerNext executes the oldest call.
func (a *arbiterModel) answerNext() {
	c := a.queue[0]
	a.queue = a.queue[1:]
	if c.put == nil {
		if a.mode != arbiterDown && c.from.pod != a.deafPod && (a.deaf == 0 || a.deaf != c.boot) {
			a.tell(c, replica.Event{Kind: replica.EventConfig, Fresh: true, Config: a.copy()})
		}
		return
	}
	result := replica.Event{Kind: replica.EventCASResult, ChangeID: c.put.ChangeID, Outcome: replica.OutcomeUnknown}
	switch a.mode {
	case arbiterOK, arbiterSlow:
		if a.mode == arbiterSlow && c.put.Version == a.rec.Version {
			a.deaf = c.boot
		}
		result.Outcome, result.Text = a.swap(c.put)
		if result.Outcome == replica.OutcomeOK {
			result.Config = a.copy()
		}
	case arbiterCommitsLost:
		a.swap(c.put)
	case arbiterLate:
		a.held = append(a.held, c)
	case arbiterRefuses:
		result.Outcome, result.Text = replica.OutcomeRefused, "the fake API server refuses everything"
	}
	if a.mode == arbiterSlow && result.Outcome == replica.OutcomeOK {
		a.w.logf("arbiter: %s proposes %s: answers later", c.name, a.w.configText(c.put))
		a.slow = append(a.slow, func() { a.tell(c, result) })
		return
	}
	a.w.logf("arbiter: %s proposes %s: %s", c.name, a.w.configText(c.put), outcomeText(result.Outcome))
	a.tell(c, result)
}

// answerLate delivers the answers in flight to their proposers.
func (a *arbiterModel) answerLate() {
	for _, answer := range a.slow {
		answer()
	}
	a.slow, a.deaf = nil, 0
}

// landLate lets a held proposal arrive.
func (a *arbiterModel) landLate() {
	for _, c := range a.held {
		outcome, _ := a.swap(c.put)
		a.w.logf("arbiter: late proposal %s: %s", a.w.configText(c.put), outcomeText(outcome))
	}
	a.held = nil
}

// tell answers the requesting process, if it is still alive.
func (a *arbiterModel) tell(c arbiterCall, ev replica.Event) {
	if c.from.up && c.from.self.Boot == c.boot {
		c.from.step(ev)
	}
}

// swap is the compare-and-swap with the transition rules of the CRD.
func (a *arbiterModel) swap(c *replica.Config) (replica.Outcome, string) {
	if c.Version != a.rec.Version {
		return replica.OutcomeConflict, ""
	}
	promotes := a.rec.Standby && !c.Standby
	switch {
	case a.rec.Epoch == 0 && a.spec.Restore != nil:
		if p := a.spec.Restore; c.Epoch != p.Epoch+1 || c.Lineage != p.Lineage+1 {
			return replica.OutcomeRefused, fmt.Sprintf("epoch %d lineage %d claims what ends in epoch %d lineage %d", c.Epoch, c.Lineage, p.Epoch, p.Lineage)
		}
	case a.rec.Epoch > 0 && !a.rec.Standby && c.Standby && c.Term <= a.rec.Term && a.spec.Demotion != (replica.Demotion{Wanted: true, Term: a.rec.Term}) || a.rec.Epoch == 0 && c.Standby != a.spec.WantStandby:
		return replica.OutcomeRefused, "it makes a standby, or none, of what is to be the other"
	case promotes && (c.Term != a.spec.Promotion.Term || c.Term <= a.rec.Term) || !promotes && c.Standby == a.rec.Standby && c.Term != a.rec.Term || c.Term < a.rec.Term:
		return replica.OutcomeRefused, fmt.Sprintf("term %d after %d", c.Term, a.rec.Term)
	case promotes && c.Epoch > a.rec.Epoch && c.Lineage >= a.rec.Lineage && a.rec.Has(c.Primary.Boot):
	case c.Epoch != a.rec.Epoch+1:
		return replica.OutcomeRefused, fmt.Sprintf("epoch %d after %d", c.Epoch, a.rec.Epoch)
	case !c.Has(c.Primary.Boot):
		return replica.OutcomeRefused, "primary not in inSync"
	case a.rec.Epoch > 0 && !a.rec.Has(c.Primary.Boot) && c.Lineage != a.rec.Lineage+1:
		return replica.OutcomeRefused, "primary was not in inSync"
	case a.rec.Epoch > 0 && c.Lineage > a.rec.Lineage && a.spec.AcceptLossEpoch != a.rec.Epoch && a.spec.ReassertChangeID == "":
		return replica.OutcomeRefused, "lineage rises without an accepted loss"
	}
	a.version++
	a.rec = *c
	a.rec.Version = fmt.Sprint(a.version)
	a.history = append(a.history, a.rec)
	a.tellAll()
	return replica.OutcomeOK, ""
}

// touch is an edit of the spec: the version rises, the status stays.
func (a *arbiterModel) touch() {
	a.version++
	a.rec.Version = fmt.Sprint(a.version)
}

func (a *arbiterModel) copy() *replica.Config {
	c := a.rec
	c.Replicas, c.MinInSync, c.MaxInSync, c.PreferredPod = a.spec.Replicas, a.spec.MinInSync, a.spec.MaxInSync, a.spec.PreferredPod
	c.Pods, c.Restore = a.spec.Pods, a.spec.Restore
	c.WantStandby, c.Source, c.Promotion = a.spec.WantStandby, a.spec.Source, a.spec.Promotion
	c.Demotion = a.spec.Demotion
	c.AcceptLossEpoch, c.ReassertChangeID = a.spec.AcceptLossEpoch, a.spec.ReassertChangeID
	return &c
}

// tellAll is the watch.
func (a *arbiterModel) tellAll() {
	if a.noWatch {
		return
	}
	for _, n := range a.w.nodes {
		if (a.deaf == 0 || n.self.Boot != a.deaf) && n.pod != a.deafPod {
			n.step(replica.Event{Kind: replica.EventConfig, Config: a.copy()})
		}
	}
}

func outcomeText(o replica.Outcome) string {
	return map[replica.Outcome]string{replica.OutcomeOK: "ok", replica.OutcomeConflict: "conflict",
		replica.OutcomeRefused: "refused", replica.OutcomeUnknown: "unknown"}[o]
}

// arbiter is the command of that name: see testdata/README.md.
func (s *script) arbiter(d *datadriven.TestData) {
	a := &s.w.arb
	switch how := d.CmdArgs[0].Key; how {
	case "land":
		a.landLate()
		s.w.deliver()
	case "answer":
		a.answerLate()
		s.w.deliver()
	case "touch":
		a.touch()
	case "spec":
		if a.spec.Replicas == 0 {
			a.spec.Replicas = s.w.opt.replicas
		}
		arg(d, "replicas", &a.spec.Replicas)
		arg(d, "minInSync", &a.spec.MinInSync)
		arg(d, "maxInSync", &a.spec.MaxInSync)
		podsArg(d, &a.spec.Pods)
		arg(d, "preferred", &a.spec.PreferredPod)
		arg(d, "accept-loss", &a.spec.AcceptLossEpoch)
		arg(d, "reassert", &a.spec.ReassertChangeID)
		for _, n := range s.w.nodes { // "a1-…" is written with the boot id of a's first process
			for i := n.starts; i > 0; i-- {
				a.spec.ReassertChangeID = strings.Replace(a.spec.ReassertChangeID, fmt.Sprintf("%s%d-", n.pod, i), wire.FormatBootID(n.boot(i))+"-", 1)
			}
		}
		a.touch()
		a.tellAll()
		s.w.deliver()
	case "deaf":
		a.deafPod = ""
		if len(d.CmdArgs) > 1 {
			a.deafPod = d.CmdArgs[1].Key
		}
	case "nowatch":
		a.noWatch = true
	case "restore":
		s.restore(d)
	case "recreate": // the object was deleted and recreated, without its status
		a.version++
		a.rec = replica.Config{Version: fmt.Sprint(a.version), Copied: true}
		a.tellAll()
		s.w.deliver()
	case "rewind":
		var epoch int
		arg(d, "epoch", &epoch)
		a.version++
		arg(d, "version", &a.version) // of a store that was restored: it counts from there again
		for _, c := range a.history {
			if int(c.Epoch) == epoch {
				a.rec = c
				a.rec.Version = fmt.Sprint(a.version)
			}
		}
	default:
		a.mode = arbiterMode(how)
	}
}
