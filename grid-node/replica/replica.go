package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Replica is one member of one partition. It is not safe for concurrent use.
type Replica struct {
	opt   Options
	self  Member
	part  wire.PartitionID
	store *store.Store
	count Counters

	vitals *Vitals

	now         Time // of the Step in progress
	out         *Outbox
	role        Role
	cfg         *Config // last adopted, nil before the first
	epoch       uint64  // of cfg
	prop        proposal
	commit      uint64 // committed prefix
	changes     uint64 // proposals made, for change ids
	older       bool   // a record older than cfg was shown, not yet confirmed by the arbiter
	told        told   // cfg was only announced by the primary
	doubted     uint64 // the epoch in which a fresh read first showed an older record
	freshAt     int64  // when the arbiter last confirmed the record
	readAt      int64  // when the configuration was last requested
	reading     bool   // no answer has come since readFrom
	readFrom    int64
	pods        []string // the pods that the record names for its copies; none: every pod may hold one
	named       bool     // some record has named pods: from then on the version of the list matters
	specVersion string   // version of the record whose spec was adopted last
	watchAt     int64    // when the watch last showed it
	restTill    int64    // ticks before it do nothing; 0 unless the replica is at rest
	statusAt    Status   // status of the last ActionStatus
	followed    bool     // clients follow the log here
	moved       bool     // commit moved since the last flush

	computes [wire.MaxComputes]uint64 // names of opt.Compute, as other replicas are told
	fix50    bool                     // an order of FIX 5.0 SP2 was stored, see fixversion.go

	gets    gets
	live    machine.Machine // state after all entries
	base    machine.Machine // state after the freed entries
	seats   seats
	fix     fixSessions
	readers []reader
	marks   marks
	mayFree uint64 // highest position to free up to in a committed entry; see freeSome
	layouts order.Layouts
	order   order.Order // scratch, so that parsing allocates nothing
	text    []byte      // scratch
	decided Decision    // of opt.Pre

	journal  *journaling // nil: there is none
	heir     heir        // of a member that the journal is of
	resumed  bool        // it began with the log of a journal, and is no heir
	primary  primaryState
	backup   backupState
	parked   []parked // requests that wait for the end of a hand-over
	claimAt  int64
	copied   bool     // the record of epoch 0 is a copy: see claim
	restore  *Restore // what the first claim restores; nil: the partition begins empty
	toldCopy bool     // and that was reported
	leaving  bool     // EventDrain or EventStop was received
	stopping bool     // EventStop was received
	drained  bool

	preferredPod string  // that should be primary, "" if unknown
	acceptLoss   uint64  // epoch whose loss was accepted, 0 if none
	reassert     string  // change id declared the true one, "" if none
	regressed    *Config // the arbiter's record, when it is older than cfg
	site                 // of a standby
	regions      regionState
	execs        *execLog // nil in a partition that stores orders and does not match
	execution             // of one that matches
	functions    functionsState
	limits       guardState
	schedule     schedule
	logged       logCheck
	differedAt   int64  // when a copy was removed because its state differs, 0 for never
	resumedTo    uint64 // the last entry that was read from a journal
	lossTold     uint64 // epoch for which AlarmLossSuspected was raised
}

// primaryState is used in RolePrimary only.
type primaryState struct {
	peers     []peer // the other members and the learners; at most maxPeers
	suspended bool   // nothing is acknowledged until a change of configuration
	round     uint64 // counts flushes that sent something; never falls
	floor     uint64 // last entry of earlier epochs: it may have been acknowledged, so no read is served until it is committed
	awake     uint64 // nothing is acknowledged before the ack set has echoed this round, on the data path
	admitAt   int64  // earliest time of the next admission
	pend      pendings
	reads     readQueue
	waits     readQueue // confirmed, and waiting for an entry to be committed
	hand      handOver
	agreed    wire.FeatureSet // that every replica knew
	released  [8]uint64       // boot ids of the last released learners: they rely on it
	nReleased int
}

