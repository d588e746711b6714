package sim

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// A site is lost, and its partition is restored. Some prefix of the committed log is what
// an archive has, all processes end, and an administrator has the record made again with
// the archive's recovery point. New processes load the archive, at different speeds, and one
// claims. Some processes do not end: they were suspended, or cut off from the API server,
// and come back with their state and their address, before the claim or after. All this is amid
// faults.

// restores lets a quarter of the worlds do so in their end, also of those in which the
// partition moves. It uses its own random source, so that it changes no other world. The
// partition stays in its first lineage until then: only then is the last one of the archive
// the last one that a process knows.
func restores(p *profile, seed uint64) {
	if rng := restoresRand(seed); rng != nil && p.plans == nil && p.surges == nil && p.resizes == nil && p.forges == nil && !p.mayLose && !p.rewinds {
		p.restores = rng
	}
}

// restoresRand is nil for the worlds in which no site is lost.
func restoresRand(seed uint64) *rand.Rand {
	if rng := rand.New(rand.NewPCG(seed, 0x726573746f7265)); rng.IntN(2) == 0 {
		return rng
	}
	return nil
}

// archivedLineage is that of every archive here.
const archivedLineage = 1

// archived is an entry of the committed log, padded, with its hash.
type archived struct {
	entry []byte
	hash  uint64
}

// archive keeps a committed entry, in worlds that are restored.
func (w *world) archive(entry []byte) {
	if w.profile.restores != nil && w.restored == nil {
		kept := make([]byte, order.Padded(len(entry)))
		copy(kept, entry)
		w.archives = append(w.archives, archived{kept, order.Hash(entry)})
	}
}

// checkRestore loses the site and restores it, amid faults.
func (w *world) checkRestore() {
	rng := w.profile.restores
	if w.stopped || rng == nil || w.api.rec.Lineage != archivedLineage {
		return
	}
	w.api.heal()
	w.settle("before the site is lost")
	if w.stopped {
		return
	}
	w.phase = phaseRestore
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	w.runUntil(w.now+rng.Int64N(200*millisecond), nil)
	if w.stopped {
		return
	}
	w.loseSite()
	w.runUntil(w.now+rng.Int64N(300*millisecond), nil)
	if w.stopped {
		return
	}
	w.restoreRecord()
	w.healing = false
	w.scheduleFault()
	if w.profile.moves != nil {
		w.scheduleMove()
	}
	w.runUntil(w.now+second/2+rng.Int64N(2*second), nil)
	if w.stopped {
		return
	}
	w.heal()
	w.checkI13()
	w.checkRestored()
}

// loseSite ends the processes, or suspends them, or cuts them off.
func (w *world) loseSite() {
	rng := w.profile.restores
	w.faults.hit(faultSiteLost)
	for _, pod := range w.pods {
		p := pod.proc
		if p == nil {
			continue
		}
		switch rng.IntN(4) {
		case 0:
			if !p.paused && !p.stalled {
				w.faults.hit(faultOutlived)
				p.pause()
				w.after(rng.Int64N(2*second), func() {
					if p.alive && p.paused {
						p.resume()
					}
				})
			}
		case 1:
			w.faults.hit(faultOutlived)
			w.logf("%s is cut off from the API server", p.name)
			w.api.cut[pod] = true
			w.after(rng.Int64N(2*second), func() {
				w.api.cut[pod] = false
				if pod.proc != nil {
					w.api.watch(pod.proc, 0)
				}
			})
		default:
			p.crash(rng.IntN(2) == 0)
			w.after(rng.Int64N(second), func() { w.restart(pod) })
		}
	}
}

