package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/internal/linear"
)

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string // "I1".."I41", "linearizable", "order", or another check
	At        int64  // true time, nanoseconds
	Text      string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s at %.3f ms: %s", v.Invariant, float64(v.At)/1e6, v.Text)
}

// violation ends the run: results after a broken invariant are meaningless.
func (w *world) violation(invariant, format string, args ...any) {
	if w.stopped {
		return
	}
	w.stopped = true
	w.check.found = &Violation{Invariant: invariant, At: w.now, Text: w.short(fmt.Sprintf(format, args...))}
	w.logf("VIOLATION of %v", w.check.found)
}

// checker is the agreed state of the whole world, as an outside observer could have seen
// it.
type checker struct {
	found       *Violation
	history     []linear.Op            // of the order that Porcupine rejects
	committers  [2][]uint64            // boot id of the primary, by epoch: before and after a restore
	proposers   []uint64               // boot id of the proposer of the record, by epoch
	made        [2]map[uint64]uint64   // (epoch, seq) -> hash of the entry made there: before and after a restore
	spoiled     bool                   // a process was given a wrong state
	noticed     int                    // alarms about it
	plain       map[uint64]plainRow    // hash of an entry -> what it is, in worlds with views
	states      map[uint64]uint64      // hash of an entry -> digest of the state up to it
	executions  map[uint64]execution   // hash of an entry -> what it did
	isOrder     map[uint64]bool        // hash of an entry -> it is an order, in worlds with Maps over orders
	called      map[uint64]called      // hash of an entry -> what functions made of the log up to it
	books       map[uint64][]shownBook // by the hash of the entry
	orders      map[uint64][]shownOrders
	receipts    map[receiptKey]string // ClOrdID of every order that was acknowledged with its hash
	timelines   []*timeline           // by lineage
	refused     map[string]int        // ClOrdIDs: how many writers abandoned them
	awaited     map[string]int64      // those that were told that a copy does not know their version, and when the last time
	began       [2][]int64            // the same: when its primary began it
	handOverCut bool                  // a former primary reported entries that its successor may lack
}

// timeline is the committed log of one lineage.
type timeline struct {
	hashes   []uint64
	orders   map[string]uint64     // ClOrdID -> seq
	applied  map[appliedKey]uint64 // -> seq
	sessions []uint32              // generation by slot
	begun    bool                  // its first primary is known
	begunAt  int64
	base     int // entries it began with: what survived of the lineage before
	epochs   []uint32
	opens    []sessionOpen
	held     []held // by slot
	freeable uint64 // highest position in a committed truncate entry
	fix      fixModel
	limits   limitsModel
	region   regionModel
	// regionFile is which of world.regionFiles the definition of a region in force is of, from 1; 0: one without a source.
	regionFile map[string]int
	readers    map[string]uint64 // first position in a committed entry: it starts after that
	begins     []readerBegin
}

// readerBegin is the entry with the first position of a reader.
type readerBegin struct {
	seq, to uint64
	name    string
}

func (t *timeline) readerBegins(r readerBegin) {
	if _, known := t.readers[r.name]; !known {
		t.readers[r.name] = r.to
		t.begins = append(t.begins, r)
	}
}

// sessionOpen is an entry that opened a session.
type sessionOpen struct {
	seq        uint64
	slot       uint32
	generation uint32
}

// shown returns what a process of a lineage may show as committed. A member learns of the
// lineage before its first primary does, when that restored the record; until then its
// committed entries are of the previous lineage, which continues in this one.
func (w *world) shown(lineage uint64) *timeline {
	t := w.timeline(lineage)
	for lineage > 1 && !t.begun {
		lineage--
		t = w.timeline(lineage)
	}
	return t
}

type appliedKey struct {
	slot, generation uint32
	clientSeq        uint64
}

// logView is what is known of a process's log; it outlives the process.
type logView struct {
	hashes []uint64
	epochs []uint32
	floor  uint64 // entries it took over as a primary
}

// holds reports whether the log has entry seq with this hash.
func (l *logView) holds(seq, hash uint64) bool {
	return seq == 0 || seq <= uint64(len(l.hashes)) && l.hashes[seq-1] == hash
}

