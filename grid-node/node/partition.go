package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/inspect"
	"github.com/ordergrid/ordergrid/grid-node/journal"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// partition is this node's part in one partition. It holds an incarnation: when a replica
// must not continue with its memory (it was removed, or its log is another history), the
// incarnation is discarded and a new one with a new boot id joins as a learner. The other
// partitions of the process are not affected.
type partition struct {
	*process
	all     *partitions
	peers   *peers
	clients *clients
	id      wire.PartitionID
	record  record

	inc          *incarnation
	store        *store.Store     // of inc
	replica      *replica.Replica // of inc
	out          replica.Outbox
	dirty        bool
	drained      bool
	ended        bool   // the replica takes no more events
	leaving      bool   // it drains, to be closed
	closed       bool   // the node no longer holds it
	first        int64  // bytes that are made present before the node serves
	stopped      bool   // EventStop was given, to this incarnation and those after it
	committed    uint64 // last ActionCommitted
	orderAt      int64  // Mono at which this node, as primary, last saw an order committed
	changes      changeLog
	status       replica.Status
	broken       uint64         // entries that the inspectors of former incarnations found broken
	loadError    string         // why its archive is not loaded, "" while that goes well
	loadFailures uint64         // of attempts to load it
	refused      uint64         // orders rejected for lack of memory, as of room's last sample
	limits       replica.Limits // its share of what the node has
	inForce      inForce        // limits, for the page
	feeds        int            // learners it sent the log to when the limits were divided

	sinkEnded      map[string]chan struct{} // by sink: closed when the latest incarnation's queue has let go of it
	profileWaits   string                   // why the log has later limits than the file, as it was logged
	profileRefused string                   // why the limits of the file cannot be in force, as it was logged

	discardedFor string // why the last incarnation was discarded
	noHeir       bool   // the journal is of a process that is no member

	remakeAt   int64 // Mono at which a new incarnation is made; 0 = none is due
	remadeAt   int64
	remakeWait time.Duration
}

// incarnation is the part that is discarded with a replica.
type incarnation struct {
	self      replica.Member
	store     *store.Store
	feed      *feed.Feed // of store
	view      *partView  // nil without views
	outlets   []*outlet  // none with the sink "hold"
	followers []*follower
	ctx       context.Context
	inspector *inspect.Inspector
	cancel    context.CancelFunc
	wg        sync.WaitGroup // readers of the store on other goroutines
	loading   bool           // an archive is being loaded, or was; of the data loop
	journal   *partJournal   // nil: none is kept
	warm      chan struct{}  // closed: the memory of Config.Prefault is there
}

// close waits for the readers and releases the memory.
func (i *incarnation) close(vs *views) {
	i.cancel()
	i.wg.Wait()
	if i.journal != nil {
		<-i.journal.ended
	}
	i.view.close(vs)
	i.store.Close()
}

func newBootID() (id uint64) {
	for id == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails, see its documentation
		id = binary.LittleEndian.Uint64(b[:])
	}
	return id
}

