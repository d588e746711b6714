package node

import (
	"cmp"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// exchangeSnapshot is what metrics have of the books; nil in a partition that stores orders.
func (p *partition) exchangeSnapshot(wall int64) *metrics.Exchange {
	if p.all.cfg.Execution == nil {
		return nil
	}
	x := &metrics.Exchange{Diverged: p.replica.Diverged()}
	x.Resting, x.Most = p.replica.Resting()
	p.replica.EachBook(wall, func(s machine.BookState, _ *machine.Instrument) {
		x.States[s.State]++
		age := max(0, wall-s.Since)
		switch {
		case s.State == match.Call || s.State == match.Uncrossing:
			x.AuctionNs = max(x.AuctionNs, age)
		case s.State == match.Halted && s.Until == 0:
			x.HaltNs = max(x.HaltNs, age)
		}
	})
	return x
}

// mostWaiting bounds the books that a page names.
const mostWaiting = 8

var waitingStates = [...]string{match.Call: "call", match.Uncrossing: "uncrossing", match.Halted: "halted"}

// waitingBooks are those that do not trade and are not closed, the longest first, of the
// partitions that this node leads: some of them.
func (ps *partitions) waitingBooks() (list []nodestatus.WaitingBook) {
	for _, p := range ps.list {
		if p.status.Role != replica.RolePrimary {
			continue
		}
		p.replica.EachBook(ps.loop.Clock().Wall(), func(s machine.BookState, in *machine.Instrument) {
			if int(s.State) >= len(waitingStates) || waitingStates[s.State] == "" {
				return
			}
			w := nodestatus.WaitingBook{Symbol: in.Symbol, Partition: p.id.String(), State: waitingStates[s.State], SinceUnixNs: s.Since, UntilUnixNs: s.Until}
			at, _ := slices.BinarySearchFunc(list, w, func(a, b nodestatus.WaitingBook) int {
				return cmp.Or(cmp.Compare(a.SinceUnixNs, b.SinceUnixNs), cmp.Compare(a.Symbol, b.Symbol))
			})
			if at == mostWaiting {
				return
			}
			list = slices.Insert(list[:min(len(list), mostWaiting-1)], at, w)
		})
	}
	return list
}
