package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/journal"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Journal of a node: a directory on a local disk, and what it may use of it.
type Journal struct {
	Dir      string
	MaxBytes int64 // of all partitions; 0: no limit but the disk
}

const (
	// MinJournal is the least of Journal.MaxBytes: files of some partitions, and the reserve.
	MinJournal = 256 << 20
	// journalReserve is the part of it that is kept for what is under way.
	journalReserve = 8
	journalRetry   = time.Second // of a batch that did not fit
)

func (c *Config) checkJournal() error {
	switch j := c.Journal; {
	case j == nil:
		return nil
	case j.Dir == "":
		return errors.New(`--journal: value "", allowed: a directory on a local disk`)
	case j.MaxBytes != 0 && j.MaxBytes < MinJournal:
		return fmt.Errorf("--journal-max-bytes: value %d, allowed: 0 (what the disk has), or %d and more", j.MaxBytes, MinJournal)
	}
	return nil
}

// journalPatience is how long another process may keep the directory of the journals: one
// that is about to end.
const journalPatience = 10 * time.Second

// lockJournals takes the directory of the pod's journals for this process.
func (c *Config) lockJournals(ctx context.Context) (unlock func(), err error) {
	if c.Journal == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	release, err := journal.Lock(ctx, filepath.Join(c.Journal.Dir, c.Pod))
	if err != nil {
		return func() {}, fmt.Errorf("--journal: %w", err)
	}
	return func() { _ = release() }, nil // nothing was written by it
}

// partJournal is the journal of an incarnation. The loop adds to the next batch, and a
// goroutine of its own writes and syncs: what comes meanwhile is the next group commit.
type partJournal struct {
	p     *partition
	inc   *incarnation
	j     *journal.Journal // of the goroutine
	stats *journalStats
	max   int64
	wake  chan struct{}
	ended chan struct{} // closed: the files are

	mu     sync.Mutex
	next   *journal.Batch
	parts  []replica.JournalState
	closed bool
	base   uint64 // the last freed entry, for whether a state would make room

	durable atomic.Uint64 // the last entry that is
	bytes   int64         // of the files, as counted in stats
	now     replica.Journaled
}

// journalPath is the directory of a partition's journal.
func (p *partition) journalPath() string {
	return filepath.Join(p.cfg.Journal.Dir, p.cfg.Pod, p.id.String())
}

// peekJournal returns whose journal is on the disk, and the boot id that the next replica
// has: that of its predecessor, unless that was found not to be a member.
func (p *partition) peekJournal(boot uint64) (journal.FS, journal.Identity, uint64, error) {
	fs, err := journal.Dir(p.journalPath())
	if err != nil {
		return nil, journal.Identity{}, 0, fmt.Errorf("--journal: %w", err)
	}
	id, err := journal.Peek(fs)
	if err != nil {
		return nil, id, 0, fmt.Errorf("--journal: %w", err)
	}
	if id.Life > 0 && (id.Grid != p.cfg.Grid || id.Partition != uint32(p.id)) {
		err := p.setAside(fmt.Sprintf("it is of partition %d of grid %q", id.Partition, id.Grid))
		if err != nil {
			return nil, id, 0, err
		}
		return p.peekJournal(boot)
	}
	if id.Life > 0 && !p.noHeir {
		boot = id.Boot
	}
	return fs, id, boot, nil
}

// visitor gives a replica what is read.
type visitor struct{ r *replica.Replica }

func (v visitor) State(p *replica.JournalState) error { return v.r.ResumeState(p) }
func (v visitor) Entries(run []byte) error            { return v.r.ResumeEntries(run) }

