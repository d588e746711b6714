package replica

import (
	"cmp"
	"slices"
	"sort"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fixReports are the reports of the entries that are held, beside their records: a resting
// order may outlive the entry of its message. Every copy makes its own, none is replicated.
type fixReports struct {
	list deque[fixReport]
}

// fixReport is what a report has beside the record.
type fixReport struct {
	exec          uint64 // the record, among all
	number, first uint64
	value         [2]uint64
	last          uint64 // of an answer: the last report of its order, among all
	slot          uint32
	n             uint32 // the record, in its entry, from 1
	answer        bool
	size          uint8
	name          [order.MaxClOrdID]byte
}

// add adds those of an entry whose first record is the one at exec.
func (x *fixReports) add(exec uint64, list []machine.FixReport) {
	for i := range list {
		m := &list[i]
		x.list.push(&fixReport{exec: exec + uint64(m.Record), number: m.Number, first: m.First, value: m.Value,
			slot: m.Slot, n: uint32(m.Record) + 1, answer: m.Answer, size: m.Size, name: m.Name})
	}
}

// from returns the first report of a record from exec on.
func (x *fixReports) from(exec uint64) uint64 {
	l := &x.list
	return l.first + uint64(sort.Search(int(l.next-l.first), func(i int) bool { return l.at(l.first+uint64(i)).exec >= exec }))
}

// of returns the reports of the records from exec on, n of them.
func (x *fixReports) of(exec, n uint64) (from, to uint64) {
	if x.list.first == x.list.next || n == 0 {
		return 0, 0
	}
	return x.from(exec), x.from(exec + n)
}

func (x *fixReports) bytes() int64 { return int64(len(x.list.chunks)) * dequeChunk * fixReportBytes }

// fixReportBytes is the memory of a fixReport.
const fixReportBytes = int64(unsafe.Sizeof(fixReport{}))

// noteReports keeps the reports of the entry that was just applied.
func (r *Replica) noteReports(seq uint64) {
	list := r.live.Books.Reports()
	if len(list) == 0 {
		return
	}
	first, _ := r.execs.of(seq)
	at := r.reports.list.next
	r.reports.add(first, list)
	for i := range list {
		r.fix.note(list[i].Slot, list[i].Number, seq)
		r.reports.link(r.execs, at+uint64(i))
	}
}

// answer returns the report that answers the message of an entry, nil if the entry is not held
// or has none.
func (x *fixReports) answer(execs *execLog, seq uint64) *fixReport {
	if seq < execs.entries.first || seq >= execs.entries.next {
		return nil
	}
	from, to := x.of(execs.of(seq))
	for i := from; i < to; i++ {
		if f := x.list.at(i); f.answer {
			return f
		}
	}
	return nil
}

// link has the first report of an order name the one at i as its last. That a cancel was
// rejected changes no order.
func (x *fixReports) link(execs *execLog, i uint64) {
	f := x.list.at(i)
	f.last = i
	if execs.records.at(f.exec).Kind == match.CancelRejected {
		return
	}
	if first := x.answer(execs, f.first); first != nil {
		first.last = i
	}
}

// freeReports frees those of the first entry that is held, before its records are.
func (r *Replica) freeReports(seq uint64) {
	from, to := r.reports.of(r.execs.of(seq))
	for i := from; i < to; i++ {
		r.fix.drop(r.reports.list.at(i).slot, seq)
	}
	if to > from {
		r.reports.list.freeTo(to)
	}
}

// reportsBehind returns how many numbers of a session are those of entries behind seq.
func (r *Replica) reportsBehind(slot uint32, seq uint64) (n uint64) {
	if r.execs == nil {
		return 0
	}
	l := &r.reports.list
	for i := r.reports.from(r.execs.at(seq).ExecSeq); i < l.next; i++ {
		if l.at(i).slot == slot {
			n++
		}
	}
	return n
}

// pushReports sends the reports of an entry that is committed now, to the gateways that have
// their sessions. A session that is being opened gets them with what it missed.
func (r *Replica) pushReports(seq uint64) {
	if l := &r.reports.list; l.first == l.next {
		return
	}
	at := r.reports.list.at
	from, to := r.reports.of(r.execs.of(seq))
	r.eachSession(from, to, func(i uint64) uint32 { return at(i).slot }, func(slot uint32, list []uint64) {
		r.tell(slot, list, func(dst []byte, i uint64) []byte { return r.appendReport(dst, seq, at(i)) })
	})
}

// eachSession calls f for each session with its places from from up to to, rising.
func (r *Replica) eachSession(from, to uint64, slot func(i uint64) uint32, f func(slot uint32, list []uint64)) {
	list := r.reported[:0]
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Or(cmp.Compare(slot(a), slot(b)), cmp.Compare(a, b)) })
	for r.reported = list; len(list) > 0; {
		first, k := slot(list[0]), 1
		for k < len(list) && slot(list[k]) == first {
			k++
		}
		f(first, list[:k])
		list = list[k:]
	}
}

