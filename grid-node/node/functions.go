package node

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// functions decide on the orders of all partitions that the node is primary of. Of the data
// loop.
type functions struct {
	*process
	config *Functions
	chain  *function.Chain
	digest string
	faults []faultLog // by function
}

// faultLog keeps failures of a function from flooding the log: one line a second.
type faultLog struct {
	at      int64 // Mono of the last line
	skipped uint64
}

// newFunctions returns nil where none are configured.
func newFunctions(p *process) (*functions, error) {
	if p.cfg.Functions == nil || len(p.cfg.Functions.Pre) == 0 {
		return nil, nil
	}
	c, err := p.cfg.Functions.load(context.Background())
	if err != nil {
		return nil, err
	}
	f := &functions{process: p, config: p.cfg.Functions, chain: c, digest: c.Digest(), faults: make([]faultLog, c.Len())}
	c.OnFault = f.failed
	for k := range c.Len() {
		cb := c.Callback(k)
		p.log.Info("function loaded", "function", cb.Name, "sha256", fmt.Sprintf("%x", cb.Module.Digest()), "onError", cb.OnError.String(), "chain", f.digest)
	}
	return f, nil
}

// close frees the modules' memory, once the loop has ended.
func (f *functions) close() {
	if f == nil {
		return
	}
	modules := make([]*function.Module, f.chain.Len())
	for k := range modules {
		modules[k] = f.chain.Callback(k).Module
	}
	_ = f.chain.Close(context.Background()) // of memory only
	for _, m := range modules {
		_ = m.Close(context.Background())
	}
}

// Decide implements replica.Decider.
func (f *functions) Decide(nowNs int64, msg []byte, o *order.Order, d *replica.Decision) {
	out := f.chain.Decide(nowNs, msg, o)
	*d = replica.Decision{Message: out.Message, Reason: out.Reason, Text: out.Text}
	if out.Parsed != nil {
		d.Fields = &out.Parsed.Fields
	}
}

// failed logs a failed call with the order's id.
func (f *functions) failed(k int, fault function.Fault, clOrdID []byte) {
	l, now := &f.faults[k], f.loop.Clock().Mono()
	if l.at != 0 && now-l.at < alarmInterval {
		l.skipped++
		return
	}
	cb := f.chain.Callback(k)
	f.log.Warn("a function failed", "function", cb.Name, "clOrdID", string(clOrdID), "fault", fault.String(),
		"detail", f.chain.Explain(k, fault), "onError", cb.OnError.String(), "notLogged", l.skipped)
	l.at, l.skipped = now, 0
}

// leads logs which functions decide on the orders of an epoch.
func (f *functions) leads(p *partition, epoch uint64) {
	if f != nil && p.status.Role == replica.RolePrimary {
		f.log.Info("functions decide on orders", "partition", p.id.String(), "epoch", epoch, "chain", f.digest)
	}
}

// status is nil without functions.
func (f *functions) status() *nodestatus.Functions {
	if f == nil {
		return nil
	}
	s := &nodestatus.Functions{Chain: f.digest, Stamp: f.config.Stamp}
	for k := range f.chain.Len() {
		cb, n := f.chain.Callback(k), f.chain.Counts(k)
		o := f.config.Pre[k].options()
		row := nodestatus.Function{Name: cb.Name, SHA256: fmt.Sprintf("%x", cb.Module.Digest()), OnError: cb.OnError.String(), Fuel: o.Fuel, Pages: o.Pages, Tags: o.Tags,
			Accepted: n.Accepted, Refused: n.Refused, Changed: n.Changed}
		for _, v := range n.Failed {
			row.Failed += v
		}
		s.Pre = append(s.Pre, row)
	}
	return s
}

// snapshot is for metrics.
func (f *functions) snapshot() (list []metrics.Function) {
	if f == nil {
		return nil
	}
	for k := range f.chain.Len() {
		cb := f.chain.Callback(k)
		list = append(list, metrics.Function{Name: cb.Name, SHA256: fmt.Sprintf("%x", cb.Module.Digest()), OnError: cb.OnError.String(),
			FuelLimit: f.config.Pre[k].options().Fuel, Counts: f.chain.Counts(k)})
	}
	return list
}
