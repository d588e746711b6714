package client

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// NearCacheOptions bound a NearCache.
type NearCacheOptions struct {
	// MaxBytes of memory: a value counts with twice its key and 256 bytes, which is about what it takes. 64 MiB when 0.
	// Each partition has its part. The values that were read longest ago go first.
	MaxBytes int64
	// MaxAge is how old an answer may be: it has every change that was acknowledged this long before the call, or earlier.
	// 1 s when 0, at least 10 ms.
	MaxAge time.Duration
}

// NearCache keeps values of a region that were read. It follows the log of each partition that is read, whole, and drops
// what is changed there. An answer from it is at most MaxAge old: whenever that cannot be shown, because a follower is
// behind, a primary is lost or the network is slow, the value is read from the grid. It is safe for concurrent use.
type NearCache struct {
	r     *Region
	o     NearCacheOptions
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup
	parts []nearPart
}

// NearStats are counters of a NearCache.
type NearStats struct {
	Hits        uint64 // answered from memory
	Misses      uint64 // read from the grid, as the key was not kept
	Stale       uint64 // read from the grid, as the age of what is kept could not be shown
	Invalidated uint64 // values dropped since they were changed
	Evicted     uint64 // values dropped for want of room
	Restarts    uint64 // times that everything of a partition was dropped, and it was followed anew
	Entries     int
	Bytes       int64
}

// NearCache makes a cache of the region. Its client needs the permissions Read and Watch. Close it.
func (r *Region) NearCache(o NearCacheOptions) (*NearCache, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.MaxAge == 0 {
		o.MaxAge = time.Second
	}
	switch {
	case o.MaxBytes < 0:
		return nil, fmt.Errorf("client: NearCacheOptions.MaxBytes is %d, allowed: 1 or more, 0 for 64 MiB", o.MaxBytes)
	case o.MaxAge < 10*time.Millisecond:
		return nil, fmt.Errorf("client: NearCacheOptions.MaxAge is %v, allowed: 10ms or more, 0 for 1s", o.MaxAge)
	}
	if err := r.check([]byte{0}, nil); err != nil {
		return nil, err
	}
	n := &NearCache{r: r, o: o, parts: make([]nearPart, len(r.c.Table()))}
	n.ctx, n.stop = context.WithCancel(r.c.ctx)
	for i := range n.parts {
		p := &n.parts[i]
		p.n, p.id, p.wake, p.reads = n, wire.PartitionID(i), make(chan struct{}, 1), map[string]*nearRead{}
		p.kept.init(o.MaxBytes / int64(len(n.parts)))
	}
	return n, nil
}

// Close ends the followers. Later calls read from the grid.
func (n *NearCache) Close() error {
	for i := range n.parts {
		p := &n.parts[i]
		p.mu.Lock()
		p.started = true // no other is started
		p.mu.Unlock()
	}
	n.stop()
	n.work.Wait()
	return nil
}

// Get is Region.Get, answered from memory where that is at most MaxAge old. Key and value of the Entry are not to be
// changed. Its CommitSeq is that of the read that kept it.
func (n *NearCache) Get(ctx context.Context, key []byte) (Entry, error) {
	if err := n.r.check(key, nil); err != nil {
		return Entry{}, err
	}
	p := &n.parts[n.r.c.RouteClOrdID(key)]
	e, read := p.get(key)
	if read == nil {
		return e, nil
	}
	e, err := n.r.Get(ctx, key)
	e.Key = bytes.Clone(key)
	p.keep(read, &e)
	return e, err
}

// Stats are the counters so far, and what is kept now.
func (n *NearCache) Stats() NearStats {
	var sum NearStats
	for i := range n.parts {
		p := &n.parts[i]
		p.mu.Lock()
		s := p.stats
		s.Entries, s.Bytes = len(p.kept.by), p.kept.bytes
		p.mu.Unlock()
		sum.Hits, sum.Misses, sum.Stale, sum.Invalidated = sum.Hits+s.Hits, sum.Misses+s.Misses, sum.Stale+s.Stale, sum.Invalidated+s.Invalidated
		sum.Evicted, sum.Restarts, sum.Entries, sum.Bytes = sum.Evicted+s.Evicted, sum.Restarts+s.Restarts, sum.Entries+s.Entries, sum.Bytes+s.Bytes
	}
	return sum
}

