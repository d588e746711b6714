package sim

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/journal"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// pod is a place where processes run, one after the other. Name and address are constant;
// every process has its own boot id.
type pod struct {
	w          *world
	index      int
	name       string
	address    string
	clock      clock
	proc       *process      // the one that runs, nil if none does
	all        []*process    // all processes so far
	absent     bool          // no process is started in it
	disk       *journal.Disk // nil without journals
	noHeir     bool          // the next process has another boot id
	newRegions bool          // it has read the new file of regions
	limitsFile int           // which of world.limitsFiles it has
	regionFile int           // which of world.regionFiles
	calendar   int           // which of world.calendars
	spoiled    bool          // the journal lost what was synced
	given      string        // the module that the next process is given, "" for the one deployed
	cleared    int64         // when the address was last taken by a new process
}

// process is one incarnation: a replica, its store, and the simulation's state of it. When
// a replica discards itself the real process continues with a new one; here that is a new
// process which keeps the connections.
type process struct {
	w     *world
	pod   *pod
	name  string // a1, a2, ... in traces
	self  replica.Member
	alive bool
	st    *store.Store
	pin   uint64 // entries from here on are kept for the view, 0: none
	r     *replica.Replica
	out   replica.Outbox

	tick    int             // of that thread
	vitals  *replica.Vitals // driven by the process's second thread
	vqueue  []func()
	stalled bool // the loop hangs, the second thread does not

	paused       bool
	pausedAt     int64
	wokenAt      int64    // end of the last pause that was longer than half the grace, 0 if none
	queue        []func() // what arrived while it was paused
	flushDue     bool
	awake        bool         // in a wake-up: its clock is read once
	clock        replica.Time // as the wake-up read it
	clockAt      int64        // true time of that
	leaving      bool         // draining
	stopping     bool         // stopping
	spoiled      bool         // its state does not match its log, see checkSpoiled
	drained      bool         // reported that it may exit
	named        bool         // was shown a record that names pods
	reading      bool         // a read of the record is in progress
	watchAt      int64        // no watch event is delivered before: they are ordered
	shownRestore bool         // was shown a record that is restored
	restoreNamed bool         // and which names its pod, or none
	before50     bool         // it is of a release that does not know FIX 5.0 SP2
	watchSeen    int          // apiServer.changes of the last one delivered
	fenced       fenceMark    // when it first answered a link of a later term

	journal *diskJournal // nil: none
	before  *process     // whose journal it has, as the same member

	view   *followed // nil before its first entry, and in worlds without views
	log    logView
	seats  seats  // of FIX sessions, in a world in which they lapse
	leased uint64 // reads it answered on its lease
	// A lineage ended in the middle of a wake-up: its first replies were given before,
	// with the first bytes of the last of those, which later ones to the same connection
	// follow.
	olderLineage uint64
	olderReplies int
	olderBytes   int
	status       replica.Status // as of the last step
	writers      []sinkWriter   // of the readers of its pod
}

func (w *world) addPod(i int) {
	p := &pod{w: w, index: i, name: string(rune('a' + i)), address: fmt.Sprintf("10.0.0.%d:7400", i+1)}
	p.clock = w.newClock()
	w.pods = append(w.pods, p)
}