// resume reads the journal into a new replica, and begins to write it.
func (p *partition) resume(inc *incarnation, r *replica.Replica, fs journal.FS, before journal.Identity) error {
	began := time.Now()
	found, err := journal.Read(fs, visitor{r})
	if err != nil {
		return fmt.Errorf("%s: %w", p.journalPath(), err)
	}
	id := journal.Identity{Grid: p.cfg.Grid, Partition: uint32(p.id), Boot: inc.self.Boot, Life: found.Life + 1}
	j, err := journal.Begin(fs, journal.Options{}, id, found)
	if err != nil {
		return fmt.Errorf("%s: %w", p.journalPath(), err)
	}
	heir := found.Life > 0 && before.Boot == inc.self.Boot
	r.Resume(replica.Heritage{Config: found.Config, Life: id.Life, Heir: heir})
	if found.Life > 0 {
		args := []any{"partition", p.id.String(), "member", inc.self.ID, "heir", heir, "entries", found.Seq, "freed", found.Base, "bytes", found.Bytes, "seconds", time.Since(began).Seconds()}
		if c := found.Config; c != nil {
			args = append(args, "configuration", c.String())
		}
		if c := found.Cut; c != nil {
			args = append(args, "tornFile", c.File, "tornOffset", c.Offset, "tornBytes", c.Bytes)
		}
		p.log.Info("the journal is read", args...)
	}
	d := &partJournal{p: p, inc: inc, j: j, stats: &p.all.journals, max: p.cfg.Journal.MaxBytes, wake: make(chan struct{}, 1), ended: make(chan struct{}), next: &journal.Batch{}}
	d.durable.Store(found.Seq)
	d.stats.begun(p.id.String())
	d.count()
	inc.journal = d
	go d.run(inc.ctx)
	return nil
}