// tell gives a session the next numbers, for what is in the places of the list, and sends it to the
// gateway that has the session.
func (r *Replica) tell(slot uint32, list []uint64, add func(dst []byte, i uint64) []byte) {
	seat := r.fix.at(slot)
	seat.next += uint64(len(list))
	if seat.conn == 0 || seat.opening {
		return
	}
	r.text = r.text[:0]
	for _, i := range list {
		r.text = add(r.text, i)
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendFixReports(r.out.buf, r.part, &wire.FixReports{Slot: slot, Attempt: r.live.Fix.At(slot).Attempt, Entries: r.text})
	r.out.reply(seat.conn, off, nil)
}

// executedAs returns the report of an executed entry that has this number, nil if it has none.
func (r *Replica) executedAs(seq uint64, slot uint32, number uint64) *fixReport {
	if r.execs == nil {
		return nil
	}
	from, to := r.reports.of(r.execs.of(seq))
	for i := from; i < to; i++ {
		if f := r.reports.list.at(i); f.slot == slot && f.number == number {
			return f
		}
	}
	return nil
}

// answered returns the message that an entry answers, and its number.
func answered(entry []byte) (message []byte, seq uint64) {
	if order.Kind(entry[4]) == order.KindFix {
		m, _, seq, _ := order.MassCancelOf(order.Payload(entry))
		return m.Message, seq
	}
	return order.Message(entry), order.ClientSeqOf(entry)
}

// reportBody returns what the report of an execution is made of: a gateway gets no more of the
// order of another session than the execution has. It is valid until the next call.
func (r *Replica) reportBody(entry []byte, f *fixReport) []byte {
	rec := r.execs.records.at(f.exec)
	m := order.FixReport{N: f.n, First: f.first, Value: f.value, Record: rec.AppendTo(r.fix.record[:0]), Symbol: r.fix.symbol[:0], ClOrdID: f.name[:f.size]}
	if rec.Book != match.All { // of a mass cancel
		in := &r.live.Books.Instruments()[rec.Book]
		m.PriceDigits, m.QtyDigits, m.Symbol = in.PriceDigits, in.QtyDigits, append(m.Symbol, in.Symbol...)
	}
	if f.answer {
		m.Message, _ = answered(entry)
	}
	r.fix.record, r.fix.symbol = m.Record, m.Symbol
	r.fix.body = m.Append(r.fix.body[:0])
	return r.fix.body
}

// appendReport appends a number and what its report is made of, as an entry of kind fix.
func (r *Replica) appendReport(dst []byte, seq uint64, f *fixReport) []byte {
	entry := r.store.Get(seq)
	record := order.FixRecord{Slot: f.slot, In: 1, Op: order.FixRefusal, Outs: 1, Body: r.reportBody(entry, f)}
	if f.answer {
		_, answers := answered(entry)
		record.In = answers + 1
	}
	r.fix.taken = order.AppendFixRecord(r.fix.taken[:0], &record)
	return appendMade(dst, f.number, order.KindFix, entry, r.fix.taken)
}
