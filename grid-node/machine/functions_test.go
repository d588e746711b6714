package machine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/function/post"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// functionLog applies entries to a machine with functions, checked as a replica does.
type functionLog struct {
	t   *testing.T
	m   machine.Machine
	seq uint64
	n   uint64 // orders
}

func newFunctionLog(t *testing.T) *functionLog {
	l := &functionLog{t: t}
	l.m.Begin(8, 0)
	l.m.Run(post.New())
	if err := l.add(order.Entry{Kind: order.KindSessionOpen}, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *functionLog) add(e order.Entry, payload []byte) error {
	l.t.Helper()
	l.seq++
	e.Seq, e.Epoch, e.TimeNs = l.seq, 1, int64(1000*l.seq)
	e.Size = uint32(order.HeaderSize + len(payload))
	b := make([]byte, order.HeaderSize)
	e.Put(b)
	var decoded order.Entry
	_, err := order.DecodeEntry(append(b, payload...), &decoded)
	if err == nil {
		err = l.m.Check(&e, payload)
	}
	if err != nil {
		l.seq--
		return err
	}
	l.m.Apply(&e, payload)
	if l.m.Digest() != l.m.Recount() {
		l.t.Errorf("entry %d: the digest is not of the state", e.Seq)
	}
	return nil
}

// order applies an order of an account.
func (l *functionLog) order(account string) {
	l.t.Helper()
	l.n++
	msg := fmt.Sprintf("8=FIX.4.4\x019=0\x0135=D\x0111=c%d\x0155=IBM\x0154=1\x0138=10\x011=%s\x0110=000\x01", l.n, account)
	e := order.Entry{Kind: order.KindOrder, ClientSeq: l.n, Fields: order.Fields{Side: '1', ClOrdIDOff: uint16(strings.Index(msg, "\x0111=") + 4), ClOrdIDLen: 2}}
	if err := l.add(e, []byte(msg)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *functionLog) change(c order.FunctionsChange) error {
	l.t.Helper()
	return l.add(order.Entry{Kind: order.KindFunctions}, c.Append(nil))
}

func (l *functionLog) must(c order.FunctionsChange) {
	l.t.Helper()
	if err := l.change(c); err != nil {
		l.t.Fatal(err)
	}
}

var functionModules = map[[sha256.Size]byte][]byte{}

func defined(name string, module []byte) order.Function {
	f := order.Function{Name: name, SHA256: sha256.Sum256(module), Fuel: 100_000, Pages: 16}
	functionModules[f.SHA256] = module
	return f
}

// force puts functions in force, as a primary does.
func (l *functionLog) force(list ...order.Function) {
	l.t.Helper()
	l.must(order.FunctionsChange{Op: order.FunctionsOffer, Offer: list})
	for {
		sum, have, missing := l.m.Functions.Missing()
		if !missing {
			break
		}
		module := functionModules[sum]
		l.must(order.FunctionsChange{Op: order.FunctionsPiece, SHA256: sum, Size: uint32(len(module)), Offset: uint32(have), Piece: module[have:min(have+1000, len(module))]})
	}
	l.must(order.FunctionsChange{Op: order.FunctionsBegin})
}

// counted is what count-accounts recorded of the last order: of its account, and all.
func (l *functionLog) counted() (of, all uint64) {
	l.t.Helper()
	for _, r := range l.m.Functions.Records() {
		if r.Function == "count" && r.Fault == 0 {
			return binary.LittleEndian.Uint64(r.Bytes), binary.LittleEndian.Uint64(r.Bytes[24:])
		}
	}
	l.t.Fatalf("entry %d has no record", l.seq)
	return 0, 0
}

// restored returns a machine with the state of m, as a learner makes it, and its clone.
func restored(t *testing.T, m *machine.Machine, base uint64) (state, live machine.Machine) {
	t.Helper()
	state.Begin(8, base)
	state.Run(post.New())
	for from := uint32(0); from == 0 || int(from) < m.SnapshotSlots(); {
		part, next := m.AppendSnapshot(nil, from)
		if err := state.Restore(part, base, from, next); err != nil {
			t.Fatal(err)
		}
		from = next
	}
	if err := state.Restored(); err != nil {
		t.Fatal(err)
	}
	return state, state.Clone()
}

func TestFunctionsChange(t *testing.T) {
	l := newFunctionLog(t)
	l.order("A")
	count, audit := defined("count", examples.CountAccounts), defined("audit", examples.AuditTrail)
	l.force(count)
	for range 3 {
		l.order("A")
	}
	if of, all := l.counted(); of != 3 || all != 3 {
		t.Errorf("%d orders of A, %d in all; 3 were given to the function", of, all)
	}
	l.force(audit, count) // what stays in force goes on
	l.order("B")
	if of, all := l.counted(); of != 1 || all != 4 || len(l.m.Functions.Records()) != 2 {
		t.Errorf("%d orders of B, %d in all, %d records; want 1, 4 and 2", of, all, len(l.m.Functions.Records()))
	}
	again := count
	again.Fuel++
	l.force(again) // another function, though of the same module
	l.order("B")
	if of, all := l.counted(); of != 1 || all != 1 {
		t.Errorf("%d orders of B, %d in all; the function is a new one", of, all)
	}
	l.force()
	l.order("B")
	if n := len(l.m.Functions.Records()); n != 0 || len(l.m.Functions.InForce()) != 0 {
		t.Errorf("%d records without a function in force", n)
	}
}

func TestFunctionsSnapshot(t *testing.T) {
	l := newFunctionLog(t)
	unused, _ := l.m.AppendSnapshot(nil, 0)
	l.force(defined("count", examples.CountAccounts), defined("audit", examples.AuditTrail))
	for n := range 20 {
		l.order(fmt.Sprint("A", n%3))
	}
	for _, offer := range []bool{false, true} {
		if offer { // an offer of which a piece is there
			next := defined("next", examples.FatFinger)
			l.must(order.FunctionsChange{Op: order.FunctionsOffer, Offer: []order.Function{next}})
			l.must(order.FunctionsChange{Op: order.FunctionsPiece, SHA256: next.SHA256, Size: uint32(len(examples.FatFinger)), Piece: examples.FatFinger[:100]})
		}
		state, live := restored(t, &l.m, l.seq)
		for _, m := range []*machine.Machine{&state, &live} {
			if m.Digest() != l.m.Digest() || m.Recount() != l.m.Digest() {
				t.Errorf("offer %t: a restored state has another digest", offer)
			}
			l := functionLog{t: t, m: *m, seq: l.seq, n: l.n}
			if l.order("A0"); !offer {
				if of, all := l.counted(); of != 8 || all != 21 {
					t.Errorf("a restored state has counted %d orders of A0, %d in all; want 8 and 21", of, all)
				}
			}
		}
	}
	none := newFunctionLog(t)
	if got, _ := none.m.AppendSnapshot(nil, 0); !bytes.Equal(got, unused) {
		t.Errorf("a snapshot without functions has changed")
	}
}

// TestFunctionsDiffer: states of functions that differ have other digests.
func TestFunctionsDiffer(t *testing.T) {
	a, b := newFunctionLog(t), newFunctionLog(t)
	for _, l := range []*functionLog{a, b} {
		l.force(defined("count", examples.CountAccounts))
		l.order("A")
	}
	if a.m.Digest() != b.m.Digest() {
		t.Fatal("equal logs have other digests")
	}
	b.m.Skip(true)
	a.order("A")
	b.order("A")
	if a.m.Digest() == b.m.Digest() {
		t.Error("a copy that did not call a function has the digest of one that did")
	}
}

func TestFunctionsRefuse(t *testing.T) {
	audit := defined("audit", examples.AuditTrail)
	pre := defined("pre", examples.FatFinger)
	offer := func(list ...order.Function) order.FunctionsChange {
		return order.FunctionsChange{Op: order.FunctionsOffer, Offer: list}
	}
	piece := func(f order.Function, from, to int) order.FunctionsChange {
		m := functionModules[f.SHA256]
		return order.FunctionsChange{Op: order.FunctionsPiece, SHA256: f.SHA256, Size: uint32(len(m)), Offset: uint32(from), Piece: m[from:to]}
	}
	bad := piece(audit, 0, len(examples.AuditTrail))
	bad.Piece = append([]byte{}, bad.Piece...)
	bad.Piece[100] ^= 1
	whole := piece(audit, 0, len(examples.AuditTrail))
	begin := order.FunctionsChange{Op: order.FunctionsBegin}
	deep := audit
	deep.Pages = order.MaxFunctionPages + 1
	for _, c := range []struct {
		name  string
		steps []order.FunctionsChange
		want  string // the last one is refused with this
	}{
		{"no offer", []order.FunctionsChange{begin}, "after an offer"},
		{"a piece without an offer", []order.FunctionsChange{whole}, "after an offer"},
		{"not all is there", []order.FunctionsChange{offer(audit), piece(audit, 0, 100), begin}, "with 100 bytes of module"},
		{"a gap", []order.FunctionsChange{offer(audit), piece(audit, 100, 200)}, "allowed: at 0"},
		{"another module", []order.FunctionsChange{offer(audit), piece(pre, 0, 100)}, "the next of the offer"},
		{"other bytes", []order.FunctionsChange{offer(audit), bad}, "has SHA-256"},
		{"a module that is no Post function", []order.FunctionsChange{offer(pre), piece(pre, 0, len(examples.FatFinger)), begin}, `no export "og1_post"`},
		{"twice", []order.FunctionsChange{offer(audit, audit)}, `name "audit" twice`},
		{"too much memory", []order.FunctionsChange{offer(deep)}, "memory of 65 pages"},
		{"no op", []order.FunctionsChange{{}}, "op 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newFunctionLog(t)
			for i, s := range c.steps {
				err := l.change(s)
				if last := i == len(c.steps)-1; !last && err != nil || last && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Fatalf("step %d: %v, want %q in the last", i, err, c.want)
				}
			}
		})
	}
	var none machine.Machine
	none.Begin(8, 0)
	payload := (&order.FunctionsChange{Op: order.FunctionsOffer}).Append(nil)
	if err := none.Check(&order.Entry{Kind: order.KindFunctions, Seq: 1}, payload); err == nil {
		t.Error("a machine that cannot run functions takes them")
	}
}

// TestFunctionsRestoreRefuses: a text of functions that is cut or changed is refused, never
// a panic.
func TestFunctionsRestoreRefuses(t *testing.T) {
	l := newFunctionLog(t)
	l.force(defined("count", examples.CountAccounts))
	l.order("A")
	part, next := l.m.AppendSnapshot(nil, 0)
	code, refused := post.New(), 0
	for at := 0; at < len(part); at += 1 + at/64 {
		b := append([]byte{}, part...)
		b[at] ^= 0x41
		var m machine.Machine
		m.Begin(8, l.seq)
		m.Run(code)
		if m.Restore(b, l.seq, 0, next) != nil || m.Restored() != nil || m.Digest() != l.m.Digest() {
			refused++
		} else {
			t.Errorf("byte %d may be anything", at)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