// backupState is used in RoleBackup and RoleLearner.
type backupState struct {
	heardAt      int64   // when the primary was last heard
	primaryDown  bool    // its connection was reset since
	downAt       int64   // when that was
	redirectAt   int64   // after a hand-over: when the waiting clients are redirected, 0 if there are none
	held         *Config // the next configuration, not announced by the primary yet
	heldAt       int64
	ahead        uint64 // the later epoch in which a member last sent
	aheadAt      int64  // when
	aheadFrom    uint64 // its sender
	primary      uint64 // boot id of the primary
	leased       bool   // it answers leased reads: wait its lease out before taking over
	round        uint64
	echoNs       int64
	ackDue       bool
	arbiterAsked bool   // the primary asks whether the arbiter answers here
	nackedSeq    uint64 // the entry requested by the last Nack
	nackedAt     int64
	divergedAt   int64  // when the last entry of another history was received
	useless      string // learner: why it should discard its log, once the arbiter shows that it is in no configuration
	uselessDoubt bool   // the arbiter has shown that once
	counted      bool   // learner: the primary may have proposed it for inSync
	accepted     bool   // learner: the primary sends the log
	joinAt       int64  // learner: when to (re)send the request
	joins        int    // learner: unanswered requests
	install      installState
	executed     match.Position // of the last PrepareExec, for mutants
}

// New makes an empty replica: it waits for EventConfig.
func New(o Options) (*Replica, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	r := &Replica{opt: o, self: o.Self, part: o.Partition, store: o.Store, vitals: o.Vitals, computes: computesOf(o.Compute)}
	if r.vitals == nil {
		r.vitals = NewVitals(o.Self, o.Partition, o.Timing)
	}
	var err error
	if r.readers, err = newReaders(o.Readers, o.Outside, o.Removed); err != nil {
		return nil, err
	}
	r.live.Begin(r.opt.Limits.Window, 0)
	r.base.Begin(r.opt.Limits.Window, 0)
	r.journal = newJournaling(&r.opt)
	r.beginExecution()
	r.run(&r.live)
	r.run(&r.base)
	r.regions.asks = wire.TypeSubmit
	r.limits = newGuardState(o.Profile)
	r.seats.sessions = map[uint64]int{}
	r.primary.pend.init(o.Limits.InFlight)
	r.primary.reads.init(o.Limits.PendingReads)
	r.primary.waits.init(o.Limits.PendingReads)
	r.gets.init()
	r.primary.peers = make([]peer, 0, maxPeers)
	return r, nil
}

// Step handles one event and adds the resulting actions to out. It never blocks and, in
// steady state, never allocates.
func (r *Replica) Step(now Time, ev *Event, out *Outbox) {
	switch ev.Kind {
	case EventTick:
		if !r.TickDue(now.Mono) {
			return
		}
	case EventFlush:
	default:
		r.restTill = 0
	}
	if now.Mono < r.now.Mono {
		now.Mono = r.now.Mono // a clock that jumps back must not make a member look alive
	}
	slept := r.now.Mono != 0 && now.Mono-r.now.Mono > int64(r.opt.Timing.Grace)/2
	r.now, r.out = now, out
	if r.role == RoleStopped {
		return
	}
	if slept && !mutant(mutWakeIgnored) {
		r.wake()
	}
	switch ev.Kind {
	case EventClientFrame:
		r.clientFrame(ev)
	case EventPeerFrame:
		r.peerFrame(ev.Frame)
	case EventFlush:
		r.flush()
	case EventTick:
		r.takeVitals()
		r.tick()
		r.rest()
	case EventPeerUp:
		r.peerUp(ev.Address, ev.Bulk)
	case EventPeerDown:
		r.peerDown(ev.Address)
	case EventConfig:
		r.eventConfig(ev.Config, ev.Fresh)
	case EventCASResult:
		r.casResult(ev)
	case EventCursor:
		d := &r.readers[ev.Reader]
		d.reached = max(d.reached, ev.Seq)
	case EventJournaled:
		r.journaled(ev.Journaled)
	case EventMapped:
		r.mapped(ev.Mapped)
	case EventClientGone:
		r.clientGone(ev.Conn)
	case EventDrain:
		r.drain()
	case EventStop:
		r.stop()
	}
	r.out = nil
}

