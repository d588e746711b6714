package sim

import (
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/journal"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The world journal: every copy has a journal, in the format of the node and on a disk
// that loses what was not synced, or garbles it, when the power is cut. Any process may end
// at any time, and now and then the power of all is cut at once. Nothing that was
// acknowledged is lost. What is committed is durable with every member (I32); the heir of a
// member acts in no epoch that its predecessor was in, and what a primary commits in is
// durable in its journal (I33).

// WorldJournal names it.
const WorldJournal = "journal"

// RunJournal runs the world journal of a seed; trace may be nil.
func RunJournal(seed uint64, trace io.Writer) Result {
	rng := rand.New(rand.NewPCG(seed, 0x6a6f75726e616c))
	return runWorld(newWorldOf(seed, journalProfile(seed, rng), rng, trace))
}

// journalProfile is that of a seed: one partition that stays where it is, whose record is
// not lost, and which loses nothing. A third of these worlds have FIX sessions, and in
// another third the partition matches.
func journalProfile(seed uint64, rng *rand.Rand) *profile {
	p := newProfile(seed, rng)
	p.mapsOrders = nil
	p.name = "journal: " + p.name
	p.journal = rand.New(rand.NewPCG(seed, 0x706f776572))
	p.heirWait = []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond}[seed%3]
	p.resizes, p.forbids, p.withdraws, p.floods, p.moves, p.plans, p.surges, p.digests, p.forges = nil, nil, nil, nil, nil, nil, nil, nil, nil
	p.restores, p.views, p.fixes, p.updates = nil, nil, nil, false
	switch seed / 3 % 3 {
	case 1:
		p.fixes, p.guards, p.sources = rand.New(rand.NewPCG(seed, fixBegin)), nil, nil // limits are of worlds without sessions
	case 2: // as in the world match
		p.match, p.pace = rand.New(rand.NewPCG(seed, 0x65786368616e6765)), 5*millisecond
		p.regions, p.sources = nil, nil
	}
	p.mayLose, p.rewinds, p.placed = false, false, false
	p.weights[faultRewind], p.weights[faultLossAccepted] = 0, 0
	p.weights[faultCrash] += 10
	p.weights[faultHeirUnheard] = 8
	p.pods = p.replicas
	return p
}

func (p *profile) journalOptions() *replica.Journal {
	if p.journal == nil {
		return nil
	}
	return &replica.Journal{HeirWait: p.heirWait}
}

// diskJournal is the journal of a process: one batch is being synced, and another is
// collected meanwhile.
type diskJournal struct {
	p       *process
	j       *journal.Journal
	next    journal.Batch
	configs map[uint64]uint64 // epochs of the configurations, by number
	parts   []replica.JournalState
	busy    bool

	durable uint64 // the last entry that is
	epoch   uint64 // of the last configuration that is
	done    replica.Journaled
}

// foundJournal is what a new process finds on its disk.
type foundJournal struct {
	*journal.Found
	heir  bool
	parts []replica.JournalState
	log   []byte
}

func (f *foundJournal) State(p *replica.JournalState) error {
	f.parts = append(f.parts, *p)
	return nil
}

func (f *foundJournal) Entries(run []byte) error {
	f.log = append(f.log, run...)
	return nil
}

// readJournal reads what is on the disk of a pod. Its process is the heir of the last one,
// unless that was found not to be a member.
func (w *world) readJournal(p *pod) *foundJournal {
	if w.profile.journal == nil {
		return nil
	}
	if p.disk == nil {
		p.disk = journal.NewDisk()
	}
	f := &foundJournal{}
	var err error
	if f.Found, err = journal.Read(p.disk, f); err != nil {
		w.violation("I32", "the journal of pod %s cannot be read: %v", p.name, err)
		f.Found = &journal.Found{}
		p.disk = journal.NewDisk()
	}
	f.heir = f.Life > 0 && !p.noHeir
	p.noHeir = false
	return f
}