func (w *world) timeline(lineage uint64) *timeline {
	for uint64(len(w.check.timelines)) <= lineage {
		w.check.timelines = append(w.check.timelines, &timeline{orders: map[string]uint64{}, applied: map[appliedKey]uint64{}, readers: map[string]uint64{"": 0}})
	}
	return w.check.timelines[lineage]
}

// checkStep checks a process after every step, only what changed.
func (w *world) checkStep(p *process) {
	st := p.r.Status()
	if st.FreedSeq != p.status.FreedSeq {
		w.checkFreed(p, &st)
	}
	if uint64(len(p.log.hashes)) != st.LastSeq && !w.stopped {
		w.checkNewEntries(p, st.LastSeq)
	}
	if st.LastSeq != p.status.LastSeq || st.FreedSeq != p.status.FreedSeq {
		w.checkI18(p)
	}
	if st.Role != p.status.Role || st.Config != p.status.Config {
		w.checkI1Process(p, &st)
		if st.Role == replica.RolePrimary && p.status.Role != replica.RolePrimary {
			p.log.floor = p.status.LastSeq
		}
	}
	if st.CommitSeq != p.status.CommitSeq {
		w.checkCommit(p, &st)
	}
	w.checkI33(p, &st)
	w.seeSeats(p, &st)
	before := p.status
	p.status = st
	if st.Role == replica.RolePrimary || before.Role == replica.RolePrimary {
		p.followStatus(&st)
	}
}

// checkNewEntries checks newly stored entries for one half of I6: the primary of an epoch
// assigns every sequence number once, so two logs with an entry of the same epoch and
// number have the same entry, committed or not.
func (w *world) checkNewEntries(p *process, last uint64) {
	if last < uint64(len(p.log.hashes)) {
		w.violation("I6", "%s held %d entries and holds %d: a log never shrinks", p.name, len(p.log.hashes), last)
		return
	}
	made := w.check.made[w.life(p.r.Status().Config)]
	for seq := uint64(len(p.log.hashes)) + 1; seq <= last; seq++ {
		hash := p.st.HashAt(seq)
		entry := p.st.Get(seq)
		epoch := epochOf(entry)
		key := uint64(epoch)<<40 | seq
		if known, ok := made[key]; ok && known != hash {
			w.violation("I6", "%s stores entry %d of epoch %d with hash %016x, another has %016x", p.name, seq, epoch, hash, known)
			return
		}
		made[key] = hash
		w.keepPlain(hash, entry)
		w.noteOrder(hash, entry)
		w.checkI21(p, seq, hash)
		w.checkI24(p, seq, epoch)
		w.checkExecution(p, seq, hash)
		w.checkVersion(p, seq, entry)
		w.checkLapse(p, seq, entry)
		w.checkCalled(p, seq, hash)
		p.log.hashes = append(p.log.hashes, hash)
		p.log.epochs = append(p.log.epochs, epoch)
	}
}

// checkCommit checks a committed prefix that advanced.
func (w *world) checkCommit(p *process, st *replica.Status) {
	from, to := p.status.CommitSeq+1, st.CommitSeq
	if to < from {
		w.violation("I2", "%s had committed %d and goes back to %d", p.name, from-1, to)
		return
	}
	t := w.timeline(w.logLineage(st))
	for seq := from; seq <= to && !w.stopped; seq++ {
		w.checkI6(p, t, seq)
		if seq <= uint64(len(t.hashes)) {
			continue
		}
		by := st
		if p.status.Role == replica.RolePrimary && st.Role == replica.RoleBackup && p.status.HandingOver {
			by = &p.status // its last commit, and in the same step it handed over
		}
		if by.Role != replica.RolePrimary {
			w.violation("I2", "%s, a %s, commits entry %d, which no primary has committed", p.name, st.Role, seq)
			return
		}
		w.checkMinInSync(p, by, seq)
		w.checkAgreed(p, "commits what it did", seq)
		t.hashes = append(t.hashes, p.log.hashes[seq-1])
		t.epochs = append(t.epochs, p.log.epochs[seq-1])
		w.checkI7(p, t, p.st.Get(seq))
		w.archive(p.st.Get(seq))
	}
	if st.Role == replica.RolePrimary && !w.stopped {
		w.checkI2(p, st)
		w.checkI3(p, st)
		w.checkI32(p, st)
	}
}

