package node

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// A node may keep a view of the orders of each partition that it holds, which questions are asked of. The loop fills it
// from the committed log, some entries at a time, after the output of a wake-up was written: an acknowledgement never
// waits for a view, the next order waits for one step of it at most. Rows are dropped before their entries are freed.

const (
	// viewStep entries are applied after a wake-up, viewStepMost while a view is far behind.
	viewStep     = 64
	viewStepMost = 1024
	viewDrop     = 1024 // rows are dropped at a time
	// sortBits of a sequence number count the rows of a part of the view that is sorted at once.
	sortBits = 16
)

// views are the views of all partitions. Of the data loop, but for granted.
type views struct {
	options view.Options // of each, without Log and Base
	backups bool         // a primary has none while another copy is in sync
	keep    int64        // ns that it keeps what it has
	each    int64        // bytes that each is given
	limit   int64        // for all of them
	granted atomic.Int64 // also given back on other goroutines
	pending []*partition // with work for their view, in turn
}

// newViews returns nil where none are configured. The options were checked.
func newViews(cfg *Config) *views {
	if cfg.Views == nil {
		return nil
	}
	each, _ := view.Bytes(cfg.Views.options())
	o := cfg.Views.options()
	o.Memory = each
	keep := cmp.Or(cfg.Views.handOver, viewHandOver)
	return &views{options: o, backups: cfg.Views.OnBackups, keep: int64(keep), each: each, limit: cfg.Views.Memory}
}

// partView is the view of one incarnation.
type partView struct {
	f      *view.Follower
	v      *view.View   // of f; nil until there is an entry for it, and while there is no memory
	log    *feed.Reader // holds the entries that v has rows for
	held   uint64
	queued bool        // in views.pending
	asked  []*question // that wait for an entry
	users  int         // goroutines that read v
	why    string      // there is none, or it ends before the log does; "" if it follows
	spare  int64       // Mono since which other copies are to have one in place of this; 0: this is to
}

// newPartView is called when an incarnation begins; nil without views.
func (vs *views) newPartView(f *feed.Feed) (*partView, error) {
	if vs == nil {
		return nil, nil
	}
	log, err := f.Reader("view")
	if err != nil {
		return nil, err
	}
	return &partView{log: log}, nil
}

// touch has the partition's view looked at after this wake-up.
func (vs *views) touch(p *partition) {
	if w := p.inc.view; !w.queued {
		w.queued = true
		vs.pending = append(vs.pending, p)
	}
}

// step does a bounded part of what is to be done, and reports whether some is left.
func (vs *views) step() (again bool) {
	n := len(vs.pending)
	for i, left := 0, viewStep; i < n && left > 0; i++ {
		p := vs.pending[i]
		vs.pending[i] = nil
		again = true
		if w := p.inc.view; !p.closed && w.queued {
			work, more := vs.follow(p, w)
			if w.queued = more; more {
				vs.pending = append(vs.pending, p)
			}
			left -= work
		}
		if i == n-1 || left <= 0 {
			vs.pending = vs.pending[:copy(vs.pending, vs.pending[i+1:])]
		}
	}
	return again && len(vs.pending) > 0
}

// follow lets one view go on, and returns what that was in entries applied.
func (vs *views) follow(p *partition, w *partView) (work int, more bool) {
	if !vs.wants(p, w) {
		if w.v != nil && w.users == 0 {
			vs.leave(p, w)
		}
		return 1, false
	}
	if base, _ := p.store.Base(); w.v == nil && (p.store.Committed() <= base || !vs.open(p, w)) {
		return 1, false
	}
	work, more = vs.drop(p, w)
	if w.v == nil {
		return work, more
	}
	next := w.v.Applied() + 1
	n, behind, err := w.f.Apply(viewStep, viewStepMost)
	if err != nil {
		w.why = err.Error()
		p.log.Warn("a view ends before the log does: questions about later orders are refused", "partition", p.id.String(), "reason", err)
	}
	if n > 0 {
		if next>>sortBits != (w.v.Applied()+1)>>sortBits {
			p.sortRuns(w)
		}
		w.answer()
		w.hold()
	}
	return work + n, more || behind
}

