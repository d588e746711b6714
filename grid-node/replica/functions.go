package replica

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Functions of kind Post, see docs/adr/0063: every copy calls those in force when it stores
// an order. Which those are is in the log, with the modules: an offer, the modules that the
// log does not have in pieces, and an entry from which on the offer is in force. The last
// one is written when every copy has loaded what was offered. This file has the primary's
// entries, and what copies report of themselves.

// Functions of a replica's log.
type Functions struct {
	// Code runs them. A replica without it cannot have a log with functions.
	Code machine.Code
	// Want are the functions that this replica puts in force as a primary, once every other
	// copy wants others than those in force, too: so while pods are replaced one at a time
	// the change is made once, and not taken back by one that still has the options of before.
	Want []order.Function
	// Modules are those of Want, by SHA-256.
	Modules map[[sha256.Size]byte][]byte
	// RecordBytes bounds the records that are held to be read; 16 MiB. The oldest are
	// forgotten first.
	RecordBytes int64
}

func (f *Functions) fill() error {
	if f.RecordBytes = or64(f.RecordBytes, 16<<20); f.RecordBytes < 1 || len(f.Want) > order.MaxFunctions || f.Code == nil {
		return fmt.Errorf("functions: %d, recordBytes %d, allowed: at most %d, with code that runs them, and 1 byte or more", len(f.Want), f.RecordBytes, order.MaxFunctions)
	}
	for i := range f.Want {
		w := &f.Want[i]
		if err := w.Validate(); err != nil {
			return fmt.Errorf("functions: %w", err)
		}
		if n := len(f.Modules[w.SHA256]); n == 0 || n > order.MaxFunctionModule {
			return fmt.Errorf("functions: %s has a module of %d bytes, allowed: 1..%d", w.Name, n, order.MaxFunctionModule)
		}
		if slices.ContainsFunc(f.Want[:i], func(o order.Function) bool { return o.Name == w.Name }) {
			return fmt.Errorf("functions: %s twice, allowed: each name once", w.Name)
		}
	}
	return nil
}

func or64(v, def int64) int64 {
	if v == 0 {
		return def
	}
	return v
}

// functionsState is what a replica knows of functions beside the log.
type functionsState struct {
	at      uint64 // the last entry of kind functions
	settled uint64 // version of the part, plus 1, at which what is wanted was in force
	waits   bool   // for acknowledgements of other copies that say what they have loaded
	records records
	delayed []byte // for a mutant: a change that is applied late
}

// hasWanted reports whether the functions in force are those of the options.
func (r *Replica) hasWanted() bool {
	return r.opt.Functions == nil || r.live.Functions.Are(r.opt.Functions.Want)
}

// functionsDue reports whether the primary has a change of functions to make.
func (r *Replica) functionsDue() bool {
	if r.opt.Functions == nil || r.role != RolePrimary || r.functions.settled == r.live.Functions.Version()+1 {
		return false
	}
	if _, offering := r.live.Functions.Offered(); !offering && r.hasWanted() {
		r.functions.settled, r.functions.waits = r.live.Functions.Version()+1, false
		return false
	}
	return true
}

// functionFlags are about the sender of an acknowledgement.
func (r *Replica) functionFlags() (flags uint8) {
	if r.opt.Functions == nil {
		return 0
	}
	if r.live.Functions == nil || r.live.Functions.Loaded() {
		flags |= wire.FlagFunctions
	}
	if !r.hasWanted() {
		flags |= wire.FlagOtherFunctions
	}
	return flags
}

// agreeOn reports whether every other copy has all entries of kind functions, and these
// flags. A copy that is gone has to load what the log has before it is one again.
func (r *Replica) agreeOn(flags uint8) bool {
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; (p.functions&flags != flags || p.functionsAt < r.functions.at) && !r.gone(p) {
			return false
		}
	}
	return true
}

// logFunctions appends what the change has next, as a primary.
func (r *Replica) logFunctions() {
	for r.functionsDue() && r.mayLogExecution() {
		c, ready := r.nextChange()
		if r.functions.waits = !ready; !ready {
			return
		}
		e := order.Entry{Kind: order.KindFunctions}
		r.text = c.Append(r.text[:0])
		if r.append(&e, r.text, 0, pending{}) != nil {
			return // a full store: later
		}
	}
}