// clientFrame dispatches a client's frame.
func (r *Replica) clientFrame(ev *Event) {
	if len(ev.Frame) < wire.HeaderSize {
		r.closeConn(ev.Conn, "frame shorter than its header")
		return
	}
	var err error
	switch t := wire.FrameType(ev.Frame); t {
	case wire.TypeSubmit:
		err = r.submit(ev.Conn, ev.Frame, &ev.Hint)
	case wire.TypeGet:
		err = r.get(ev.Conn, ev.Frame)
	case wire.TypeOpenSession:
		err = r.openSession(ev.Conn, ev.Client, ev.Frame)
	case wire.TypeReadLog:
		err = r.readLog(ev.Conn, ev.Frame)
	case wire.TypeAdvance:
		err = r.advanceReader(ev.Conn, ev.Frame)
	case wire.TypeLinkOpen:
		err = r.linkOpen(ev.Conn, ev.Frame)
	case wire.TypeLinkEntries:
		err = r.linkEntries(ev.Conn, ev.Frame)
	case wire.TypeFixOpen:
		err = r.fixOpen(ev.Conn, ev.Frame)
	case wire.TypeFixSubmit:
		err = r.fixSubmit(ev.Conn, ev.Frame)
	case wire.TypeFixStep:
		err = r.fixStep(ev.Conn, ev.Frame)
	case wire.TypeFixResend:
		err = r.fixResend(ev.Conn, ev.Frame)
	case wire.TypeFixHere:
		err = r.fixHere(ev.Conn, ev.Frame)
	case wire.TypeReadRecords:
		err = r.readRecords(ev.Conn, ev.Frame)
	case wire.TypeReadExecutions:
		err = r.readExecutions(ev.Conn, ev.Frame)
	case wire.TypeRegionApply:
		err = r.regionApply(ev.Conn, ev.Frame)
	case wire.TypeRegionBatch:
		err = r.regionBatch(ev.Conn, ev.Frame)
	case wire.TypeInvoke:
		err = r.invoke(ev.Conn, ev.Frame)
	case wire.TypeMap:
		err = r.mapFrame(ev.Conn, ev.Frame)
	case wire.TypeMapOrders:
		err = r.mapOrders(ev.Conn, ev.Frame)
	case wire.TypeRegionGet:
		err = r.regionGet(ev.Conn, ev.Frame)
	case wire.TypeRegionScan:
		err = r.regionScan(ev.Conn, ev.Frame)
	case wire.TypeRegionList:
		err = r.regionList(ev.Conn, ev.Frame)
	case wire.TypeKill:
		err = r.kill(ev.Conn, ev.Frame)
	case wire.TypeReadLimits:
		err = r.readLimits(ev.Conn, ev.Frame)
	case wire.TypeReadKill:
		err = r.readKill(ev.Conn, ev.Frame)
	case wire.TypeReadBook:
		err = r.readBook(ev.Conn, ev.Frame)
	case wire.TypeReadOrders:
		err = r.readOrders(ev.Conn, ev.Frame)
	case wire.TypeMarket:
		err = r.market(ev.Conn, ev.Frame)
	default:
		r.closeConn(ev.Conn, "frame "+t.String()+" is not for a partition")
		return
	}
	if err != nil {
		r.closeConn(ev.Conn, err.Error())
	}
}

func (r *Replica) closeConn(conn uint64, text string) {
	r.out.add(Action{Kind: ActionCloseConn, Conn: conn, Text: text})
}