// wants reports whether this copy is to have a view, now or still.
func (vs *views) wants(p *partition, w *partView) bool {
	c := p.status.Config
	if !vs.backups || p.status.Role != replica.RolePrimary || c == nil || len(c.InSync) < 2 {
		w.spare = 0
		return true
	}
	now := p.loop.Clock().Mono()
	if w.spare == 0 {
		w.spare = now
	}
	return w.v != nil && now-w.spare < vs.keep
}

// leave gives a view up whose rows other copies have. Its memory goes back on another goroutine: that takes milliseconds.
func (vs *views) leave(p *partition, w *partView) {
	v := w.v
	w.f, w.v, w.held, w.why = nil, nil, 0, ""
	w.log.Hold(0)
	p.inc.wg.Go(func() {
		v.Close()
		vs.granted.Add(-vs.each)
	})
}

// sortRuns makes the sorted runs of what is complete, on another goroutine.
func (p *partition) sortRuns(w *partView) {
	w.users++
	ctx, v := p.inc.ctx, w.v
	p.inc.wg.Go(func() {
		for ctx.Err() == nil && v.Sort() {
		}
		p.loop.Post(func() { w.users-- })
	})
}

// open makes the view, from the first entry that the log has.
func (vs *views) open(p *partition, w *partView) bool {
	if vs.granted.Add(vs.each) > vs.limit {
		vs.granted.Add(-vs.each)
		w.why = fmt.Sprintf("a view takes %d bytes, and those of other partitions have all but %d of the %d of --views", vs.each, vs.limit-vs.granted.Load(), vs.limit)
		return false
	}
	f, err := view.Follow(p.store, vs.options)
	if err != nil {
		vs.granted.Add(-vs.each)
		w.why = err.Error()
		return false
	}
	w.f, w.v, w.why = f, f.View, ""
	w.hold()
	return true
}

// drop drops rows whose entries are to be freed. A view that was full begins anew when all its rows are gone.
func (vs *views) drop(p *partition, w *partView) (work int, more bool) {
	work, more = w.f.Drop(p.replica.MayFree(), viewDrop)
	if w.users == 0 && w.f.Over() {
		w.close(vs)
		return work, true
	}
	w.hold()
	return work, more
}

// hold keeps the entries that the view, or a question to it, may read.
func (w *partView) hold() {
	if first := w.f.Holds(); first != w.held {
		w.held = first
		w.log.Hold(first)
	}
}

// close gives the memory back. No question is being answered.
func (w *partView) close(vs *views) {
	if w == nil || w.v == nil {
		return
	}
	w.v.Close()
	w.f, w.v, w.held = nil, nil, 0
	w.log.Hold(0)
	vs.granted.Add(-vs.each)
}

// status is what /status says of the view; nil without one, and where other copies have it.
func (w *partView) status(committed uint64) *nodestatus.View {
	if w == nil || w.v == nil && w.spare != 0 {
		return nil
	}
	s := &nodestatus.View{Lag: committed, Error: w.why}
	if w.v != nil {
		s.AppliedSeq, s.DroppedSeq, s.Bytes = w.v.Applied(), w.v.Base(), w.v.Used()
		s.Lag = committed - min(committed, s.AppliedSeq)
	}
	return s
}

// viewsKept is what /memory says of the views here; on the loop.
func (ps *partitions) viewsKept() (all []nodestatus.PartitionView) {
	for _, p := range ps.list {
		if p.inc.view == nil || !p.answers() {
			continue
		}
		v := nodestatus.PartitionView{Partition: p.id.String()}
		if s := p.inc.view.status(p.store.Committed()); s != nil {
			v.Kept, v.Lag, v.Error = true, s.Lag, s.Error
		}
		all = append(all, v)
	}
	return all
}
