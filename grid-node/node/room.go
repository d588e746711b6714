package node

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const (
	roomEvery   = int64(time.Second)      // between two samples
	roomWindow  = 30                      // samples that a rate is taken over
	roomMinimum = 5                       // samples before a rate is reported
	refusedLong = int64(10 * time.Second) // without a rejection before orders are reported as accepted again
	roomLog     = int64(time.Minute)      // between two lines about refusals
)

// room tracks the memory left for orders, once a second on the data loop. The node itself
// computes the time until full, so that status, kubectl, dashboards and alerts agree.
type room struct {
	*process
	parts *partitions

	at, held [roomWindow]int64 // ring: Mono, and bytes that stay
	n        int               // samples taken

	refused   uint64 // refusals for want of memory, of all incarnations
	refusedAt int64  // Mono of the last sample that saw one
	full      bool
	loggedAt  int64
	logged    uint64 // refusals when the last line was written
}

// tick takes a sample when one is due.
func (r *room) tick(now int64) {
	if r.n > 0 && now-r.at[(r.n-1)%roomWindow] < roomEvery {
		return
	}
	held, _ := r.use()
	r.at[r.n%roomWindow], r.held[r.n%roomWindow] = now, held
	r.n++
	r.watchRefusals(now)
}

// watchRefusals detects whether orders are rejected for lack of memory, and logs the
// beginning and the end.
func (r *room) watchRefusals(now int64) {
	budget := r.parts.budget
	before, short := r.refused, false
	for _, p := range r.parts.list {
		refused := p.replica.Counters().Rejects[wire.CodeCapacity]
		if refused < p.refused { // another incarnation
			p.refused = 0
		}
		r.refused += refused - p.refused
		p.refused = refused
		short = short || p.store.Short()
	}
	refusing := r.refused > before
	if refusing {
		r.refusedAt = now
	}
	left := budget.RefuseAt() - budget.Used()
	switch {
	case refusing || short:
		begins := !r.full
		r.full = true
		if begins || refusing && now-r.loggedAt >= roomLog {
			r.log.Warn("orders are refused: the memory for orders is full", "refused", r.refused-r.logged, "usedBytes", budget.Used(),
				"limitBytes", budget.Limit(), "retention", r.cfg.Retention, "todo", r.cfg.capacityAdvice())
			r.loggedAt, r.logged = now, r.refused
		}
	case r.full && now-r.refusedAt >= refusedLong && left > budget.Limit()/64:
		r.full = false
		r.log.Info("orders are accepted again: there is memory for them", "refused", r.refused-r.logged, "usedBytes", budget.Used(), "limitBytes", budget.Limit())
		r.logged = r.refused
	}
}

// use returns how much memory stays whatever is freed, and how much may be freed, in
// bytes.
func (r *room) use() (stays, freeable int64) {
	used := r.parts.budget.Used()
	if r.cfg.Retention != RetentionFreeDownstream {
		return used, 0
	}
	var log, free int64
	for _, p := range r.parts.list {
		s := p.replica.Status()
		last, _ := p.store.Last()
		base, _ := p.store.Base()
		log += int64(p.store.Bytes(base+1, last))
		free += int64(p.store.Bytes(base+1, min(p.sinkPosition(), s.CommitSeq)))
	}
	if log == 0 {
		return used, 0
	}
	// Indexes shrink and grow with the entries. Freed memory returns in blocks: computed
	// from the log and not from the use, the rate has no saw-teeth of that size.
	share := min(max(float64(used)/float64(log), 1), 2)
	return int64(share * float64(log-free)), int64(share * float64(free))
}

// growth returns the recent growth of memory that stays, in bytes per second. A rise
// within the noise is none.
func (r *room) growth(noise int64) float64 {
	if r.n < roomMinimum {
		return 0
	}
	last := (r.n - 1) % roomWindow
	first := 0
	if r.n > roomWindow {
		first = r.n % roomWindow
	}
	if r.held[last]-r.held[first] <= noise {
		return 0
	}
	return float64(r.held[last]-r.held[first]) / (float64(r.at[last]-r.at[first]) * 1e-9)
}

// memory returns the node's memory for orders for its status. On the loop.
func (r *room) memory() nodestatus.Memory {
	budget := r.parts.budget
	stays, freeable := r.use()
	noise := int64(0)
	if r.cfg.Retention == RetentionFreeDownstream { // entries on their way to the sink fluctuate
		noise = max(budget.RefuseAt()/100, 4<<20)
	}
	m := nodestatus.Memory{Grid: r.cfg.Grid, Pod: r.cfg.Pod, BootID: wire.FormatBootID(r.boot), UsedBytes: budget.Used(), LimitBytes: budget.Limit(),
		RefuseBytes: budget.RefuseAt(), FreeableBytes: freeable, GrowthBytesPerSecond: r.growth(noise), Full: r.full, Refused: r.refused}
	m.Sinks, m.Readers = r.parts.sinksWaited()
	m.Views = r.parts.viewsKept()
	m.Execution = r.parts.executions()
	m.Posts = r.parts.postPage()
	m.Limits = r.parts.limitsInForce()
	m.Regions = r.parts.regionsLoaded()
	m.Journal = r.parts.journalStatus()
	left := m.RefuseBytes - m.UsedBytes
	if r.cfg.Retention == RetentionFreeDownstream {
		left = m.RefuseBytes - stays
	}
	switch {
	case m.Full:
		zero := 0.0
		m.SecondsUntilFull = &zero
	case m.GrowthBytesPerSecond > 0 && m.LimitBytes > 0:
		s := max(0, float64(left)) / m.GrowthBytesPerSecond
		m.SecondsUntilFull = &s
	}
	return m
}

// capacityAdvice returns what can be done about a full node, by its retention.
func (c *Config) capacityAdvice() string {
	switch {
	case c.Retention == RetentionFreeDownstream:
		return "only what every sink holds is freed: see which one lags, or raise spec.memory"
	case c.readable() != "":
		return "spec.retention.policy KeepAll frees nothing: set FreeDownstream, which needs a sink on a PersistentVolumeClaim, or raise spec.memory"
	}
	return "spec.retention.policy KeepAll without spec.sinks frees nothing: raise spec.memory, or begin a grid with a sink"
}