// restoreRecord has the record made again, to be restored to the end of the archive: any
// prefix of what was committed. The operator knows the last epoch from the record that it
// replaces, or, where that is lost too, from the archive, which may be an earlier one than
// processes are in that come back. The archive may have been fenced for restores before
// this one: then the lineage is a later one than any process has seen.
func (w *world) restoreRecord() {
	n := len(w.archives)
	if rng := w.profile.restores; rng.IntN(3) > 0 { // mostly it is seconds behind, at most
		n -= rng.IntN(min(n, 40))
	} else {
		n -= rng.IntN(n)
	}
	a := &w.api
	w.archives = w.archives[:n]
	w.restored = w.recoveryPoint()
	rec := a.rec
	rec.Epoch, rec.Lineage, rec.ChangeID, rec.Primary, rec.InSync = 0, 0, "", replica.Member{}, nil
	rec.AcceptLossEpoch, rec.ReassertChangeID, rec.Restore = 0, "", w.restored
	a.rec = rec
	a.stamp()
	w.logf("api: the record is made again, to be RESTORED to entry %d of %d, epoch %d", n, len(w.timeline(1).hashes), w.restored.Epoch)
	for _, c := range w.clients {
		c.restored(w.restored)
	}
	a.notify()
	for _, pod := range w.pods {
		if pod.proc != nil {
			pod.proc.scheduleLoad()
		}
	}
}

func (w *world) recoveryPoint() *replica.Restore {
	rng, last := w.profile.restores, w.archives[len(w.archives)-1]
	p := &replica.Restore{Seq: uint64(len(w.archives)), Hash: last.hash, Epoch: w.api.rec.Epoch, Lineage: w.api.rec.Lineage}
	if rng.IntN(2) == 0 {
		var e order.Entry
		if _, err := order.DecodeEntry(last.entry, &e); err == nil && uint64(e.Epoch) < p.Epoch {
			p.Epoch = uint64(e.Epoch)
			w.faults.hit(faultEpochForgotten)
		}
	}
	if rng.IntN(3) == 0 {
		p.Lineage += 1 + rng.Uint64N(3)
		w.faults.hit(faultFencedBefore)
	}
	return p
}

// scheduleLoad lets a process load the archive, part by part. Each has its own speed.
func (p *process) scheduleLoad() {
	w := p.w
	if w.restored == nil {
		return
	}
	rng := w.profile.restores
	slow := int64(1 + rng.IntN(20))
	var again func()
	again = func() {
		if !p.alive || w.stopped {
			return
		}
		p.deliver(p.load)
		w.after(rng.Int64N(slow*millisecond)+1, again)
	}
	w.after(rng.Int64N(100*millisecond), again)
}

// entryTime is where an entry has its receive time.
const entryTime = 40

// load hands over the next part of the archive. Now and then an entry is missing in it, as where a
// reader is wrong, or the last one is that of another history: the replica takes those
// before it, and no other.
func (p *process) load() {
	w := p.w
	if !p.alive || w.stopped {
		return
	}
	point, ok := p.r.Loads()
	if !ok {
		return
	}
	rng := w.profile.restores
	have := int(p.status.LastSeq)
	n := min(have+1+rng.IntN(16), len(w.archives))
	skip := -1
	if rng.IntN(16) == 0 && n-have > 1 {
		skip = have + rng.IntN(n-have-1)
	}
	other := n == len(w.archives) && skip < 0 && rng.IntN(8) == 0
	var part []byte
	for i := have; i < n; i++ {
		if i != skip {
			part = append(part, w.archives[i].entry...)
		}
	}
	if other { // another history has this entry, a nanosecond later
		part[len(part)-len(w.archives[n-1].entry)+entryTime]++
	}
	if !p.restoreNamed {
		w.violation("I-restore", "%s asks for the archive; no record that it was shown names its pod", p.name)
		return
	}
	if point != *w.restored {
		w.violation("I-restore", "%s loads up to entry %d, the record has %d", p.name, point.Seq, w.restored.Seq)
		return
	}
	p.wakeUp()
	err := p.r.Load(part)
	var refused *replica.LoadError
	if (err != nil) != (skip >= 0 || other) || err != nil && !errors.As(err, &refused) {
		w.violation("I-restore", "%s loads entries %d..%d, entry %d left out, the last one of another history %t: %v", p.name, have+1, n, skip+1, other, err)
		return
	}
	if st := p.r.Status(); err == nil && st.CommitSeq != st.LastSeq {
		w.violation("I-restore", "%s has loaded %d entries and committed %d: the archive has committed entries only", p.name, st.LastSeq, st.CommitSeq)
		return
	}
	w.checkStep(p)
	p.step(&replica.Event{Kind: replica.EventTick})
}