func epochOf(entry []byte) uint32 {
	return uint32(entry[24]) | uint32(entry[25])<<8 | uint32(entry[26])<<16 | uint32(entry[27])<<24
}

// checkI6: equal seq means equal history. An entry's hash covers its predecessor's, so
// equal hashes at equal seq are equal logs. An entry committed at a number stays there.
func (w *world) checkI6(p *process, t *timeline, seq uint64) {
	if seq <= uint64(len(t.hashes)) && p.log.hashes[seq-1] != t.hashes[seq-1] {
		w.violation("I6", "%s commits entry %d with hash %016x, it was committed with %016x", p.name, seq, p.log.hashes[seq-1], t.hashes[seq-1])
	}
}

// checkI7: each (session, clientSeq) is applied once, and so is each ClOrdID.
// That its reply is stable is checked where clients get it (acknowledged).
func (w *world) checkI7(p *process, t *timeline, entry []byte) {
	var e order.Entry
	if _, err := order.DecodeEntry(entry, &e); err != nil {
		w.violation("I6", "%s commits an invalid entry: %v", p.name, err)
		return
	}
	w.checkLimits(t, &e, order.Message(entry))
	if w.checkFix(t, &e, entry); e.Flags&order.FlagFix != 0 {
		return // its session is one of FIX, and its ClOrdID is unique there
	}
	switch e.Kind {
	case order.KindSessionOpen:
		for int(e.Session) >= len(t.sessions) {
			t.sessions = append(t.sessions, 0)
		}
		t.sessions[e.Session] = uint32(e.ClientSeq)
		w.checkI15(t, &e, binary.LittleEndian.Uint64(order.Payload(entry)))
		t.opens = append(t.opens, sessionOpen{e.Seq, e.Session, uint32(e.ClientSeq)})
	case order.KindReader:
		to, name := order.Reader(order.Payload(entry))
		t.readerBegins(readerBegin{seq: e.Seq, to: to, name: string(name)})
	case order.KindTruncate:
		t.freeable = max(t.freeable, binary.LittleEndian.Uint64(order.Payload(entry)))
	case order.KindRegion:
		o := order.RegionOf(order.Payload(entry))
		if o.Invoked {
			w.checkDecidedCall(p, t, &e, &o)
		}
		w.checkRegionSource(t, &e, &o)
		if w.commitRegion(t, &e, order.Payload(entry)); e.ClientSeq != 0 {
			w.checkApplied(t, &e)
		}
	case order.KindOrder, order.KindExecute:
		if !w.checkApplied(t, &e) {
			return
		}
		id := string(order.ClOrdID(entry))
		if before, ok := t.orders[id]; ok {
			w.violation("I7", "order %s is applied at %d and again at %d", id, before, e.Seq)
			return
		}
		t.orders[id] = e.Seq
		w.checkDecided(p, &e, entry)
		w.checkRefused(p, id, e.Seq)
	}
}

// checkApplied: each (session, clientSeq) is applied once. It returns false otherwise.
func (w *world) checkApplied(t *timeline, e *order.Entry) bool {
	if int(e.Session) >= len(t.sessions) || t.sessions[e.Session] == 0 {
		w.violation("I7", "entry %d is of session %d, which is not open", e.Seq, e.Session)
		return false
	}
	key := appliedKey{slot: e.Session, generation: t.sessions[e.Session], clientSeq: e.ClientSeq}
	if before, ok := t.applied[key]; ok {
		w.violation("I7", "clientSeq %d of session %d/%d is applied at %d and again at %d", e.ClientSeq, key.slot, key.generation, before, e.Seq)
		return false
	}
	t.applied[key] = e.Seq
	return true
}

// checkMinInSync: with fewer in-sync members than minInSync nothing new is committed,
// except entries a new primary took over. Where fewer copies were wanted at times, the
// fewest count: a process that learns late acts on what it knows.
func (w *world) checkMinInSync(p *process, st *replica.Status, seq uint64) {
	if seq > p.log.floor && len(st.Config.InSync) < w.minInSync {
		w.violation("minInSync", "%s commits entry %d with %d members in sync; minInSync is %d", p.name, seq, len(st.Config.InSync), w.minInSync)
	}
}
