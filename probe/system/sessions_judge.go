package system

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/ledger"
	"github.com/ordergrid/ordergrid/probe/load"
)

// sessionsShape judges that more users cost neither orders nor time, and little memory.
func sessionsShape(r *Report, p sessionsPlan, all []*crowded) {
	few, many := all[0], all[len(all)-1]
	if many.fast.PerS < minSessionsTPS*few.fast.PerS {
		r.judge(Fail, "%.0f orders/s of %d users, %.0f of %d, allowed: %.2f of it or more", many.fast.PerS, many.users, few.fast.PerS, few.users, minSessionsTPS)
	}
	if kib := furtherKiB(few, many); kib > maxSessionKiB {
		r.judge(Fail, "a further session takes %.1f KiB of its gateway, from %d to %d users, allowed: %d", kib, few.users, many.users, maxSessionKiB)
	}
	for _, c := range all {
		switch {
		case c.rate.Late > maxLate && c.rate.Busy > maxReader:
			r.judge(Invalid, "%d users: a thread of the users used %.0f %% of its core, allowed: %.0f; orders were sent up to %v late", c.users, 100*c.rate.Busy, 100*maxReader, c.rate.Late)
		case at(c.rate.Took, 0.99) > maxSessionsP99:
			r.judge(Fail, "%d users at %d orders/s: p99 %v ms, allowed: %v", c.users, p.rate, ms(at(c.rate.Took, 0.99)), maxSessionsP99)
		}
		if c.rate.PerS < minTarget*float64(p.rate) {
			r.judge(Fail, "%d users: %.0f orders/s reported of %d, allowed: %.1f of it or more", c.users, c.rate.PerS, p.rate, minTarget)
		}
	}
}

// judge holds the reports against both copies of each log. The control is a check that is not given one of the orders,
// and is given another one twice.
func (x *crowd) judge(ctx context.Context, r *Report) error {
	if err := x.c.Refresh(ctx); err != nil {
		return err
	}
	flows := map[wire.PartitionID][]fixdoor.Flow{}
	for _, f := range x.users.Flows() {
		if len(f.Orders) > 0 {
			flows[f.Partition] = append(flows[f.Partition], f)
		}
	}
	checked, copies := 0, 0
	for p, list := range flows {
		last := uint64(0)
		for _, f := range list {
			for i := range f.Orders {
				if f.Orders[i].Fate != load.Acked {
					return fmt.Errorf("order %d of partition %s has no report", i, p)
				}
				last = max(last, f.Orders[i].Seq)
			}
		}
		all := x.c.Copies(p)
		if len(all) != 2 {
			r.judge(Invalid, "partition %s has %d copies in sync, allowed: 2", p, len(all))
		}
		for _, c := range all {
			n, err := x.judgeCopy(ctx, r, p, c, list, last)
			if err != nil {
				return err
			}
			checked, copies = checked+n, copies+1
		}
	}
	r.Control = fmt.Sprintf("%d copies of logs were read back for %d reports: a check that was not given one order, and another one twice, found both in each", copies, checked)
	if copies == 0 {
		r.judge(Invalid, "no log was read back")
	}
	return nil
}

// judgeCopy holds what threads sent to a partition against a copy of its log, and returns how many reports that were.
func (x *crowd) judgeCopy(ctx context.Context, r *Report, p wire.PartitionID, c grid.Copy, flows []fixdoor.Flow, last uint64) (checked int, err error) {
	content := func(_ int64, fix []byte) error { return fixorder.Check(fixorder.Unaddressed(fix, "")) }
	checks := make([]*ledger.Verifier, len(flows))
	for i, f := range flows {
		checks[i] = ledger.NewVerifier(f.ID, 0, 0, false)
		checks[i].Begin(0, f.Orders, content)
		checked += len(f.Orders)
	}
	if err := x.c.ReadLog(ctx, p, c.Address, 1, last, func(e ledger.Entry) {
		for _, v := range checks {
			v.Entry(e)
		}
	}); err != nil {
		return 0, err
	}
	for _, v := range checks {
		counts, err := v.Finish()
		if err != nil {
			r.judge(Invalid, "partition %s at %s: %v", p, c.Member, err)
		}
		if counts.Violations() != 0 {
			r.judge(Wrong, "partition %s at %s: %+v; %v", p, c.Member, counts, v.Examples())
		}
	}
	return checked, nil
}