// start runs an empty process in the pod.
func (p *pod) start() *process {
	w := p.w
	n, name := len(p.all)+1, ""
	boot := uint64(p.index+0xa)<<16 | uint64(n)
	found := w.readJournal(p)
	if found != nil && found.heir {
		boot = found.Boot
		n, name = int(boot&0xffff), fmt.Sprintf(".%d", found.Life+1)
	}
	self, err := replica.NewMember(wire.FormatMemberID(p.name, boot), p.address)
	if err != nil {
		panic(err) // a mistake in this package
	}
	st, err := store.New(store.Options{Block: 4096, Repeatable: true})
	if err != nil {
		panic(err) // no memory left on this machine
	}
	proc := &process{w: w, pod: p, name: fmt.Sprintf("%s%d%s", p.name, n, name), self: self, alive: true, st: st, before50: p.before50()}
	st.PinBy(func() uint64 { return proc.pin })
	opt := replica.Options{
		Partition: partition, Self: self, Store: st, Limits: w.profile.limits, Timing: w.profile.timing,
		Retention: w.profile.retention, Readers: append([]string{}, w.profile.readersOf(p.index)...), Replicas: w.profile.replicas, MinInSync: w.profile.minInSync, Preferred: p.index == 0,
	}
	if name := w.profile.outside; name != "" {
		opt.Readers, opt.Outside = append(opt.Readers, name), []string{name}
	}
	if w.profile.leases {
		opt.LeaseClock = func() int64 { return p.clock.mono(w.now) }
	}
	opt.Execution, opt.Journal, opt.Regions = w.profile.execution(), w.profile.journalOptions(), p.regionOptions()
	opt.Vitals = replica.NewVitals(self, partition, opt.Timing)
	proc.vitals, opt.Rest = opt.Vitals, w.profile.rests
	opt.Pre, opt.Compute, opt.Map = w.newDecider(proc), w.newComputer(proc), w.newMapper(proc)
	opt.Functions = w.newFunctions()
	opt.Profile, opt.Known = p.limitsText(), proc.known()
	if proc.r, err = replica.New(opt); err != nil {
		panic(err)
	}
	proc.r.SetCalendar(p.calendarOf())
	p.proc, p.cleared = proc, w.now
	if n <= len(p.all) {
		proc.before, p.all[n-1] = p.all[n-1], proc
	} else {
		p.all = append(p.all, proc)
	}
	if found != nil {
		proc.resumeFrom(found)
	}
	w.logf("%s starts", proc.name)
	w.api.get(proc) // a watch begins with the current record
	proc.scheduleTick()
	proc.scheduleBeat()
	proc.scheduleLoad()
	return proc
}

// shown notes what the process knows from a record that it is given now. Answers that
// wait in its outbox were given before.
func (p *process) shown(c *replica.Config) {
	p.named = p.named || len(c.Pods) > 0
	p.shownRestore = p.shownRestore || c.Restore != nil && len(p.out.Actions) == 0
	p.restoreNamed = p.restoreNamed || c.Restore != nil && (len(c.Pods) == 0 || slices.Contains(c.Pods, p.pod.name))
}

// scheduleTick makes the process tick, a little late now and then.
func (p *process) scheduleTick() {
	w := p.w
	every := int64(w.profile.beacon()) / 2
	w.after(every-w.between(0, every/10), func() {
		if !p.alive {
			return
		}
		if !p.paused && !p.stalled {
			p.step(&replica.Event{Kind: replica.EventTick})
		}
		p.scheduleTick()
	})
}

// wakeUp begins a wake-up, unless in one, and returns its time: the loop reads its clock
// once and steps everything that arrived with it.
func (p *process) wakeUp() replica.Time {
	if !p.awake {
		p.awake, p.clock, p.clockAt = true, p.pod.clock.time(p.w.now), p.w.now
	}
	return p.clock
}

// deliver gives the process an event; while it is paused the event waits.
func (p *process) deliver(do func()) {
	if p.paused || p.stalled {
		p.queue = append(p.queue, do)
		return
	}
	do()
}

// step gives the replica one event. Most wake-ups end here with a flush; some
// bring more events first.
func (p *process) step(ev *replica.Event) {
	if !p.alive || p.w.stopped {
		return
	}
	w := p.w
	w.steps++
	before, actions, config := p.lineage(), len(p.out.Actions), p.status.Config
	said := p.said(actions - 1)
	p.r.Step(p.wakeUp(), ev, &p.out)
	w.checkStep(p)
	if p.lineage() != before {
		p.olderLineage, p.olderReplies, p.olderBytes = before, actions, said
	}
	w.checkI4Lease(p, config)
	if p.flushDue {
		return
	}
	if !w.healing && w.chance(w.profile.lateFlush) {
		p.flushDue = true
		w.after(w.between(0, 2*millisecond), func() {
			p.deliver(func() {
				p.flushDue = false
				p.flush()
			})
		})
		return
	}
	p.flush()
}

// lineage returns the lineage of the process, 0 if unknown.
func (p *process) lineage() uint64 {
	if p.status.Config == nil {
		return 0
	}
	return p.status.Config.Lineage
}

// flush ends a wake-up: the replica's actions are executed.
func (p *process) flush() {
	if !p.alive || p.w.stopped {
		return
	}
	p.w.steps++
	config := p.status.Config // reads are answered before the flush may change it
	p.r.Step(p.wakeUp(), &flushEvent, &p.out)
	p.w.checkStep(p)
	p.w.checkI4Lease(p, config)
	p.act()
	p.followView()
	p.awake = false
}