// take adds an action to the next batch; on the loop.
func (d *partJournal) take(a *replica.Action) {
	d.mu.Lock()
	switch a.Kind {
	case replica.ActionJournalEntries:
		d.next.Entries(a.Tail, a.Seq)
	case replica.ActionJournalConfig:
		d.next.Config(a.Config, a.Seq)
	case replica.ActionJournalState:
		d.parts = append(d.parts, *a.State)
	}
	d.base, _ = d.inc.store.Base()
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run writes until the incarnation ends, and then what it had added.
func (d *partJournal) run(ctx context.Context) {
	defer close(d.ended)
	spare := &journal.Batch{}
	for ending := false; ; {
		var again <-chan time.Time
		if d.now.Full { // other partitions, or an administrator, may have made room
			again = time.After(journalRetry)
		}
		select {
		case <-d.wake:
		case <-again:
			d.measure()
			d.report()
		case <-ctx.Done():
			ending = true
		}
		for {
			d.mu.Lock()
			b, parts, base := d.next, d.parts, d.base
			d.next, d.parts = spare, nil
			d.mu.Unlock()
			spare = b
			if b.Empty() && len(parts) == 0 {
				break
			}
			if err := d.commit(ctx, b, parts, base); err != nil {
				d.fail(err)
				return
			}
			b.Reset()
		}
		if ending {
			d.stats.begun(d.p.id.String())
			d.stats.bytes.Add(-d.bytes)
			_ = d.j.Close() // everything is synced
			return
		}
	}
}

// commit writes and syncs a batch. One that does not fit waits for room.
func (d *partJournal) commit(ctx context.Context, b *journal.Batch, parts []replica.JournalState, base uint64) error {
	var full *journal.ErrFull
	for !b.Empty() {
		err := d.j.Write(b)
		if err == nil {
			break
		}
		if !errors.As(err, &full) {
			return err
		}
		d.stats.room(d.p.id.String(), true)
		d.stats.failed(d.p.id.String(), err)
		d.p.log.Error("the journal is full; no order is acknowledged", "partition", d.p.id.String(), "reason", err, "retry", journalRetry.String())
		d.now.Full = true
		d.report()
		if !waitFor(ctx, journalRetry) {
			return err
		}
	}
	for i := range parts {
		done, err := d.j.State(&parts[i])
		if err != nil {
			return err
		}
		if done {
			d.now.Base = parts[i].Base
		}
	}
	began := time.Now()
	if err := d.j.Sync(); err != nil {
		return err
	}
	d.stats.observe(d.p.id.String(), time.Since(began))
	d.count()
	d.now.Seq, d.now.Configs = max(d.now.Seq, b.Seq()), max(d.now.Configs, b.Configs())
	d.measure()
	d.now.Wants = d.j.Frees(base)
	d.durable.Store(max(d.durable.Load(), d.now.Seq))
	d.report()
	return nil
}

// measure notes whether only the reserve is left.
func (d *partJournal) measure() {
	d.now.Full = d.max > 0 && d.stats.bytes.Load() > d.max-d.max/journalReserve
	d.stats.room(d.p.id.String(), d.now.Full)
}

// count updates the bytes of the files.
func (d *partJournal) count() {
	n := d.j.Bytes()
	d.stats.bytes.Add(n - d.bytes)
	d.bytes = n
}

// report tells the replica what is durable.
func (d *partJournal) report() {
	now := d.now
	d.post(func() { d.p.step(&replica.Event{Kind: replica.EventJournaled, Journaled: &now}) })
}

func (d *partJournal) post(f func()) {
	d.p.loop.Post(func() {
		if d.p.inc == d.inc && !d.p.ended {
			f()
		}
	})
}

// fail ends an incarnation whose journal cannot be written: what of the last batch is on
// the disk is unknown, and a second fsync could report success without it. The next one
// reads what is there.
func (d *partJournal) fail(err error) {
	d.stats.bytes.Add(-d.bytes)
	d.stats.failed(d.p.id.String(), err)
	_ = d.j.Close()
	if d.inc.ctx.Err() != nil {
		return
	}
	d.p.log.Error("the journal cannot be written; the copy starts again from what is durable", "partition", d.p.id.String(), "directory", d.p.journalPath(), "reason", err)
	d.post(func() {
		d.p.ended = true
		d.p.discard(journalFailed + ": " + err.Error())
	})
}

const journalFailed = "the journal cannot be written"

// endJournal ends the journal of a discarded incarnation, and reports whether it has ended:
// then the next one can have its files. Those of a log that counts for nothing any more are
// set aside.
func (p *partition) endJournal() (ended bool, err error) {
	d := p.inc.journal
	if d == nil {
		return true, nil
	}
	p.inc.cancel()
	select {
	case <-d.ended:
	default:
		return false, nil
	}
	p.noHeir = replica.KeepsLog(p.discardedFor)
	if p.noHeir || strings.HasPrefix(p.discardedFor, journalFailed) {
		return true, nil
	}
	return true, p.setAside(p.discardedFor)
}

// setAside moves the journal away, with the reason. It is never used again, nor removed.
func (p *partition) setAside(reason string) error {
	to, err := journal.SetAside(p.journalPath(), reason)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--journal: %w", err)
	}
	p.all.journals.aside.Add(1)
	p.log.Warn("a journal is set aside, and not used", "partition", p.id.String(), "directory", to, "reason", reason)
	return nil
}

// resumeOr resumes from the journal. A damaged one is set aside: anew reports that the
// replica has to be made again, with nothing.
func (p *partition) resumeOr(inc *incarnation, r *replica.Replica, fs journal.FS, id journal.Identity) (anew bool, err error) {
	err = p.resume(inc, r, fs, id)
	var damage *journal.DamageError
	if !errors.As(err, &damage) {
		return false, err
	}
	p.log.Error("the journal is refused", "partition", p.id.String(), "file", damage.File, "offset", damage.Offset, "entry", damage.Seq, "reason", err)
	return true, p.setAside(err.Error())
}

// toAll sends a frame to every node that is connected. The address that the record has of
// a member is that of its former pod, which may have another one now.
func (ps *peers) toAll(frame []byte) {
	for _, p := range ps.byAddr {
		if p.out != nil {
			p.out.conn.SetOut(append(p.out.conn.Out(), frame...))
		}
	}
}

// offers reports whether an action sends what an heir has.
func offers(head []byte) bool {
	return len(head) > wire.HeaderSize && wire.FrameType(head) == wire.TypeJoin && head[5]&wire.FlagHeir != 0
}