// nextChange returns the next entry of the change, and whether it may be written.
func (r *Replica) nextChange() (c order.FunctionsChange, ready bool) {
	f, live := r.opt.Functions, r.live.Functions
	offered, offering := live.Offered()
	if !offering || !slices.Equal(offered, f.Want) {
		if !offering && r.hasWanted() {
			return c, false
		}
		c.Op, c.Offer = order.FunctionsOffer, f.Want
		need := wire.FlagFunctions | wire.FlagOtherFunctions
		if r.hasWanted() { // an offer of another primary is withdrawn
			need = wire.FlagFunctions
		}
		// With a copy less it is not known what the missing one can run.
		return c, len(r.cfg.InSync) >= r.opt.Replicas && r.agreeOn(need) || mutant(mutFunctionsUnasked)
	}
	if sum, have, missing := live.Missing(); missing {
		module := f.Modules[sum]
		c = order.FunctionsChange{Op: order.FunctionsPiece, SHA256: sum, Size: uint32(len(module)), Offset: uint32(have)}
		c.Piece = module[have:min(have+order.MaxFunctionPiece, len(module))]
		return c, true
	}
	c.Op = order.FunctionsBegin
	return c, live.Loaded() && r.agreeOn(wire.FlagFunctions)
}

// applyCalled applies an entry where functions are in force, or begin to be.
func (r *Replica) applyCalled(e *order.Entry, payload []byte) {
	if e.Kind == order.KindFunctions {
		r.functions.at = e.Seq
		if mutant(mutFunctionsLate) && r.role == RolePrimary && payload[0] == byte(order.FunctionsBegin) {
			r.functions.delayed = slices.Clone(payload)
			r.live.Cursors.Data = e.Seq
			return
		}
	}
	if at := *e; mutant(mutFunctionsOwnClock) {
		at.TimeNs = r.now.Wall
		e = &at
	}
	r.live.Skip(mutant(mutFunctionsPrimaryOnly) && r.role != RolePrimary || mutant(mutFunctionsCommitted) && r.role != RolePrimary && e.Seq > r.commit+4)
	r.live.Apply(e, payload)
	if p := r.functions.delayed; p != nil && e.Kind.IsOrder() {
		r.functions.delayed = nil
		r.live.Apply(&order.Entry{Kind: order.KindFunctions, Seq: e.Seq, Epoch: e.Epoch}, p)
	}
	if f := r.live.Functions; order.FunctionsBuilt && f != nil && e.Kind.IsOrder() {
		for _, rec := range f.Records() {
			r.functions.records.add(e.Seq, &rec, r.opt.Functions.RecordBytes)
		}
	}
}

// readRecords sends records of committed entries.
func (r *Replica) readRecords(conn uint64, frame []byte) error {
	var m wire.ReadRecords
	if err := wire.DecodeReadRecords(frame, &m); err != nil {
		return err
	}
	if r.ofOlderLineage() || r.role != RolePrimary && r.role != RoleBackup {
		r.notPrimary(conn, wire.TypeReadRecords, m.ReqID, 0)
		return nil
	}
	x := &r.functions.records
	base, _ := r.store.Base()
	if gone := max(base, x.dropped); m.From <= gone {
		r.reject(conn, wire.TypeReadRecords, m.ReqID, 0, wire.CodeSnapshotRequired, 0, gone, fmt.Sprintf("records of entry %d are not held, as of all up to %d: continue after it", m.From, gone))
		return nil
	}
	most := wire.MaxRecordsRead
	if m.MaxBytes != 0 {
		most = min(most, int(m.MaxBytes))
	}
	reply := wire.RecordsRead{ReqID: m.ReqID, CommitSeq: r.commit, Through: max(r.commit, m.From-1)}
	r.text = r.text[:0]
	for i := x.find(m.From); i < len(x.list) && x.list[i].seq <= r.commit; {
		n, size := x.of(i)
		if len(r.text) > 0 && len(r.text)+size > most {
			reply.Through = x.list[i].seq - 1
			break
		}
		for ; n > 0; n, i = n-1, i+1 {
			h := &x.list[i]
			reply.Count++
			r.text = wire.AppendRecord(r.text, &wire.Record{Entry: h.seq, Fault: h.fault, Function: h.function, Bytes: h.bytes})
		}
	}
	reply.Records = r.text
	off := len(r.out.buf)
	r.out.buf = wire.AppendRecordsRead(r.out.buf, r.part, &reply)
	r.out.reply(conn, off, nil)
	return nil
}

// RecordsOf calls f for each record of an entry, and reports whether they are held. It is
// for the simulator.
func (r *Replica) RecordsOf(seq uint64, f func(function string, fault uint8, record []byte)) bool {
	x := &r.functions.records
	base, _ := r.store.Base()
	if last, _ := r.store.Last(); seq <= max(base, x.dropped) || seq > last {
		return false
	}
	for i := x.find(seq); i < len(x.list) && x.list[i].seq == seq; i++ {
		f(x.list[i].function, x.list[i].fault, x.list[i].bytes)
	}
	return true
}

// FunctionCounts calls do for each function in force, with the counts of this replica.
func (r *Replica) FunctionCounts(do func(*order.Function, *machine.FunctionCounts)) {
	r.live.Functions.Counts(do)
}

// FunctionsInForce returns the functions that the log has in force, and the entry of the
// last change of them that this process saw.
func (r *Replica) FunctionsInForce() (list []order.Function, changed uint64) {
	return r.live.Functions.InForce(), r.functions.at
}