// incarnate makes an empty store and an empty replica.
func (p *partition) incarnate(boot uint64) error {
	cfg := &p.cfg
	st, err := store.New(store.Options{Budget: p.all.budget, SessionBytes: replica.SessionBytes(sessionWindow), FixBytes: replica.FixBytes(), Lends: cfg.executionLog()})
	if err != nil {
		return fmt.Errorf("partition %s: %w", p.id, err)
	}
	var files journal.FS
	var before journal.Identity
	if cfg.Journal != nil {
		if files, before, boot, err = p.peekJournal(boot); err != nil {
			st.Close()
			return err
		}
	}
	self := replica.Member{ID: wire.FormatMemberID(cfg.Pod, boot), Boot: boot, Address: cfg.Advertise}
	timing := replica.Timing{Beacon: cfg.Beacon, Lease: cfg.Lease, Grace: cfg.Grace, ClaimDelay: cfg.ClaimDelay,
		HandOverDelay: cfg.HandOverDelay,
		// Connections lose nothing, and a new one makes the replica resend at once. A
		// timed resend would only add to the load of a slow moment.
		Resend: cfg.Lease}
	opt := replica.Options{
		Vitals: replica.NewVitals(self, p.id, timing), Rest: true, Timing: timing,
		Partition: p.id, Self: self, Store: st, Replicas: cfg.Replicas, MinInSync: cfg.MinInSync,
		Readers: cfg.readers(), Outside: cfg.ExternalSinks, Removed: cfg.RemovedSinks,
		Retention: cfg.retention(p.all.plan.orders), CapacityAdvice: cfg.capacityAdvice(), Limits: p.limits,
	}
	opt.Execution, opt.Regions, opt.Profile = cfg.execution(p.id), p.all.regionOptions(), p.all.profile.text
	if cfg.Journal != nil {
		opt.Journal = &replica.Journal{}
	}
	if cfg.LeasedReads && transport.CountsSuspension() { // else a leased read is confirmed
		opt.LeaseClock = func() int64 { return p.loop.Clock().Exact() }
	}
	opt.Functions = p.all.posts.options()
	if f := p.all.functions; f != nil {
		opt.Pre = f
	}
	if f := p.all.computes; f != nil {
		opt.Compute, opt.Map = f, mapper{f, p}
	}
	r, err := replica.New(opt)
	if err != nil {
		st.Close()
		return err
	}
	r.SetCalendar(p.all.calendar)
	ctx, cancel := context.WithCancel(p.ctx)
	inc := &incarnation{self: self, store: st, feed: feed.New(st), ctx: ctx, cancel: cancel, warm: make(chan struct{})}
	if files != nil {
		switch anew, err := p.resumeOr(inc, r, files, before); {
		case anew && err == nil:
			cancel()
			st.Close()
			return p.incarnate(newBootID())
		case err != nil:
			cancel()
			st.Close()
			return err
		}
		p.noHeir = false
	}
	if inc.view, err = p.all.views.newPartView(inc.feed); err != nil {
		return err
	}
	p.inc, p.store, p.replica = inc, st, r
	p.all.live.hold(p.id, opt.Vitals)
	p.status, p.committed, p.drained = replica.Status{}, 0, false
	p.ended = false
	first := p.first
	p.first = 0 // later the process serves already, and the earlier memory is about to be released
	log, err := inc.feed.Reader("prefault")
	if err != nil {
		return err
	}
	inc.wg.Go(func() {
		prefaultFirst(ctx, st, int(first))
		close(inc.warm)
		prefault(ctx, log, st, &p.all.ahead)
	})
	return errors.Join(p.startSinks(ctx, inc), p.startInspector(ctx, inc))
}

const (
	remakeQuiet   = 10 * time.Second // a replica that lived so long is remade at once
	remakeRetry   = time.Second      // after a try that failed
	maxRemakeWait = 5 * time.Second
)

// discard schedules a new incarnation, with back-off when they are short-lived.
func (p *partition) discard(reason string) {
	now := p.loop.Clock().Mono()
	p.discardedFor = reason
	if now-p.remadeAt > int64(remakeQuiet) {
		p.remakeWait = 0
	}
	p.counters.Restarts++
	p.log.Warn("a replica is discarded and joins again", "partition", p.id.String(), "member", p.inc.self.ID, "reason", reason, "in", p.remakeWait.String())
	p.remakeAt = now + int64(p.remakeWait) + 1
	p.remakeWait = min(max(2*p.remakeWait, 50*time.Millisecond), maxRemakeWait)
}

// remake replaces the incarnation when it is due; called between two steps.
func (p *partition) remake(now int64) {
	if p.remakeAt == 0 || now < p.remakeAt {
		return
	}
	old := p.inc
	if ended, err := p.endJournal(); !ended {
		return
	} else if err != nil {
		p.log.Error("cannot set the journal aside, retrying", "partition", p.id.String(), "reason", err)
		p.remakeAt = now + int64(remakeRetry)
		return
	}
	if err := p.incarnate(newBootID()); err != nil {
		p.log.Error("cannot make a replica, retrying", "partition", p.id.String(), "reason", err)
		p.remakeAt = now + int64(remakeRetry)
		return
	}
	p.remakeAt, p.remadeAt = 0, now
	p.broken += old.inspector.Broken()
	p.wg.Go(func() { old.close(p.all.views) }) // its readers may be in the middle of a write
	p.record.read()
	p.drainOne()
}

// prefaultStep is how much memory is asked for at once.
const prefaultStep = 8 << 20

// prefaultFirst makes the first n bytes present, before the node starts to serve.
func prefaultFirst(ctx context.Context, st *store.Store, n int) {
	for ahead := prefaultStep; ahead <= n && ctx.Err() == nil; ahead += prefaultStep {
		st.Prefault(ahead)
	}
}

// prefault keeps the memory that the store writes next present, so that the loop does not
// take page faults. It wakes when a quarter of that may be written: never when idle.
func prefault(ctx context.Context, log *feed.Reader, st *store.Store, ahead *atomic.Int64) {
	const entryBytes = 512 // a guess on the large side; the store's own count is the loop's
	for due := uint64(1); ; due = st.Committed() + max(1, uint64(ahead.Load())/4/entryBytes) {
		for st.Committed() < due {
			if log.Await(ctx, due, 0); ctx.Err() != nil {
				return
			}
		}
		st.Prefault(int(ahead.Load()))
	}
}
