package desk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// line is a partition with the sessions whose home it is.
type line struct {
	d  *Desk
	id wire.PartitionID

	road     *road // nil: there is no connection
	dialling bool
	failures int
	dialAt   int64 // Mono
	lost     string
	looking  bool
	heardAt  int64 // Mono; when an answer came, or the connection

	epoch    uint64 // the highest that is known: a node that was replaced does not take it for its own
	request  uint64
	doors    map[uint32]*door // open ones, by slot
	asking   map[uint64]*door // whose FixOpen, FixStep of a refusal or FixResend is not answered, by request
	dirty    []*door
	spare    []*door
	out      []byte
	records  []wire.FixStepRecord
	stepping []*door // of records
}

func newLine(d *Desk, id wire.PartitionID) *line {
	return &line{d: d, id: id, doors: map[uint32]*door{}, asking: map[uint64]*door{}}
}

// next returns a new request id.
func (l *line) next() uint64 {
	l.request++
	return l.request
}

// mark has a door looked at at the end of the wake-up.
func (l *line) mark(x *door) {
	if !x.marked {
		x.marked = true
		l.dirty = append(l.dirty, x)
	}
}

// flush asks for what the doors want, as far as the connection takes it.
func (l *line) flush(now fix.Now) {
	if l.road == nil {
		if len(l.dirty) > 0 && !l.dialling && now.Mono >= l.dialAt && l.d.ctx.Err() == nil {
			l.drive(l.lost)
		}
		return
	}
	if !l.full() {
		l.ask(now)
	}
	if len(l.out) > 0 {
		l.road.send(l.out)
		l.out = l.out[:0]
	}
}

// ask asks for what the doors want.
func (l *line) ask(now fix.Now) {
	dirty := l.dirty
	l.dirty = l.spare[:0]
	for i, x := range dirty {
		dirty[i], x.marked = nil, false
		if l.full() || !x.flush(now) {
			l.mark(x)
		}
	}
	l.spare = dirty[:0]
	l.step()
}

// step asks for the numbers of administrative messages, of all sessions with one frame.
func (l *line) step() {
	if len(l.records) == 0 {
		return
	}
	slices.SortFunc(l.records, func(a, b wire.FixStepRecord) int { return cmp.Compare(a.Slot, b.Slot) })
	for part := range slices.Chunk(l.records, wire.MaxFixRecords) {
		id := l.next()
		for i := range part {
			l.doors[part[i].Slot].step = id
		}
		l.out = wire.AppendFixStep(l.out, l.id, &wire.FixStep{ReqID: id, Epoch: l.epoch, Records: part})
	}
	l.records = l.records[:0]
}

// full reports whether the node has not read so much that more has to wait.
func (l *line) full() bool { return l.road.c.Buffered()+len(l.out) > roadFull }

// up is the begin of a connection.
func (l *line) up(now fix.Now, r *road) {
	l.road, l.dialling, l.failures, l.lost, l.heardAt = r, false, 0, "", now.Mono
	l.epoch = max(l.epoch, l.d.cfg.Client.Table()[l.id].Epoch)
}

// redialLongest is the longest pause between two attempts to connect.
const redialLongest = int64(500e6)

// notUp is an attempt to connect that failed.
func (l *line) notUp(now fix.Now, err error) {
	l.dialling, l.lost = false, ""
	pause := min(int64(10e6)<<min(l.failures, 10), redialLongest)
	if l.failures++; l.failures == 4 {
		l.d.cfg.Logger.Warn("the grid cannot be reached for FIX sessions; the next attempts are not reported", "partition", l.id.String(), "error", err.Error())
	}
	l.dialAt = now.Mono + pause
}

// down is the end of a connection.
func (l *line) down(now fix.Now, r *road, err error) {
	if l.road != r {
		return
	}
	r.c.Close(err)
	l.road, l.dialAt, l.lost, l.out = nil, now.Mono, r.address, l.out[:0]
	l.d.cfg.Logger.Info("connection for FIX sessions lost", "partition", l.id.String(), "node", l.lost, "reason", fmt.Sprint(err), "sessions", len(l.doors))
	for _, x := range l.doors {
		x.cut()
		l.mark(x)
	}
	for _, x := range l.asking {
		x.request = 0
		if x.state == opening {
			l.mark(x)
		}
	}
	clear(l.asking)
}

// overdue is how long a primary may owe all answers before the grid is asked who it is.
const overdue = int64(250e6)

// look finds out whether a primary that owes answers is one still, and ends sessions of
// yesterday.
func (l *line) look(now fix.Now) {
	waits, today := false, dayOf(now.Wall)
	for _, x := range l.doors {
		waits = waits || x.waits()
		x.lookNamed(now)
		if x.state == open && x.day < today {
			x.f.Logout(now, "the day of this session has ended, in UTC; log on again")
		}
	}
	if l.road == nil || l.looking || !waits || now.Mono-l.heardAt < overdue {
		return
	}
	l.looking = true
	r := l.road
	l.d.roads.Go(func() {
		ctx, cancel := context.WithTimeout(l.d.ctx, time.Second)
		defer cancel()
		_ = l.d.cfg.Client.Refresh(ctx) // of a failure nothing follows
		moved := l.d.cfg.Client.Table()[l.id].Primary.Address != r.address
		l.d.cfg.Server.Post(func(now fix.Now) {
			if l.looking = false; moved {
				l.down(now, r, fmt.Errorf("%s is not the primary any more", r.address))
			}
		})
	})
}

// probed asks a counterparty whether it is there.
func (l *line) probed(now fix.Now, frame []byte) error {
	var m wire.FixProbe
	if err := wire.DecodeFixProbe(frame, &m); err != nil {
		return err
	}
	if x := l.doors[m.Slot]; x != nil && x.attempt == m.Attempt && x.state == open {
		x.f.Probe(now)
		return nil
	}
	l.out = wire.AppendFixHere(l.out, l.id, &wire.FixHere{Slot: m.Slot, Attempt: m.Attempt})
	return nil
}

func dayOf(wallNs int64) uint32 { return uint32(max(wallNs, 0) / (24 * 3600 * 1e9)) }
