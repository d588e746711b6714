package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/drained"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// operator gives the partition up as controllers/ordergrid does: in passes that remember nothing, so that another one may go
// on at any moment, or two may be at it. A pass reads the record from the API server, asks every pod, judges with the code
// of the real one, and writes Retired over the version that it read. Each of these may take long, or fail.
type operator struct {
	w     *world
	rng   *rand.Rand
	waits string // what the last judgement waited for
}

// askTimeout is when the operator gives up on an answer.
const askTimeout = 2 * second

func (o *operator) schedule() {
	o.w.after(int64(o.rng.ExpFloat64()*float64(50*millisecond)), func() {
		if !o.w.closing.retired && !o.w.stopped {
			o.pass()
			o.schedule()
		}
	})
}

// way of a call, and of an answer; some take long.
func (o *operator) way() int64 {
	d := 200*microsecond + o.rng.Int64N(2*millisecond)
	if !o.w.healing && o.rng.IntN(20) == 0 {
		d += o.rng.Int64N(second)
	}
	return d
}

func (o *operator) pass() {
	w := o.w
	w.after(o.way(), func() {
		if w.api.mode == apiAway {
			return
		}
		rec := w.api.rec
		w.after(o.way(), func() {
			if rec.Admission == replica.AdmissionClosed {
				o.ask(&rec)
			}
		})
	})
}

// ask asks every pod, and judges when all have answered or the time is over.
func (o *operator) ask(rec *replica.Config) {
	w := o.w
	nodes := map[string]*nodestatus.Node{}
	open := len(w.pods)
	judged := false
	judge := func() {
		if !judged {
			judged = true
			o.judge(rec, nodes)
		}
	}
	answered := func() {
		if open--; open == 0 {
			judge()
		}
	}
	w.after(askTimeout, judge)
	for _, pod := range w.pods {
		nodes[pod.name] = nil
		w.after(o.way(), func() {
			p := pod.proc
			if p == nil { // connection refused
				answered()
				return
			}
			if w.api.cut[pod] || !w.healing && o.rng.IntN(10) == 0 {
				w.faults.hit(faultUnanswered)
				if o.rng.IntN(2) == 0 {
					answered()
				}
				return
			}
			p.deliver(func() {
				node := p.nodeStatus()
				w.after(o.way(), func() {
					if !judged {
						nodes[pod.name] = node
					}
					answered()
				})
			})
		})
	}
}

// nodeStatus is what the node's status page says.
func (p *process) nodeStatus() *nodestatus.Node {
	st := p.r.Status()
	q := nodestatus.Partition{Record: recordName, Member: p.self.ID, BootID: wire.FormatBootID(p.self.Boot), Role: st.Role.String(), Suspended: st.Suspended,
		LastSeq: st.LastSeq, CommitSeq: st.CommitSeq, Closed: st.Closed, AdmissionRevision: st.AdmissionRevision, CursorSeq: st.CursorSeq, DataSeq: st.DataSeq}
	if st.Config != nil {
		q.Epoch, q.Lineage, q.ChangeID = st.Config.Epoch, st.Config.Lineage, st.Config.ChangeID
	}
	return &nodestatus.Node{Pod: p.pod.name, Partitions: []nodestatus.Partition{q}}
}

func (o *operator) judge(c *replica.Config, nodes map[string]*nodestatus.Node) {
	w := o.w
	if w.stopped || w.closing.retired {
		return
	}
	rec := recordOf(c)
	rec.Spec.Admission, rec.Spec.Layout.Revision = arbiter.AdmissionDraining, c.AdmissionRevision
	misread(&rec, nodes)
	v := drained.Judge(&rec, nodes, drained.Terms{Revision: c.AdmissionRevision})
	if o.waits = v.Waits; v.Waits != "" {
		return
	}
	w.logf("operator: at version %s the partition may be given up, all of its %d entries are downstream", c.Version, v.Entries)
	pause := o.way()
	if w.api.mode == apiLate {
		pause += o.rng.Int64N(3 * second)
	}
	w.after(pause, func() { o.retire(c) })
}

// retire carries the operator's compare-and-swap.
func (o *operator) retire(c *replica.Config) {
	w := o.w
	switch {
	case w.stopped || w.closing.retired || w.api.mode == apiAway:
		return
	case c.Version != w.api.rec.Version && !operatorMutant(mutRetireUncompared):
		w.faults.hit(faultRetireRefused)
		w.logf("api: Retired is refused, the record has another version than %s", c.Version)
		return
	}
	w.faults.hit(faultRetire)
	w.logf("api: the partition is RETIRED")
	r := &w.closing
	r.retired, r.at, r.epoch, r.lineage = true, w.now, w.api.rec.Epoch, w.api.rec.Lineage
	w.api.touch(func(c *replica.Config) { c.Admission = replica.AdmissionClosed })
	w.checkRetired()
	if !w.healing && o.rng.IntN(2) == 0 { // who leads now: somebody who has not heard of it?
		w.after(o.rng.Int64N(100*millisecond), w.makePreference)
	}
}

// misread breaks the judgement: what was answered is taken for more than it says.
func misread(rec *arbiter.Record, nodes map[string]*nodestatus.Node) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		q := &n.Partitions[0]
		if operatorMutant(mutJudgeUnrevised) {
			q.AdmissionRevision = rec.Spec.Layout.Revision
		}
		if operatorMutant(mutJudgeUnsunk) {
			q.CursorSeq = max(q.CursorSeq, q.DataSeq)
		}
	}
}
