package sim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The world match: the partition matches. Its clients trade in three books, and an exchange
// cancels many orders at once, halts books and opens them, and in half of the worlds
// moves their price bands, under all faults of the other worlds. Copies agree on executions (I26), nothing is released below agreement (I27), and
// in the end a judge that knows price and time alone looks at every execution (I28), and the log
// is executed again from the text of its messages by a naive matcher (I54). What is shown of a
// book is committed, and what the judge has there (I35); each copy knows the states of the books
// (I58), and a book that is kept order by order is what the judge has (I59). Half of the worlds have FIX sessions, whose reports are those of the executions, each
// once (I48).

// WorldMatch names it.
const WorldMatch = "match"

// matchInstruments are what is traded.
var matchInstruments = []machine.Instrument{
	{Instrument: match.Instrument{Tick: 25, Lot: 10, Low: 10_000, High: 11_000, Ref: 10_425}, Symbol: "IBM", PriceDigits: 2, State: match.Open},
	{Instrument: match.Instrument{Tick: 1, Lot: 1, Low: -50, High: 50}, Symbol: "OIL", State: match.Open},
	{Instrument: match.Instrument{Tick: 5, Lot: 100, Low: 0, High: 100_000, Ref: 500}, Symbol: "XYZ", PriceDigits: 3, QtyDigits: 1, State: match.Open},
}

// RunMatch runs the world match of a seed; trace may be nil.
func RunMatch(seed uint64, trace io.Writer) Result {
	rng := rand.New(rand.NewPCG(seed, 0x6d61746368))
	return runWorld(newWorldOf(seed, matchProfile(seed, rng), rng, trace))
}

// matchProfile is that of a seed. Forged frames are those of partitions that store orders.
func matchProfile(seed uint64, rng *rand.Rand) *profile {
	p := newProfile(seed, rng)
	p.mapsOrders = nil
	p.name = "match: " + p.name
	p.match = rand.New(rand.NewPCG(seed, 0x65786368616e6765))
	if rng := rand.New(rand.NewPCG(seed, 0x6f7264657273)); rng.IntN(2) == 0 {
		p.orders = rng
	}
	if rng := rand.New(rand.NewPCG(seed, 0x62616e64730a)); rng.IntN(2) == 0 {
		p.bands = rng
	}
	p.forges, p.digests, p.fixes, p.regions = nil, nil, nil, nil
	if rng := rand.New(rand.NewPCG(seed, 0x66697865730a)); rng.IntN(2) == 0 {
		p.fixes, p.lapses, p.copies = rng, lapseRand(seed), copiesRand(seed)
	}
	if p.guards = nil; p.fixes == nil {
		if rng := rand.New(rand.NewPCG(seed, 0x6b696c6c730a)); rng.IntN(3) > 0 {
			p.guards = rng
		}
	}
	p.pace = 5 * millisecond
	return p
}

// execution is what a copy did with an entry.
type execution struct {
	entry   []byte
	at      match.Position
	records []match.Record
}

// execution of the options of a process.
func (p *profile) execution() *replica.Execution {
	if p.match == nil {
		return nil
	}
	return &replica.Execution{Orders: 120, Pages: 120, Books: 4, Work: 12, Instruments: matchInstruments}
}

// checkExecution: copies that store the same entry after the same entries have done the
// same with it, to the byte (I26).
func (w *world) checkExecution(p *process, seq, hash uint64) {
	if w.profile.match == nil || p.spoiled {
		return
	}
	x := execution{}
	at, held := p.r.ExecutionsOf(seq, func(_ int, r *match.Record) { x.records = append(x.records, *r) })
	if x.at = at; !held {
		w.violation("I26", "%s holds entry %d and not what it did", p.name, seq)
		return
	}
	known, ok := w.check.executions[hash]
	if !ok {
		x.entry = bytes.Clone(p.st.Get(seq))
		w.check.executions[hash] = x
		return
	}
	if known.at != at {
		w.violation("I26", "%s is at %v after entry %d; another copy is at %v", p.name, at, seq, known.at)
	}
}

// checkAgreed: nothing is released that a member of the configuration executed otherwise, or
// has not executed (I27).
func (w *world) checkAgreed(p *process, what string, seq uint64) {
	if w.profile.match == nil {
		return
	}
	own, _ := p.r.Executed(seq)
	for o := range w.up {
		if o == p || !w.isMember(o) || p.status.Config == nil || w.api.rec.Epoch != p.status.Config.Epoch {
			continue
		}
		if at, held := o.r.Executed(seq); held && at != own {
			w.violation("I27", "%s %s of entry %d, where it is at %v; %s, which is in sync, is at %v", p.name, what, seq, own, o.name, at)
		}
	}
}

