package sim

import (
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// apiServer holds the one record of the partition: compare-and-swap by version, the
// transition rules of the CRD (arbiter.CheckTransition, the same code as the node's), a
// watch per process, and their failure modes.
type apiServer struct {
	w         *world
	rec       replica.Config
	version   int
	changes   int // counts the changes that watches report; versions repeat after a rewind
	mode      apiMode
	slow      int64            // added to every call
	lateWord  int64            // maximum extra delay of the answer to a proposer
	lag       int64            // maximum extra delay of watch events
	puts      []*apiPut        // sent, not yet arrived or timed out
	history   []replica.Config // every record that ever stood, in order
	forbids   bool             // rejects every change
	cut       map[*pod]bool    // pods cut off from it
	silent    map[*pod]bool    // pods without watch events
	rewound   bool             // shows an older record than it once held
	regressed bool             // did so at some time
	lost      replica.Config   // what it held before
}

// apiMode is how calls that arrive now are handled.
type apiMode uint8

const (
	apiOK      apiMode = iota
	apiAway            // connection refused or timed out
	apiCommits         // changes are made, the answer is lost
	apiLate            // changes are made later; the proposer gets a timeout first
)

type apiPut struct {
	from *process
	c    *replica.Config
	why  string // purpose of the proposal
}

// callTimeout is when a process times out a call, as the node does.
const callTimeout = 2 * second

func (a *apiServer) init(w *world) {
	a.w = w
	a.silent, a.cut = map[*pod]bool{}, map[*pod]bool{}
	a.rec = replica.Config{Replicas: w.profile.replicas, MinInSync: w.profile.minInSync, WantStandby: w.profile.standby}
	a.stamp()
}

// stamp gives the record its next version.
func (a *apiServer) stamp() {
	a.version++
	a.changes++
	a.rec.Version = strconv.Itoa(a.version)
	a.history = append(a.history, a.rec)
}

func (a *apiServer) way() int64 {
	return a.w.between(300*microsecond, 3*millisecond) + a.w.between(a.slow/2, a.slow)
}

// away reports whether a process gets no answer now.
func (a *apiServer) away(p *process) bool { return a.mode == apiAway || a.cut[p.pod] }

// get reads the record for a process: from the arbiter itself, but the answer may be old
// when it arrives. A process has one read in flight, as the node does.
func (a *apiServer) get(p *process) {
	w := a.w
	if p.reading {
		return
	}
	p.reading = true
	w.after(a.way(), func() {
		if a.away(p) {
			w.faults.hit(faultOutage)
			w.after(w.between(millisecond, callTimeout), func() { p.reading = false })
			return
		}
		c := a.rec
		back := a.way()
		if !w.healing && w.chance(w.profile.odds.lateGet) {
			back += w.between(20*millisecond, 1500*millisecond)
			w.faults.hit(faultLateGet)
		}
		w.after(back, func() {
			if p.alive {
				p.deliver(func() {
					p.reading = false
					p.shown(&c)
					p.step(&replica.Event{Kind: replica.EventConfig, Fresh: true, Config: &c})
				})
			}
		})
	})
}

// propose carries a process's compare-and-swap.
func (a *apiServer) propose(p *process, c *replica.Config, why string) {
	w := a.w
	w.logf("%s proposes %s on version %s", p.name, w.configText(c), c.Version)
	put := &apiPut{from: p, c: c, why: why}
	a.puts = append(a.puts, put)
	mode, arrives := a.mode, a.way()
	if mode == apiLate {
		w.faults.hit(faultLatePut)
		a.forbidNext(put)
		w.after(w.soon(5*millisecond, callTimeout), func() { a.answer(p, c, replica.OutcomeUnknown, "timed out", nil) })
		w.after(w.soon(10*millisecond, 3*second), func() {
			outcome, _ := a.land(put)
			w.logf("api: late proposal of %s, %s: %s", p.name, w.configText(c), outcomeText(outcome))
		})
		return
	}
	w.after(arrives, func() {
		if a.away(p) {
			w.faults.hit(faultOutage)
			a.forget(put)
			w.after(w.between(millisecond, callTimeout), func() { a.answer(p, c, replica.OutcomeUnknown, "connection refused", nil) })
			return
		}
		if a.forbids {
			a.refuse(put)
			return
		}
		outcome, text := a.land(put)
		if a.mode == apiCommits || a.cut[p.pod] || !w.healing && w.chance(w.profile.odds.lostAnswer) {
			w.faults.hit(faultCommitTimeout)
			w.after(w.soon(millisecond, callTimeout), func() { a.answer(p, c, replica.OutcomeUnknown, "timed out", nil) })
			return
		}
		stands := a.rec
		w.after(a.way()+a.lateFor(p, put.from), func() { a.answer(p, c, outcome, text, &stands) })
	})
}

// answer replies to the proposer, if it is alive.
func (a *apiServer) answer(p *process, c *replica.Config, outcome replica.Outcome, text string, stands *replica.Config) {
	if !p.alive {
		return
	}
	a.w.logf("api: %s is answered %s: %s %s", p.name, a.w.configText(c), outcomeText(outcome), text)
	ev := replica.Event{Kind: replica.EventCASResult, ChangeID: c.ChangeID, Outcome: outcome, Text: text}
	if outcome == replica.OutcomeOK {
		ev.Config = stands
	}
	p.deliver(func() { p.step(&ev) })
}

// land executes a compare-and-swap that arrived.
func (a *apiServer) land(put *apiPut) (replica.Outcome, string) {
	a.forget(put)
	if put.c.Version != a.rec.Version {
		a.w.faults.hit(faultConflict)
		return replica.OutcomeConflict, "the record has another version"
	}
	next := a.merged(put)
	if err := arbiter.CheckTransition(recordOf(&a.rec), recordOf(&next)); err != nil {
		return replica.OutcomeRefused, err.Error()
	}
	before := a.rec
	a.rec = next
	a.stamp()
	a.w.logf("api: version %s is %s", a.rec.Version, a.w.configText(&a.rec))
	a.w.recordChanged(&before, put.from, put.why)
	for p := range a.w.up {
		a.watch(p, a.lateFor(p, put.from))
	}
	return replica.OutcomeOK, ""
}

// merged returns the record that a change would make of the present one: the spec stays.
func (a *apiServer) merged(put *apiPut) replica.Config {
	next := *put.c
	next.Replicas, next.MinInSync, next.MaxInSync, next.PreferredPod = a.rec.Replicas, a.rec.MinInSync, a.rec.MaxInSync, a.rec.PreferredPod
	next.Copied, next.Pods, next.Restore = a.rec.Copied, a.rec.Pods, a.rec.Restore
	next.AcceptLossEpoch, next.ReassertChangeID = a.rec.AcceptLossEpoch, a.rec.ReassertChangeID
	next.WantStandby, next.Promotion, next.Demotion = a.rec.WantStandby, a.rec.Promotion, a.rec.Demotion
	return next
}

// mayLand reports whether a change in flight can still happen.
func (a *apiServer) mayLand(put *apiPut) bool {
	if put.c.Version != a.rec.Version || put.c.Epoch <= a.rec.Epoch {
		return false
	}
	next := a.merged(put)
	return arbiter.CheckTransition(recordOf(&a.rec), recordOf(&next)) == nil
}

func (a *apiServer) forget(put *apiPut) {
	for i := range a.puts {
		if a.puts[i] == put {
			a.puts = append(a.puts[:i], a.puts[i+1:]...)
			return
		}
	}
}

// notify sends the record to every watch that is not silent.
func (a *apiServer) notify() {
	for p := range a.w.up {
		a.watch(p, 0)
	}
}

// lateFor returns the extra delay of an answer to a process: it queues behind other work,
// a watch does not.
func (a *apiServer) lateFor(p, proposer *process) int64 {
	if a.lateWord == 0 || p != proposer {
		return 0
	}
	return a.w.between(a.lateWord/2, a.lateWord)
}

// watch delivers the current record to one process, after a delay. Watch events are
// ordered; some are skipped.
func (a *apiServer) watch(p *process, later int64) {
	w := a.w
	if a.silent[p.pod] || a.away(p) {
		w.faults.hit(faultWatchSilent)
		return
	}
	c, change := a.rec, a.changes
	lag := later + w.between(millisecond, 15*millisecond)
	if a.lag > 0 {
		lag += w.between(0, a.lag)
	}
	if !w.healing && w.chance(w.profile.odds.lateWatch) {
		lag += w.between(50*millisecond, second)
		w.faults.hit(faultLateWatch)
	}
	p.watchAt = max(p.watchAt+1, w.now+lag)
	w.events.push(p.watchAt, func() {
		if p.alive && change > p.watchSeen {
			p.watchSeen = change
			p.deliver(func() {
				p.shown(&c)
				p.step(&replica.Event{Kind: replica.EventConfig, Config: &c})
			})
		}
	})
}

// touch is an edit of the record by a third party: a new version, the same content.
func (a *apiServer) touch(edit func(*replica.Config)) {
	if edit != nil {
		edit(&a.rec)
	}
	a.stamp()
	a.notify()
}

// recordName is that of the one record.
const recordName = "sim"

func recordOf(c *replica.Config) arbiter.Record {
	r := arbiter.Record{Name: recordName, Version: c.Version, Epoch: c.Epoch, Lineage: c.Lineage, ChangeID: c.ChangeID, Primary: memberOf(c.Primary),
		Standby: c.Standby, Term: c.Term,
		Spec: arbiter.Spec{AcceptDataLossEpoch: c.AcceptLossEpoch, ReassertChangeID: c.ReassertChangeID, Standby: c.WantStandby,
			Promote: arbiter.Promote{Term: c.Promotion.Term, Forced: c.Promotion.Forced, Seq: c.Promotion.Seq},
			Demote:  arbiter.Demote{Wanted: c.Demotion.Wanted, Term: c.Demotion.Term}}}
	if p := c.Restore; p != nil {
		r.Spec.Restore = &arbiter.Restore{Seq: p.Seq, Hash: fmt.Sprintf("%016x", p.Hash), Epoch: p.Epoch, Lineage: p.Lineage}
	}
	for _, m := range c.InSync {
		r.InSync = append(r.InSync, memberOf(m))
	}
	return r
}

func memberOf(m replica.Member) arbiter.Member {
	if m.Boot == 0 {
		return arbiter.Member{}
	}
	pod := m.Pod()
	return arbiter.Member{ID: m.ID, PodName: pod, BootID: m.ID[len(pod)+1:], Address: m.Address}
}

func outcomeText(o replica.Outcome) string {
	return [...]string{"?", "ok", "conflict", "refused", "unknown"}[o]
}