// act executes the replica's actions, in order.
func (p *process) act() {
	w := p.w
	restart := ""
	for i := range p.out.Actions {
		a := &p.out.Actions[i]
		switch a.Kind {
		case replica.ActionReply:
			p.reply(i)
		case replica.ActionSend:
			w.net.send(p, a.Address, joined(p.out.Head(a), a.Tail), classOf(a))
		case replica.ActionPropose:
			w.api.propose(p, a.Config, a.Text)
		case replica.ActionReadConfig:
			w.api.get(p)
		case replica.ActionAlarm:
			p.alarm(a.Alarm, a.Text)
		case replica.ActionCloseConn:
			w.violation("wire", "%s closes connection %d: %s", p.name, a.Conn, a.Text)
		case replica.ActionDrained:
			p.drained = true
			w.logf("%s is done and may end", p.name)
			w.after(w.between(0, 20*millisecond), p.exit)
		case replica.ActionJournalEntries, replica.ActionJournalConfig, replica.ActionJournalState:
			p.journal.take(a)
		case replica.ActionStatus:
			w.logf("%s is %s", p.name, w.statusText(p))
		case replica.ActionRestart:
			restart = a.Text
		}
	}
	p.out.Reset()
	p.olderReplies = 0
	p.journal.write()
	if restart != "" {
		p.discard(restart)
	}
}

// said returns how many bytes action i has sent to a connection so far.
func (p *process) said(i int) int {
	if i < 0 || p.out.Actions[i].Kind != replica.ActionReply {
		return 0
	}
	a := &p.out.Actions[i]
	return len(p.out.Head(a)) + len(a.Tail)
}

// reply sends action i to its connection, with the lineage of each frame.
func (p *process) reply(i int) {
	a := &p.out.Actions[i]
	frames, older := joined(p.out.Head(a), a.Tail), 0
	switch {
	case i < p.olderReplies-1:
		older = len(frames)
	case i == p.olderReplies-1:
		older = p.olderBytes
	}
	p.w.net.reply(p, a.Conn, frames[:older], p.olderLineage)
	p.w.net.reply(p, a.Conn, frames[older:], p.lineage())
}

func classOf(a *replica.Action) class {
	if a.Bulk {
		return classBulk
	}
	return classData
}

// discard ends an incarnation at its own request; the process makes a new one.
func (p *process) discard(why string) {
	w := p.w
	w.logf("%s discards itself: %s", p.name, w.short(why))
	w.stats.Discards++
	w.checkDiscard(p, why)
	p.end()
	p.setAside(why)
	next := p.pod.start()
	w.net.inherit(p, next)
	if p.leaving || p.stopping { // the process is stopping; its next incarnation is too
		next.leave(p.stopping)
	}
}

// leave drains the process, or stops it now.
func (p *process) leave(now bool) {
	ev := replica.Event{Kind: replica.EventDrain}
	if now {
		ev.Kind = replica.EventStop
	}
	p.leaving, p.stopping = true, p.stopping || now // a stop is final
	p.deliver(func() { p.step(&ev) })
}

// exit is the end of a process that reported that it may exit.
func (p *process) exit() {
	w := p.w
	if !p.alive || w.stopped {
		return
	}
	if !p.stopping {
		w.checkMayEnd(p)
	} else if !w.mayEnd(p) { // it was stopped; this world loses nothing
		w.after(20*millisecond, p.exit)
		return
	}
	w.logf("%s ends", p.name)
	w.checkI16(p.name+" ends", w.api.rec.Lineage, uint64(len(w.timeline(w.api.rec.Lineage).hashes)), p)
	p.end()
	w.net.processGone(p, true)
	w.after(w.between(5*millisecond, 300*millisecond), func() { w.restart(p.pod) })
}

// end frees the incarnation's memory; its log is kept as hashes only.
func (p *process) end() {
	p.alive = false
	p.queue, p.vqueue = nil, nil
	if p.pod.proc == p {
		p.pod.proc = nil
	}
	p.w.leaveViews(p)
	p.endView()
	p.st.Close()
}

// alarm handles an alarm; some must never be raised.
func (p *process) alarm(kind replica.AlarmKind, text string) {
	p.w.logf("%s ALARM %s: %s", p.name, kind, p.w.short(text))
	p.w.checkAlarm(p, kind, text)
}

// crash ends the process. With reset the machine lives and resets its connections; without
// it just falls silent.
func (p *process) crash(reset bool) {
	p.w.logf("%s CRASHES (connections reset: %t)", p.name, reset)
	p.end()
	p.pod.cutPower()
	p.w.net.processGone(p, reset)
}

func joined(head, tail []byte) []byte {
	return append(append(make([]byte, 0, len(head)+len(tail)), head...), tail...)
}