// checkReleased: executions that leave are of a committed entry, and those that it had
// (I27).
func (w *world) checkReleased(p *process, frame []byte, lineage uint64) {
	var m wire.Executions
	if err := wire.DecodeExecutions(frame, &m); err != nil {
		w.violation("wire", "%s: %v", p.name, err)
		return
	}
	t := w.shown(lineage)
	if m.Entry > uint64(len(t.hashes)) || t.hashes[m.Entry-1] != m.Hash {
		w.violation("I27", "%s sends executions of entry %d, which is not committed", p.name, m.Entry)
		return
	}
	x := w.check.executions[m.Hash]
	for rest := m.Records; len(rest) > 0; rest = rest[wire.ExecSize:] {
		n := int(rest[0]) | int(rest[1])<<8
		if n < 1 || n > len(x.records) || !bytes.Equal(x.records[n-1].AppendTo(nil), rest[8:wire.ExecSize]) {
			w.violation("I27", "%s sends execution %d of entry %d, which is another one", p.name, n, m.Entry)
			return
		}
	}
	w.checkAgreed(p, "sends executions", m.Entry)
	w.stats.Executions += uint64(len(m.Records) / wire.ExecSize)
}

// matchMessage is a valid message with this ClOrdID: a new order, or a cancel or replace of
// one before it, of this client as a rule.
func (c *client) matchMessage(key string) []byte {
	rng := c.w.profile.match
	return matchMessage(rng, key, func() string {
		of := fmt.Sprintf("c%d-%d-%d", c.id, c.sessions, max(1, c.next-min(c.next, uint64(rng.IntN(8)))))
		if rng.IntN(10) == 0 {
			of = fmt.Sprintf("c%d-1-%d", rng.IntN(3), 1+rng.IntN(40))
		}
		return of
	})
}

// matchMessage makes a message with this ClOrdID; another is what it would change.
func matchMessage(rng *rand.Rand, key string, another func() string) []byte {
	in := &matchInstruments[rng.IntN(len(matchInstruments))]
	price := in.Low + (in.High-in.Low)/2/in.Tick*in.Tick + int64(rng.IntN(5)-2)*in.Tick
	decimal := func(v int64, digits uint8) string {
		if digits == 0 {
			return fmt.Sprint(v)
		}
		unit := int64(1)
		for range digits {
			unit *= 10
		}
		return fmt.Sprintf("%d.%0*d", v/unit, digits, v%unit)
	}
	of := another()
	side, qty := 1+rng.IntN(2), decimal(in.Lot*int64(1+rng.IntN(9)), in.QtyDigits)
	tail := fmt.Sprintf("\x011=acc%d\x0155=%s\x0154=%d\x0138=%s\x01", len(key)%2, in.Symbol, side, qty)
	switch n := rng.IntN(20); {
	case n < 11:
		return fixMessage('D', key, tail+"40=2\x0144="+decimal(price, in.PriceDigits)+"\x01")
	case n < 13:
		return fixMessage('D', key, tail+"40=2\x0144="+decimal(price, in.PriceDigits)+"\x0159="+[]string{"3", "4"}[rng.IntN(2)]+"\x01")
	case n < 14:
		return fixMessage('D', key, tail+"40=1\x0159=3\x01")
	case n < 15:
		return fixMessage('D', key, tail+"40=2\x0118=6\x0144="+decimal(price, in.PriceDigits)+"\x01")
	case n < 17:
		return fixMessage('F', key, "\x0141="+of+tail)
	}
	return fixMessage('G', key, "\x0141="+of+tail+"40=2\x0144="+decimal(price, in.PriceDigits)+"\x01")
}

// fixMessage is a valid FIX 4.4 message.
func fixMessage(kind byte, clOrdID, fields string) []byte {
	body := fmt.Sprintf("35=%c\x0149=P\x0156=G\x0134=1\x0152=20071115-14:30:00.123\x0160=20071115-14:30:00.123\x0111=%s%s", kind, clOrdID, fields)
	b := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	if !order.Seal(b) {
		panic("message has no trailer")
	}
	return b
}

// scheduleExchange lets the exchange act on its primary now and then.
func (w *world) scheduleExchange() {
	if w.profile.match == nil {
		return
	}
	w.after(w.profile.match.Int64N(300*millisecond)+20*millisecond, func() {
		w.exchange()
		w.scheduleExchange()
	})
}

func (w *world) exchange() {
	rng := w.profile.match
	op := match.Op{Kind: match.SetState, Book: uint16(rng.IntN(len(matchInstruments))), State: match.Open}
	switch n := rng.IntN(10); {
	case n < 4 && w.fix != nil && w.fix.quiet:
		return
	case n < 4:
		op.Kind, op.Owner, op.Side = match.MassCancel, uint32(rng.IntN(3)*rng.IntN(9)), match.Side(rng.IntN(3))
		if rng.IntN(3) > 0 {
			op.Book = match.All
		}
	case n < 6 && !w.healing:
		op.State = match.Halted
	}
	w.atExchange(op)
}

// atExchange has the primary of the exchange do something.
func (w *world) atExchange(op match.Op) {
	for p := range w.up {
		if p.status.Role != replica.RolePrimary {
			continue
		}
		p.deliver(func() {
			if !p.alive || w.stopped {
				return
			}
			w.steps++
			err := p.r.Market(p.wakeUp(), &op, &p.out)
			w.logf("the exchange asks %s for operation %d on book %d: %v", p.name, op.Kind, op.Book, err)
			w.checkStep(p)
			p.flush()
		})
	}
}