// resumeFrom gives a new process what was found.
func (p *process) resumeFrom(f *foundJournal) {
	w := p.w
	j, err := journal.Begin(p.pod.disk, journal.Options{SegmentBytes: 6 << 10}, journal.Identity{Grid: "sim", Partition: uint32(partition), Boot: p.self.Boot, Life: f.Life + 1}, f.Found)
	if err != nil {
		panic(err) // the disk has no faults but those of power
	}
	p.journal = &diskJournal{p: p, j: j, configs: map[uint64]uint64{}, durable: f.Seq}
	if f.Config != nil {
		p.journal.epoch = f.Config.Epoch
	}
	for i := range f.parts {
		err = orError(err, p.r.ResumeState(&f.parts[i]))
	}
	if err = orError(err, p.r.ResumeEntries(f.log)); err != nil {
		w.violation("I32", "%s cannot resume from its journal: %v", p.name, err)
	}
	p.r.Resume(replica.Heritage{Config: f.Config, Life: f.Life + 1, Heir: f.heir})
	p.status = p.r.Status()
	t := w.timeline(1)
	if base := p.status.FreedSeq; base > uint64(len(t.hashes)) {
		w.violation("I14", "%s resumes behind entry %d; %d are committed", p.name, base, len(t.hashes))
		return
	} else if base > 0 {
		p.log.hashes = append(p.log.hashes, t.hashes[:base]...)
		p.log.epochs = append(p.log.epochs, t.epochs[:base]...)
	}
	for seq := p.status.FreedSeq + 1; seq <= p.status.LastSeq; seq++ {
		entry := p.st.Get(seq)
		w.checkExecution(p, seq, order.Hash(entry))
		p.log.hashes = append(p.log.hashes, order.Hash(entry))
		p.log.epochs = append(p.log.epochs, epochOf(entry))
	}
	if b := p.before; b != nil {
		w.logf("%s is the heir of %s, with %d entries, as of epoch %d", p.name, b.name, p.status.LastSeq, p.journal.epoch)
		if p.status.LastSeq < b.journal.durable && !p.pod.spoiled {
			w.violation("I32", "%s resumes with %d entries; its predecessor had synced %d", p.name, p.status.LastSeq, b.journal.durable)
		}
	}
	p.pod.spoiled = false
}

func orError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// take adds an action to the next batch.
func (d *diskJournal) take(a *replica.Action) {
	switch a.Kind {
	case replica.ActionJournalEntries:
		d.next.Entries(a.Tail, a.Seq)
	case replica.ActionJournalConfig:
		d.next.Config(a.Config, a.Seq)
		d.configs[a.Seq] = a.Config.Epoch
	case replica.ActionJournalState:
		d.parts = append(d.parts, *a.State)
	}
}

// write begins a group commit, unless one is under way.
func (d *diskJournal) write() {
	if d == nil || d.busy || !d.p.alive || d.next.Empty() && len(d.parts) == 0 {
		return
	}
	d.busy = true
	w, rng := d.p.w, d.p.w.profile.journal
	seq, configs := d.next.Seq(), d.next.Configs()
	if !d.next.Empty() {
		if err := d.j.Write(&d.next); err != nil {
			panic(err)
		}
		d.next.Reset()
	}
	for i := range d.parts {
		done, err := d.j.State(&d.parts[i])
		if err != nil {
			panic(err)
		}
		if done {
			d.done.Base = d.parts[i].Base
			d.durable = max(d.durable, d.done.Base)
		}
	}
	d.parts = d.parts[:0]
	took := 50*microsecond + rng.Int64N(300*microsecond)
	if !w.healing && rng.IntN(2) == 0 {
		took += rng.Int64N(3 * millisecond)
	}
	if !w.healing && rng.IntN(40) == 0 {
		took += rng.Int64N(150 * millisecond)
	}
	w.after(took, func() { d.synced(seq, configs) })
}

// synced ends a group commit.
func (d *diskJournal) synced(seq, configs uint64) {
	p := d.p
	if !p.alive || p.w.stopped {
		return
	}
	if err := d.j.Sync(); err != nil {
		panic(err)
	}
	d.busy = false
	d.durable = max(d.durable, seq)
	if configs > 0 {
		d.epoch = d.configs[configs]
	}
	d.done.Seq, d.done.Configs = max(d.done.Seq, seq), max(d.done.Configs, configs)
	d.done.Wants = d.j.Frees(p.status.FreedSeq)
	now := d.done
	p.deliver(func() { p.step(&replica.Event{Kind: replica.EventJournaled, Journaled: &now}) })
	d.write()
}

// setAside decides what the next incarnation begins with: the log, or nothing.
func (p *process) setAside(why string) {
	if p.journal == nil {
		return
	}
	if p.pod.noHeir = replica.KeepsLog(why); !p.pod.noHeir {
		p.pod.disk = journal.NewDisk()
	}
}

// cutPower loses what the disk of a pod has not synced. Half the crashes are of the process
// alone: the kernel writes what it was given.
func (p *pod) cutPower() {
	if p.disk != nil && p.w.profile.journal.IntN(2) == 0 {
		p.disk.CutPower(p.w.profile.journal)
	}
}

// schedulePowerCut cuts the power of everything now and then.
func (w *world) schedulePowerCut() {
	if w.profile.journal == nil {
		return
	}
	w.after(w.profile.journal.Int64N(4*second), func() {
		if !w.healing {
			w.powerCut(1500 * millisecond)
			w.schedulePowerCut()
		}
	})
}

