package runner

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/ledger"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// openDoor reads the FIX sessions of a run that goes through them.
func (r *Run) openDoor() (err error) {
	if r.cfg.Through == nil {
		return nil
	}
	door := *r.cfg.Through
	door.Timeout = r.cfg.RequestTimeout
	r.door, err = fixdoor.New(door, r.grid.SessionHome)
	return err
}

// open opens a publishing thread's connection to a partition.
func (r *Run) open(ctx context.Context, p wire.PartitionID) (thread, error) {
	if r.door == nil {
		return r.grid.Open(ctx, p)
	}
	return r.door.Open(ctx, r.cfg.FIX.BeginString(), p)
}

// throughSessions is the check of orders that came through the sessions of a probe: each is from the session of the
// thread that sent it, and without what sessions write it is what was made.
func (r *Run) throughSessions(sh *share, s scenario.Step) ledger.ContentCheck {
	check := sh.content
	if check == nil {
		check = func(_ int64, fix []byte) error { return fixorder.Check(fix) }
	}
	return func(index int64, fix []byte) error {
		if i := index - sh.first; i >= 0 && i < int64(len(sh.orders)) && sh.orders[i].Complete() {
			if x, ok := sh.p.threads[sh.orders[i].Thread].(*fixdoor.Session); ok && !fixorder.SentBy(fix, x.Name().Sender, x.Name().Target) {
				return fmt.Errorf("is of another session than %s, which sent it", x.Name())
			}
		}
		return check(index, fixorder.Unaddressed(fix, s.Record))
	}
}

// reconnected reports how often sessions of a probe logged on again since it was asked last.
func (p *probe) reconnected() (text string) {
	n := 0
	for _, t := range p.threads {
		if x, ok := t.(*fixdoor.Session); ok {
			n += x.Reconnects
		}
	}
	if n > p.reconnects {
		text = fmt.Sprintf("probe %s: FIX sessions logged on again %d times", p.load.Name, n-p.reconnects)
	}
	p.reconnects = n
	return text
}

// rediscover reads the table of the grid again: gateways follow a primary that moves, and the probe's own client has no
// session to be told by.
func (r *Run) rediscover(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RequestTimeout)
	defer cancel()
	_ = r.grid.Refresh(ctx) // what it does not find, reading the logs back says
	for _, p := range r.probes {
		if text := p.reconnected(); text != "" {
			r.cfg.Progress.Say(text)
		}
	}
}