// checkDivergence: when all is healthy the books of a copy are corrupted, as by a bug or a
// bit flip. It is noticed, nothing more is released, and when a person has stopped that
// process, all goes on.
func (w *world) checkDivergence() {
	if w.stopped || w.profile.match == nil || w.profile.match.IntN(2) == 0 {
		return
	}
	w.api.heal()
	w.settle("before the books of a copy differ")
	if w.stopped || len(w.api.rec.InSync) < 2 {
		return
	}
	pods := w.placed()
	p := pods[w.profile.match.IntN(len(pods))].proc
	p.r.SpoilBooks()
	p.spoiled, w.check.spoiled = true, true
	w.logf("%s has OTHER BOOKS now", p.name)
	noticed := w.check.noticed
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	w.await("other books of "+p.name+", and", func() string {
		if p.alive && w.check.noticed == noticed {
			return "no copy noticed"
		}
		return ""
	})
	w.runUntil(w.now+200*millisecond, nil)
	if w.stopped {
		return
	}
	if p.alive {
		p.crash(true)
		w.after(50*millisecond, func() { w.restart(p.pod) })
	}
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.await("after "+p.name+" was stopped,", w.converged)
}

// checkExchange: what is pending in the books ends (I31), and the judge looks at the whole
// committed log (I28).
func (w *world) checkExchange() {
	if w.stopped || w.profile.match == nil {
		return
	}
	w.await("in the books of the primary", func() string {
		if p := w.processOf(w.api.rec.Primary.Boot); p == nil || p.r.BooksPending() {
			return "something is still pending"
		}
		return ""
	})
	if w.stopped {
		return
	}
	var j judge
	again := replay.NewLog()
	for i, hash := range w.timeline(w.api.rec.Lineage).hashes {
		x, ok := w.check.executions[hash]
		if !ok {
			w.violation("I28", "entry %d is committed, and no copy that was well has executed it", i+1)
			return
		}
		var e order.Entry
		if _, err := order.DecodeEntry(x.entry, &e); err != nil {
			w.violation("I28", "entry %d: %v", i+1, err)
			return
		}
		if text := j.entry(&e, order.Payload(x.entry), x.records); text != "" {
			w.violation("I28", "entry %d: %s", i+1, text)
			return
		}
		if text := executedAgain(again, &e, x.entry, x.records); text != "" {
			w.violation("I54", "entry %d: %s", i+1, text)
			return
		}
		for _, v := range w.check.books[hash] {
			if text := j.shows(&v); text != "" {
				w.violation("I35", "after entry %d: %s", i+1, text)
				return
			}
		}
		for _, v := range w.check.orders[hash] {
			if text := j.showsOrders(&v); text != "" {
				w.violation("I59", "after entry %d: %s", i+1, text)
				return
			}
		}
	}
	w.checkStates(&j)
	w.stats.Fills += uint64(j.fills)
	w.stats.FixMasses, w.stats.FixSwept = w.stats.FixMasses+uint64(j.masses), w.stats.FixSwept+uint64(j.swept)
	w.stats.Killed += uint64(j.killed)
	w.stats.Bands, w.stats.Banned = w.stats.Bands+uint64(j.moved), w.stats.Banned+uint64(j.banned)
	for id, o := range j.orders {
		if o.gone {
			w.violation("I50", "order %d rests, and its session has lapsed; nothing is pending", id)
		}
		if o.doomed {
			w.violation("I47", "order %d rests, and a kill or a mass cancel includes it; nothing is pending", id)
		}
	}
}

// checkStates: of every book each copy that has the whole log tells the state that the judge has, and since when: not before
// the entry that it began with, nor behind all (I58).
func (w *world) checkStates(j *judge) {
	entries := uint64(len(w.timeline(w.api.rec.Lineage).hashes))
	for p := range w.up {
		if p.spoiled || p.status.LastSeq != entries || !w.isMember(p) {
			continue
		}
		books := 0
		p.r.EachBook(0, func(s machine.BookState, in *machine.Instrument) {
			if books++; s.State != j.states[s.Book] || s.Since < j.changed[s.Book] || s.Since > j.newest {
				w.violation("I58", "%s has %s in state %d since %d; it is in %d since %d, and the newest entry is of %d", p.name, in.Symbol, s.State, s.Since, j.states[s.Book], j.changed[s.Book], j.newest)
			}
		})
		if books != len(j.states) {
			w.violation("I58", "%s knows the state of %d books of %d", p.name, books, len(j.states))
		}
		w.stats.BookStates += uint64(books)
	}
}

// executedAgain compares what an entry did with what the naive matcher says.
func executedAgain(l *replay.Log, e *order.Entry, entry []byte, did []match.Record) string {
	want, err := l.Entry(e, order.Payload(entry))
	if err != nil {
		return err.Error()
	}
	if n, text := replay.Difference(did, want); n > 0 {
		return fmt.Sprintf("record %d %s", n, text)
	}
	return ""
}