// powerCut ends all processes at once, and starts new ones within some time.
func (w *world) powerCut(within int64) {
	w.faults.hit(faultPowerCut)
	w.logf("THE POWER IS CUT")
	rng := w.profile.journal
	for _, pod := range w.pods {
		if p := pod.proc; p != nil {
			p.crash(false)
			pod.disk.CutPower(rng)
		}
	}
	for _, pod := range w.pods {
		w.after(5*millisecond+rng.Int64N(within), func() { w.restart(pod) })
	}
}

// makeUnheardHeir cuts the primary off from all but its clients, and restarts a backup at
// once: the primary has a lease that the backup granted in its last moment, and hears
// nothing of its heir, nor that their connection ended.
func (w *world) makeUnheardHeir() {
	primary := w.podAt(w.api.rec.Primary.Address)
	if primary == nil || primary.proc == nil || w.api.cut[primary] {
		return
	}
	for _, pod := range w.pods {
		if pod == primary || pod.proc == nil || !w.isMember(pod.proc) {
			continue
		}
		w.faults.hit(faultHeirUnheard)
		w.logf("pod %s is CUT OFF from all but its clients", primary.name)
		w.isolate(primary, true)
		w.api.cut[primary] = true
		w.net.breakLink(w.net.link(primary, pod))
		pod.proc.crash(false)
		w.until(5*millisecond, 40*millisecond, func() { w.restart(pod) })
		w.until(300*millisecond, 800*millisecond, func() {
			w.net.tell(primary, pod, replica.Event{Kind: replica.EventPeerDown})
			w.rejoin(primary)
		})
		return
	}
}

// checkPower: in a world without other faults the power is cut, under load. In most of them
// a disk that lost its last batch although that was synced is among those of the members:
// the others have it, and go first.
func (w *world) checkPower() {
	rng := w.profile.journal
	if w.stopped || rng == nil {
		return
	}
	w.phase = phaseHeal
	w.api.heal()
	w.settle("before the power is cut")
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	w.runUntil(w.now+20*millisecond+rng.Int64N(300*millisecond), nil)
	if w.stopped {
		return
	}
	w.powerCut(100 * millisecond)
	if pod := w.pods[rng.IntN(len(w.pods))]; w.profile.heirWait >= 300*time.Millisecond && w.isMemberOf(pod) && len(w.api.rec.InSync) > 1 {
		w.spoil(pod)
	}
	w.checkI13()
}

// isMemberOf reports whether the record names the last process of a pod.
func (w *world) isMemberOf(p *pod) bool {
	return len(p.all) > 0 && w.api.rec.Has(p.all[len(p.all)-1].self.Boot)
}

// spoil changes a byte at the end of a pod's journal.
func (w *world) spoil(p *pod) {
	names, _ := p.disk.List()
	for i := len(names) - 1; i >= 0; i-- {
		if !strings.HasSuffix(names[i], ".log") {
			continue
		}
		if b, err := p.disk.Read(names[i]); err == nil && len(b) > 0 {
			w.faults.hit(faultSpoiled)
			w.logf("the end of the journal of pod %s is SPOILED", p.name)
			p.disk.Spoil(names[i], int64(len(b)-1))
			p.spoiled = true
		}
		return
	}
}

// checkI32: what is committed is durable in the journal of every member.
func (w *world) checkI32(p *process, st *replica.Status) {
	if w.profile.journal == nil {
		return
	}
	for i := range st.Config.InSync {
		if m := w.incarnation(st.Config.InSync[i].Boot); m.journal.durable < st.CommitSeq {
			w.violation("I32", "%s commits entry %d; the journal of %s has synced %d", p.name, st.CommitSeq, m.name, m.journal.durable)
		}
	}
	if p.journal.epoch < st.Config.Epoch {
		w.violation("I33", "%s commits entry %d in epoch %d; its journal has synced epoch %d", p.name, st.CommitSeq, st.Config.Epoch, p.journal.epoch)
	}
}

// checkI33: the heir of a member acts in no epoch that its predecessor was in.
func (w *world) checkI33(p *process, st *replica.Status) {
	if p.before == nil || st.Role != replica.RolePrimary && st.Role != replica.RoleBackup || p.before.status.Config == nil {
		return
	}
	if known := p.before.status.Config.Epoch; st.Config.Epoch <= known {
		w.violation("I33", "%s is %s in epoch %d, and so was its predecessor, up to %d", p.name, st.Role, st.Config.Epoch, known)
	}
}