// life is 1 for a configuration of the restored partition, 0 for one of before: the archive
// need not know the last epochs, so that each has epochs of its own.
func (w *world) life(c *replica.Config) int {
	if w.restored != nil && c != nil && c.Lineage > w.restored.Lineage {
		return 1
	}
	return 0
}

// logLineage is the lineage whose log a process has: one that loads an archive has that
// one's.
func (w *world) logLineage(st *replica.Status) uint64 {
	if c := st.Config; c.Epoch == 0 && c.Restore != nil {
		return archivedLineage
	}
	return st.Config.Lineage
}

// checkClaimed: who claims a restored partition holds every archived entry and nothing
// more, and begins a later epoch and lineage than the archive has seen.
func (w *world) checkClaimed(now *replica.Config, by *process) {
	p := w.restored
	if p == nil {
		return
	}
	if now.Epoch <= p.Epoch || now.Lineage <= p.Lineage {
		w.violation("I-restore", "%s claims what was restored from epoch %d lineage %d as %s", by.name, p.Epoch, p.Lineage, w.configText(now))
	}
	if n := uint64(len(by.log.hashes)); n != p.Seq {
		w.violation("I-restore", "%s claims with %d entries; the archive has %d", by.name, n, p.Seq)
		return
	}
	w.checkArchived(by)
}

// checkArchived: every archived entry is in the log, with its number and its hash.
func (w *world) checkArchived(p *process) {
	for i, a := range w.archives {
		if !p.log.holds(uint64(i)+1, a.hash) {
			w.violation("I-restore", "%s does not hold archived entry %d of %d", p.name, i+1, len(w.archives))
			return
		}
	}
}

// checkRestored: in the end every copy holds every archived entry, and the committed log of the
// restored partition begins with them.
func (w *world) checkRestored() {
	if w.stopped {
		return
	}
	if w.api.rec.Lineage != w.restored.Lineage+1 {
		w.violation("I-restore", "the partition was restored from lineage %d and is %s", w.restored.Lineage, w.configText(&w.api.rec))
		return
	}
	t := w.timeline(w.api.rec.Lineage)
	for i, a := range w.archives {
		if i >= len(t.hashes) || t.hashes[i] != a.hash {
			w.violation("I-restore", "archived entry %d of %d is not in the committed log of the restored partition", i+1, len(w.archives))
			return
		}
	}
	for _, pod := range w.placed() {
		w.checkArchived(pod.proc)
		w.checkBegins(pod.proc)
	}
}

// checkBegins: the entry behind the archived ones begins the lineage, like that of any new
// primary.
func (w *world) checkBegins(p *process) {
	if w.stopped || p.status.FreedSeq > w.restored.Seq {
		return
	}
	var e order.Entry
	entry := p.st.Get(w.restored.Seq + 1)
	if _, err := order.DecodeEntry(entry, &e); err != nil || e.Kind != order.KindNoop || binary.LittleEndian.Uint64(order.Payload(entry)) != w.restored.Lineage+1 {
		w.violation("I-restore", "%s has a %s behind the %d archived entries; allowed: what begins lineage %d", p.name, e.Kind, w.restored.Seq, w.restored.Lineage+1)
	}
}

// checkOutlived: a process of before the restore that was shown the record acknowledges
// nothing more.
func (w *world) checkOutlived(p *process, lineage, seq uint64) {
	if w.restored != nil && p.shownRestore && lineage <= w.restored.Lineage {
		w.violation("I-restore", "%s acknowledges entry %d in lineage %d; it was shown that the partition was restored since", p.name, seq, lineage)
	}
}

// givenUp reports whether a lineage ended with a restore: what it has behind the recovery point is lost,
// and what its processes do later concerns no other.
func (w *world) givenUp(lineage uint64) bool {
	return w.restored != nil && lineage <= w.restored.Lineage
}

// restored keeps the answers that the archive has: the restored partition gives them
// again.
func (c *client) restored(p *replica.Restore) {
	kept := c.last[:0]
	for _, a := range c.last {
		if a.seq <= p.Seq {
			a.lineage = p.Lineage + 1
			kept = append(kept, a)
		}
	}
	c.last = kept
}