// nearPart is what is kept of a partition.
type nearPart struct {
	n    *NearCache
	id   wire.PartitionID
	wake chan struct{} // a call asks for an age to be shown

	mu        sync.Mutex
	started   bool
	following bool   // the log is followed; otherwise nothing is kept
	life      uint64 // which following of the log it is, or was the last; what was read in another one is not kept
	through   uint64 // changes up to this entry are dropped
	lineage   uint32 // of the log that is followed
	logNs     int64  // time of the log: what expires by it is gone
	asOf      int64  // what is kept has all changes that were acknowledged before this, nanotime; 0: not known
	proofs    []proof
	cleared   uint64               // the last entry that dropped everything
	reads     map[string]*nearRead // by key: those under way, of this following
	kept      nearList
	stats     NearStats
}

// nearRead are reads of a key that are under way.
type nearRead struct {
	life    uint64
	calls   int
	changed uint64 // the last entry that changed the key meanwhile
}

// notKept is a read while nothing is followed: of no following.
var notKept nearRead

// proof is the answer of a primary: when the follower of a log of its lineage has come to seq, what is kept is as of at.
type proof struct {
	seq     uint64
	lineage uint32 // of the primary's log; where the table has gone on since, a later one
	at      int64
}

// get returns what is kept of a key, if its age can be shown, otherwise a read that has to be made, and ended by keep.
func (p *nearPart) get(key []byte) (Entry, *nearRead) {
	now := nanotime()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		p.started = true
		p.n.work.Go(p.run)
	}
	age := now - p.asOf
	if p.asOf == 0 || age > int64(p.n.o.MaxAge)/4 {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	e := p.kept.find(key)
	switch {
	case e == nil || !e.Expires.IsZero() && e.Expires.UnixNano() <= p.logNs:
		p.stats.Misses++
	case p.asOf == 0 || age > int64(p.n.o.MaxAge):
		p.stats.Stale++
	default:
		p.stats.Hits++
		return e.Entry, nil
	}
	if !p.following {
		return Entry{}, &notKept
	}
	read := p.reads[string(key)]
	if read == nil {
		read = &nearRead{life: p.life}
		p.reads[string(key)] = read
	}
	read.calls++
	return Entry{}, read
}

// keep ends a read, and keeps what it found; version 0: nothing. An answer has all changes up to its CommitSeq, and may
// have later ones, up to its version. A change behind both that the follower has passed is not in it: then it is too old.
func (p *nearPart) keep(read *nearRead, e *Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.following || read.life != p.life {
		return
	}
	if read.calls--; read.calls == 0 {
		delete(p.reads, string(e.Key))
	}
	if has := max(e.CommitSeq, e.Version); e.Version == 0 || read.changed > has || p.cleared > has {
		return
	}
	if old := p.kept.find(e.Key); old != nil && old.Version > e.Version {
		return // a later read was faster
	}
	p.stats.Evicted += p.kept.put(*e)
}

// run follows the partition until the cache is closed. After an error that following cannot get over it begins anew.
func (p *nearPart) run() {
	var back backoff
	for back.wait(p.n.ctx.Done(), time.Second) {
		if p.follow() {
			back = backoff{}
		}
		p.ends()
	}
}

// begins is called with the first part of a log: what is read from now on is kept, with what is dropped behind that part.
func (p *nearPart) begins(at Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.following = true
	p.life++
	p.through, p.lineage, p.asOf = at.Seq, at.Lineage, nanotime()
}

// ends is called when changes are not followed any more.
func (p *nearPart) ends() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.following = false
	p.through, p.lineage, p.logNs, p.asOf, p.proofs, p.cleared = 0, 0, 0, 0, nil, 0
	p.stats.Invalidated += uint64(len(p.kept.by))
	p.stats.Restarts++
	p.kept.clear()
	clear(p.reads)
}

