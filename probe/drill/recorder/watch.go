package recorder

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// Polling intervals of the grid's roles: during a step, and otherwise.
const (
	pollStep = 20 * time.Millisecond
	pollCalm = 100 * time.Millisecond
	askLimit = 2 * time.Second
)

// row is a partition as reported by the nodes.
type row = client.PartitionInfo

// view is the last report of the grid.
type view struct {
	rows     []row
	since    int64                    // redundant since; 0: it is not
	missing  string                   // what redundancy lacks
	degraded map[wire.PartitionID]int // index in h.Degraded of the present period
}

// watchTable polls the grid until ctx ends.
func (r *Recorder) watchTable(ctx context.Context) {
	for ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, askLimit)
		err := r.watch.Refresh(ask)
		cancel()
		if ctx.Err() != nil {
			return
		}
		rows := r.watch.Table()
		r.see(rows, err)
		for _, row := range rows {
			for _, m := range row.Members {
				r.traffic.Watch(history.Node{Pod: podOf(m.ID), Address: m.Address})
			}
		}
		pause := pollCalm
		if r.underWay() {
			pause = pollStep
		}
		_ = clock.Wait(ctx, pause)
	}
}

// see handles a report of the grid; err: there was none.
func (r *Recorder) see(rows []row, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock.Now()
	v := &r.view
	if err != nil {
		v.since, v.missing = 0, "no node reports roles: "+err.Error()
		r.each(func(s *step) { s.lacks(v.missing) })
		return
	}
	v.rows, v.missing = rows, lacks(rows, r.parts, r.cfg.Replicas, nil)
	switch {
	case v.missing != "":
		v.since = 0
	case v.since == 0:
		v.since = now
	}
	r.noteDegraded(now)
	r.each(func(s *step) {
		if missing := lacks(rows, r.parts, r.cfg.Replicas, s.gone); missing != "" {
			s.lacks(missing)
		} else if s.since == 0 {
			s.since, s.missing = now, ""
		}
		s.look(r, now)
	})
}

// noteDegraded records the times in which the grid reports that a partition has too few copies.
func (r *Recorder) noteDegraded(now int64) {
	if r.view.degraded == nil {
		r.view.degraded = map[wire.PartitionID]int{}
	}
	for _, row := range r.view.rows {
		n := inSync(row)
		i, on := r.view.degraded[row.ID]
		switch {
		case n >= r.cfg.Replicas && on:
			r.h.Degraded[i].To = now
			delete(r.view.degraded, row.ID)
		case n >= r.cfg.Replicas:
		case on:
			r.h.Degraded[i].Copies = min(r.h.Degraded[i].Copies, n)
		case len(r.h.Degraded) < maxDegraded:
			r.view.degraded[row.ID] = len(r.h.Degraded)
			r.h.Degraded = append(r.h.Degraded, history.Degraded{Partition: row.ID, Span: history.Span{From: now}, Copies: n})
		}
	}
}

// maxDegraded bounds the record of a grid that never becomes stable.
const maxDegraded = 1 << 18

func inSync(r row) (n int) {
	for _, m := range r.Members {
		if m.InSync {
			n++
		}
	}
	return n
}

func podOf(member string) string {
	pod, _, err := wire.ParseMemberID(member)
	if err != nil {
		return ""
	}
	return pod
}

// lacks returns what redundancy lacks: every partition has a primary and all its copies in sync,
// none of them one of gone. "" is nothing.
func lacks(rows []row, parts []wire.PartitionID, replicas int, gone map[string]bool) string {
	if len(rows) < len(parts) {
		return fmt.Sprintf("%d of %d partitions are known", len(rows), len(parts))
	}
	for _, r := range rows {
		if n := inSync(r); n < replicas || r.Primary.ID == "" {
			return fmt.Sprintf("%s has %d of %d copies in sync at epoch %d, primary %q", r.ID, n, replicas, r.Epoch, r.Primary.ID)
		}
		for _, m := range r.Members {
			if m.InSync && gone[m.ID] {
				return fmt.Sprintf("%s still counts on %s", r.ID, m.ID)
			}
		}
	}
	return ""
}

// gaps are the longest times without an acknowledgement, second by second.
type gaps struct {
	ring [10]time.Duration
	next int
	last int64 // when a gap was last longer than the limit
}

func (g *gaps) worst() (worst time.Duration) {
	for _, d := range g.ring {
		worst = max(worst, d)
	}
	return worst
}

// watchGaps checks the longest gap every second.
func (r *Recorder) watchGaps(ctx context.Context) {
	for r.traffic.Served(r.probed()) == 0 { // every session must have begun
		if clock.Wait(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
	r.mu.Lock()
	r.gaps.last = clock.Now()
	r.mu.Unlock()
	r.traffic.ResetGap()
	latencies := r.traffic.Latencies()
	for clock.Wait(ctx, time.Second) == nil {
		gap, now := r.traffic.Gap(r.parts), clock.Now()
		after := r.traffic.Latencies()
		r.mu.Lock()
		r.gaps.ring[r.gaps.next] = gap
		r.gaps.next = (r.gaps.next + 1) % len(r.gaps.ring)
		if gap > r.cfg.GapLimit {
			r.gaps.last = now
		}
		r.closeOutages(now)
		r.recent.add(after.Since(&latencies))
		r.mu.Unlock()
		latencies = after
		r.traffic.ResetGap()
	}
}

// probed are the partitions with a probe.
func (r *Recorder) probed() []wire.PartitionID { return r.parts[:min(len(r.parts), r.cfg.Probes)] }
