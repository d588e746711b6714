package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/function/post"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// calls gives a sixth of the worlds functions that every copy calls for each order: real
// modules. While orders flow an administrator changes them, and takes the change back; a
// process has those that were wanted when it started. Begun so that no seed in
// testdata/seeds.txt became another world.
func calls(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, callsBegin)); rng.IntN(6) == 0 {
		p.calls = rng
	}
}

const callsBegin = 0x63616c6c00904a6

// wanted are the functions that an administrator names, one list after the other: a counter,
// the same beside an audit trail, the first again, none, and another counter.
var wanted = func() [][]order.Function {
	define := func(name string, module []byte, fuel uint32) order.Function {
		return order.Function{Name: name, SHA256: sha256.Sum256(module), Fuel: fuel, Pages: 8}
	}
	count, audit := define(counter, examples.CountAccounts, 10_000), define("audit", examples.AuditTrail, 200_000)
	short := define("short", examples.AuditTrail, 3000) // runs out of fuel
	other := count
	other.Fuel++
	return [][]order.Function{{count}, {audit, count}, {count}, {}, {other, short}, {count}}
}()

const counter = "count"

var wantedModules = map[[sha256.Size]byte][]byte{
	sha256.Sum256(examples.CountAccounts): examples.CountAccounts,
	sha256.Sum256(examples.AuditTrail):    examples.AuditTrail,
}

// loader is a process's code: it has loaded a function some time after it began to.
type loader struct {
	*post.Code
	w     *world
	until map[order.Function]int64
}

// loadedCode is shared by all worlds: what it compiles does not depend on them.
var loadedCode = post.New()

func (l *loader) Start(f *order.Function, module []byte) {
	if err := l.Code.Load(f, module); err != nil {
		panic(err) // a mistake in this package
	}
	if _, known := l.until[*f]; !known {
		l.until[*f] = l.w.now + l.w.profile.calls.Int64N(300*millisecond)
	}
}

func (l *loader) Load(f *order.Function, module []byte) error {
	l.Start(f, module)
	return nil
}

func (l *loader) Loaded(f *order.Function) bool {
	until, known := l.until[*f]
	return known && l.w.now >= until
}

// newFunctions returns those of a process that starts, nil in a world without.
func (w *world) newFunctions() *replica.Functions {
	if w.profile.calls == nil {
		return nil
	}
	return &replica.Functions{
		Code: &loader{Code: loadedCode, w: w, until: map[order.Function]int64{}}, Want: wanted[w.wanted], Modules: wantedModules, RecordBytes: 16 << 10,
	}
}

// scheduleFunctions changes what the administrator wants, now and then.
func (w *world) scheduleFunctions() {
	if w.profile.calls == nil {
		return
	}
	w.after(w.profile.calls.Int64N(2*second), func() {
		if w.wanted+1 == len(wanted) || w.phase != phaseChaos {
			return
		}
		w.wanted++
		w.logf("the administrator wants %d functions", len(wanted[w.wanted]))
		w.scheduleFunctions()
	})
}

// called is what a log has made of functions: the judge's own account, by offers and orders
// alone.
type called struct {
	offered, inForce []order.Function
	counted          uint64 // orders, by the counter in force
	records          []byte // of the entry, as the first copy that stored it has them
	known            bool
}

// checkCalled: copies that store the same entry after the same entries have the same records
// of it, and the counter has counted every order since it is in force, with the time of its
// entry (I38). Which functions are called is the same (I39).
func (w *world) checkCalled(p *process, seq, hash uint64) {
	if w.profile.calls == nil || p.spoiled {
		return
	}
	entry := p.st.Get(seq)
	c, known := w.check.called[hash]
	if !known {
		before := w.check.called[order.PrevHash(entry)]
		if c = before.after(entry); seq > 1 && !before.known {
			c.known = false // of a log whose beginning no copy here has had
		}
		if p := order.Payload(entry); order.Kind(entry[4]) == order.KindFunctions && p[0] == byte(order.FunctionsBegin) {
			w.stats.FunctionChanges++
		}
	}
	var records []byte
	held := p.r.RecordsOf(seq, func(name string, fault uint8, record []byte) {
		records = append(fmt.Appendf(records, "%s %d %d ", name, fault, len(record)), record...)
		if name == counter && fault == 0 && c.known {
			if got, at := binary.LittleEndian.Uint64(record[24:]), int64(binary.LittleEndian.Uint64(record[16:])); got != c.counted || at != order.Received(entry) {
				w.violation("I38", "%s has counted %d orders up to entry %d, at %d; they are %d, and the entry is of %d", p.name, got, seq, at, c.counted, order.Received(entry))
			}
		}
		w.stats.Records++
	})
	switch {
	case !held: // dropped for their size
	case c.records == nil:
		c.records = append([]byte{}, records...)
	case !bytes.Equal(c.records, records):
		w.violation("I38", "%s has records %q of entry %d; another copy has %q", p.name, records, seq, c.records)
	}
	w.check.called[hash] = c
	if last, _ := p.st.Last(); seq == last && c.known {
		if list, _ := p.r.FunctionsInForce(); !slices.Equal(list, c.inForce) {
			w.violation("I39", "%s calls %v after entry %d; its log has %v", p.name, list, seq, c.inForce)
		}
	}
}

// after is the account after one more entry.
func (c called) after(entry []byte) called {
	c.records, c.known = nil, true
	switch order.Kind(entry[4]) {
	case order.KindFunctions:
		f, err := order.ParseFunctionsChange(order.Payload(entry))
		if err != nil {
			panic(err) // stored entries are valid
		}
		switch f.Op {
		case order.FunctionsOffer:
			c.offered = f.Offer
		case order.FunctionsBegin:
			had, has := named(c.inForce), named(c.offered)
			if had != has {
				c.counted = 0
			}
			c.inForce, c.offered = c.offered, nil
		}
	case order.KindOrder, order.KindExecute:
		if bytes.Contains(order.Message(entry), []byte("\x0135=D\x01")) && named(c.inForce) != (order.Function{}) {
			c.counted++
		}
	}
	return c
}

// named is the counter of a list, or none.
func named(list []order.Function) order.Function {
	for _, f := range list {
		if f.Name == counter {
			return f
		}
	}
	return order.Function{}
}

var _ machine.Code = (*loader)(nil)