// follow begins behind what is committed, and reports whether the log was followed at all. It ends when the loss of data
// was accepted, too: entries that it has passed may be other ones now.
func (p *nearPart) follow() (followed bool) {
	ctx, end := context.WithCancel(p.n.ctx)
	defer end()
	f, err := p.n.r.c.Follow(ctx, FollowOptions{Partition: p.id, AtEnd: true})
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it never fails
	for lineage := uint32(0); ; followed = true {
		b, err := f.Next(ctx)
		if err == nil && followed && b.Through.Lineage != lineage {
			err = fmt.Errorf("the log is of lineage %d, was of %d", b.Through.Lineage, lineage)
		}
		if err != nil {
			p.n.r.c.cfg.Logger.Info("near cache follows anew", "region", p.n.r.name, "partition", p.id.String(), "reason", err)
			return followed
		}
		if !followed {
			lineage = b.Through.Lineage
			p.begins(b.Through)
			p.n.work.Go(func() { p.prove(ctx) })
		}
		p.apply(b)
	}
}

// ask asks the primary what is committed, by a read of a key.
func (p *nearPart) ask(ctx context.Context) (proof, error) {
	at := nanotime()
	m, err := p.n.r.got(ctx, p.id, []byte{0}, Confirmed)
	if err != nil {
		return proof{}, err
	}
	if m.Epoch > p.n.r.c.epochOf(p.id) {
		p.n.r.c.refresh(ctx, p.id, "") //nolint:errcheck // the table shows it
	}
	info, _ := p.n.r.c.partition(p.id)
	if m.Epoch > info.Epoch {
		return proof{}, fmt.Errorf("the answer is of epoch %d, the table of %d", m.Epoch, info.Epoch)
	}
	return proof{m.CommitSeq, info.Lineage, at}, nil
}

// prove shows how old what is kept is, as long as it is read. After an answer, and after none, it pauses.
func (p *nearPart) prove(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		if at, err := p.ask(ctx); err == nil {
			p.proven(ctx, at)
		}
		if !sleep(p.n.o.MaxAge/8, ctx.Done(), nil, nil) {
			return
		}
	}
}

// proven takes a proof in, if it is of the log that is followed until ctx ends.
func (p *nearPart) proven(ctx context.Context, at proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ctx.Err() != nil || at.lineage != p.lineage:
	case p.through >= at.seq:
		p.asOf = max(p.asOf, at.at)
	case len(p.proofs) < maxProofs:
		p.proofs = append(p.proofs, at)
	}
}

// maxProofs wait for the follower: with more of them it is so far behind that what is kept is too old.
const maxProofs = 16

// apply drops what a part of the log changed.
func (p *nearPart) apply(b *FollowBatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Kind == order.KindRegion {
			p.change(e)
		}
	}
	p.through = b.Through.Seq
	for len(p.proofs) > 0 && p.proofs[0].seq <= p.through {
		p.asOf = max(p.asOf, p.proofs[0].at)
		p.proofs = p.proofs[1:]
	}
}

// changeKey drops what there is of a key that an entry changes.
func (p *nearPart) changeKey(key []byte, seq uint64) {
	if read := p.reads[string(key)]; read != nil {
		read.changed = seq
	}
	if old := p.kept.find(key); old != nil && old.Version < seq {
		p.kept.drop(old)
		p.stats.Invalidated++
	}
}

// change drops what an entry changes. Regions have numbers in the log, which clients do not know: a key of another region
// drops that of this one.
func (p *nearPart) change(e *LogEntry) {
	p.logNs = max(p.logNs, e.TimeNs)
	switch o := order.RegionOf(order.Payload(e.Bytes)); o.Op {
	case order.RegionConfig, order.RegionDefine, order.RegionTick, order.RegionKeep:
	case order.RegionPut, order.RegionPatch, order.RegionRemove, order.RegionTake, order.RegionPutAll, order.RegionPatchAll, order.RegionRemoveAll:
		o.Each(func(one *order.RegionOp) { p.changeKey(one.Key, e.Seq) })
	default: // a clear, or what a later release has
		p.stats.Invalidated += uint64(len(p.kept.by))
		p.kept.clear()
		p.cleared = e.Seq
	}
}