// peerFrame dispatches another replica's frame. One that cannot be decoded is counted and
// dropped: its sender may be faulty, this process is not.
func (r *Replica) peerFrame(frame []byte) {
	var err error
	if len(frame) < wire.HeaderSize {
		err = &wire.FrameError{Field: "length", Value: uint64(len(frame)), Allowed: "8 or more"}
	} else {
		switch t := wire.FrameType(frame); t {
		case wire.TypePrepare:
			err = r.prepare(frame)
		case wire.TypePrepareAck:
			err = r.prepareAck(frame)
		case wire.TypePrepareExec:
			err = r.prepareExec(frame)
		case wire.TypePrepareExecAck:
			err = r.prepareExecAck(frame)
		case wire.TypeBeacon:
			err = r.beacon(frame)
		case wire.TypeFeatures:
			err = r.features(frame)
		case wire.TypeNack:
			err = r.nack(frame)
		case wire.TypeNewConfig:
			err = r.newConfig(frame)
		case wire.TypeJoin:
			err = r.join(frame)
		case wire.TypeJoinReply:
			err = r.joinReply(frame)
		case wire.TypeSnapshotRequest:
			err = r.snapshotRequest(frame)
		case wire.TypeSnapshot:
			err = r.snapshot(frame)
		case wire.TypeDigest:
			err = r.digest(frame)
		default:
			err = &wire.FrameError{Type: t, Field: "type", Value: uint64(t), Allowed: "a frame between replicas"}
		}
	}
	if err != nil {
		r.count.BadFrames++
		r.alarm(AlarmBadFrame, err.Error())
	}
}

func (r *Replica) alarm(kind AlarmKind, text string) {
	r.out.add(Action{Kind: ActionAlarm, Alarm: kind, Text: r.part.String() + ": " + text})
}

// restart ends this incarnation: none of its entries is used again.
func (r *Replica) restart(text string) {
	r.role = RoleStopped
	r.flushGets() // there is no further flush
	if r.execs != nil {
		r.answerBooks()
	}
	r.answerAdvances()
	r.publish()
	r.out.add(Action{Kind: ActionRestart, Text: r.part.String() + ": " + text})
}

// Status of the replica. The Config it points to is not to be changed.
func (r *Replica) Status() Status {
	last, _ := r.store.Last()
	base, _ := r.store.Base()
	s := Status{
		Role: r.role, Suspended: r.role == RolePrimary && r.primary.suspended, HandingOver: r.handingOver(), Draining: r.leaving, Config: r.cfg, Unconfirmed: r.told.known != nil, Replicas: r.opt.Replicas,
		LastSeq: last, CommitSeq: r.commit, Readers: r.known(), CursorSeq: r.held(), DataSeq: r.live.Cursors.Data, FreedSeq: base, Sessions: r.live.Sessions.Open(),
	}
	if r.role == RolePrimary {
		s.InFlight = int(last - r.commit)
		for i := range r.primary.peers {
			if p := &r.primary.peers[i]; !p.inSync() {
				s.Learners = append(s.Learners, p.Member)
			}
		}
	}
	return s
}

// flushStatus reports a change of role, configuration or suspension once.
func (r *Replica) flushStatus() {
	s := Status{Role: r.role, Config: r.cfg, Suspended: r.role == RolePrimary && r.primary.suspended, HandingOver: r.handingOver(), Draining: r.leaving, Readers: r.known()}
	if o := &r.statusAt; s.Readers != o.Readers || s.Role != o.Role || s.Config != o.Config || s.Suspended != o.Suspended || s.HandingOver != o.HandingOver || s.Draining != o.Draining {
		r.statusAt = s
		r.out.add(Action{Kind: ActionStatus})
	}
}

// Counters of the replica, as a copy.
func (r *Replica) Counters() Counters { return r.count }

// Vitals of the replica: those of its Options, or its own.
func (r *Replica) Vitals() *Vitals { return r.vitals }
