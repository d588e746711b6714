package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

const second = 1_000_000_000

// desk is a partition that stores orders, with three sessions.
type desk struct {
	t   testing.TB
	m   Machine
	now int64
	seq uint64
	at  map[uint32]uint64
	// second, if any, gets the same entries.
	second *Machine
}

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, at: map[uint32]uint64{}, now: 1000 * second}
	d.m.Begin(8, 0)
	for slot := range uint32(3) {
		d.add(order.Entry{Kind: order.KindSessionOpen, Session: slot, ClientSeq: 1}, le.AppendUint64(le.AppendUint64(nil, 7), uint64(slot)))
	}
	return d
}

// add applies an entry as a primary makes it, through its bytes.
func (d *desk) add(e order.Entry, payload []byte) {
	d.t.Helper()
	d.seq++
	e.Seq, e.Epoch, e.TimeNs, e.Size = d.seq, 1, d.now, uint32(order.HeaderSize+len(payload))
	b := append(make([]byte, order.HeaderSize), payload...)
	e.Put(b)
	if _, err := order.DecodeEntry(b, &e); err != nil {
		d.t.Fatal(err)
	}
	for _, m := range []*Machine{&d.m, d.second} {
		if m == nil {
			continue
		}
		if err := m.Check(&e, payload); err != nil {
			d.t.Fatal(err)
		}
		m.Apply(&e, payload)
	}
}

func (d *desk) guard(v order.Guard) {
	d.t.Helper()
	d.add(order.Entry{Kind: order.KindGuard}, v.Append(nil))
}

func (d *desk) profile(text string) {
	d.t.Helper()
	p, err := limits.ParseProfile([]byte(text))
	if err != nil {
		d.t.Fatal(err)
	}
	d.guard(order.Guard{Op: order.GuardProfile, Who: []byte("node a"), Profile: p.Canonical()})
}

func (d *desk) kill(op order.GuardOp, scope order.GuardScope, name string) {
	d.t.Helper()
	d.guard(order.Guard{Op: op, Scope: scope, Name: []byte(name), Who: []byte("ann"), Why: []byte("drill")})
}

// send makes an entry of an order if the limits admit it, which must change nothing.
func (d *desk) send(slot uint32, fields string) limits.Reason {
	d.t.Helper()
	msg := fixMessage(fields)
	var o order.Order
	if err := order.Parse(msg, &o); err != nil {
		d.t.Fatal(err)
	}
	before := d.m.Recount()
	why := d.m.Admit(&Offer{TimeNs: d.now, Session: slot, Message: msg, Fields: &o.Fields})
	if after := d.m.Recount(); before != after || after != d.m.Digest() {
		d.t.Fatalf("%s: Admit changed the digest from %x to %x; maintained %x", fields, before, after, d.m.Digest())
	}
	if why == limits.None {
		d.at[slot]++
		d.add(order.Entry{Kind: order.KindOrder, Session: slot, ClientSeq: d.at[slot], Fields: o.Fields}, msg)
	}
	return why
}

func (d *desk) want(slot uint32, fields string, want limits.Reason) {
	d.t.Helper()
	if got := d.send(slot, fields); got != want {
		d.t.Errorf("session %d: %s: %v, want %v", slot, fields, got, want)
	}
}

// TestGuardRules tries each rule that a partition that stores orders has.
func TestGuardRules(t *testing.T) {
	d := newDesk(t)
	d.want(0, "35=D 11=a 55=IBM 54=1 38=999999999 40=2 44=5.00", limits.None)
	d.profile(`{"traderTag":50,"maxOrderVolume":"1000","maxOrderValue":"5000.50","priceCollar":{"referenceBps":1000},"duplicateWindowMs":1000,
		"maxMessages":{"perSecond":10,"burst":8,"reserve":2},"referencePrices":[{"symbol":"IBM","price":"5"},{"symbol":"XYZ","price":"1"}],
		"restrictedSymbols":["XYZ"],"authorisedPersons":["ann","bob"]}`)
	ok := "35=D 1=acc 50=ann 55=IBM 54=1 38=100 40=2 44=5.%02d 11=%d"
	d.want(0, fmt.Sprintf(ok, 0, 1), limits.None)
	d.want(0, fmt.Sprintf(ok, 0, 2), limits.Duplicate)
	d.want(1, fmt.Sprintf(ok, 0, 3), limits.None) // another session's is none
	d.want(0, "35=D 11=4 50=ann 55=IBM 54=1 38=1001 40=2 44=4.90", limits.MaxVolume)
	d.want(0, "35=D 11=5 50=ann 55=IBM 54=1 38=1000 40=2 44=5.01", limits.MaxValue)
	d.want(0, "35=D 11=6 50=ann 55=IBM 54=1 38=10 40=2 44=5.51", limits.PriceCollar)
	d.want(0, "35=D 11=7 50=ann 55=IBM 54=1 38=10 40=2 44=5.00001", limits.BadField)
	d.want(0, "35=D 11=8 50=ann 55=OTHER 54=1 38=10 40=2 44=5", limits.NoPrice)
	d.want(0, "35=D 11=9 50=ann 55=XYZ 54=1 38=10 40=2 44=1", limits.RestrictedSymbol)
	d.want(0, "35=D 11=10 50=eve 55=IBM 54=1 38=10 40=2 44=5", limits.NotAuthorised)
	d.want(0, "35=D 11=11 55=IBM 54=1 38=10 40=2 44=5", limits.NotAuthorised)
	d.want(0, "35=D 11=12 50=bob 55=IBM 54=1 38=10 40=1", limits.None) // charged the end of the collar
	d.want(0, "35=D 11=13 50=bob 55=IBM 54=1 38=1000 40=1", limits.MaxValue)
	d.want(0, "35=G 11=14 41=1 50=ann 55=IBM 54=1 38=100 40=2 44=5.00", limits.None) // no duplicate: a replace
	d.want(0, "35=G 11=15 41=1 50=ann 55=IBM 54=1 38=1001 40=2 44=5.00", limits.MaxVolume)
	for n, want := range []limits.Reason{limits.None, limits.None, limits.None, limits.TooManyMessages} {
		d.want(0, fmt.Sprintf(ok, n+1, 20+n), want)
	}
	d.want(0, "35=F 11=30 41=1 50=ann 55=IBM 54=1 38=100", limits.None) // the reserve
	d.want(0, "35=F 11=31 41=1 50=ann 55=IBM 54=1 38=100", limits.None)
	d.want(0, "35=F 11=32 41=1 50=ann 55=IBM 54=1 38=100", limits.TooManyMessages)
	d.now += 300_000_000
	d.want(0, fmt.Sprintf(ok, 9, 33), limits.None) // three of them, one above the reserve
	d.want(0, fmt.Sprintf(ok, 10, 34), limits.TooManyMessages)
	d.now += second
	d.want(0, fmt.Sprintf(ok, 0, 35), limits.None) // the window is over
	d.profile(`{"maxOrderVolume":"10"}`)
	d.want(2, "35=D 11=40 55=XYZ 54=1 38=10 40=2 44=500.000000", limits.None)
	d.want(2, "35=D 11=41 55=XYZ 54=1 38=11 40=2 44=500", limits.MaxVolume)
	d.profile(`{}`)
	d.want(2, "35=D 11=42 55=XYZ 54=1 38=11.123456789 40=2 44=500", limits.None)
}

// TestGuardKills tries the scopes, before and after their names occur in an order.
func TestGuardKills(t *testing.T) {
	for _, known := range []bool{false, true} {
		d := newDesk(t)
		d.profile(`{"traderTag":50,"deskTag":57,"algorithmTag":58}`)
		fields := "35=D 11=%d 1=acc 50=ann 57=d1 58=alg 55=IBM 54=1 38=1 40=1"
		other := "35=D 11=%d 1=other 50=bob 57=d2 58=alg2 55=IBM 54=1 38=1 40=1"
		n := 0
		next := func(f string) string { n++; return fmt.Sprintf(f, n) }
		if known {
			d.want(1, next(fields), limits.None)
		}
		for scope, name := range []string{string(SessionName([2]uint64{7, 1})), "ann", "d1", "alg", "acc", ""} {
			s := order.GuardScope(scope)
			d.kill(order.GuardKill, s, name)
			d.kill(order.GuardKill, s, name) // again: nothing
			d.want(1, next(fields), limits.Killed)
			d.want(1, next("35=F 11=%d 41=1 1=acc 50=ann 57=d1 58=alg 55=IBM 54=1 38=1"), limits.None)
			free := limits.None
			if s == order.GuardAll {
				free = limits.Killed
			}
			d.want(2, next(other), free)
			if k := d.m.Guard.Kills(); len(k) != 1 || k[0].Who != "ann" || k[0].Why != "drill" || k[0].Scope != s {
				t.Fatalf("kills are %+v", k)
			}
			d.kill(order.GuardUnkill, s, name)
			d.want(1, next(fields), limits.None)
		}
	}
}

// TestGuardSessionEnds: a kill of a session does not pass to the next one in its slot.
func TestGuardSessionEnds(t *testing.T) {
	d := newDesk(t)
	d.kill(order.GuardKill, order.GuardSession, string(SessionName([2]uint64{7, 1})))
	d.want(1, "35=D 11=1 55=IBM 54=1 38=1 40=1", limits.Killed)
	d.want(1, "35=F 11=2 41=1 55=IBM 54=1 38=1", limits.None)
	d.add(order.Entry{Kind: order.KindSessionOpen, Session: 1, ClientSeq: 2}, le.AppendUint64(le.AppendUint64(nil, 8), 1))
	d.at[1] = 0
	d.want(1, "35=D 11=3 55=IBM 54=1 38=1 40=1", limits.None)
	d.add(order.Entry{Kind: order.KindSessionOpen, Session: 1, ClientSeq: 3}, le.AppendUint64(le.AppendUint64(nil, 7), 1))
	d.at[1] = 0
	d.want(1, "35=D 11=4 55=IBM 54=1 38=1 40=1", limits.Killed)
}

// TestGuardSnapshot: a machine restored from a snapshot at any entry answers alike.
func TestGuardSnapshot(t *testing.T) {
	for seed := range uint64(3) {
		d := newDesk(t)
		rnd := rand.New(rand.NewPCG(seed, 62))
		for n := range 300 {
			d.now += int64(rnd.IntN(200_000_000))
			who := string(rune('a' + rnd.IntN(8)))
			switch k := rnd.IntN(100); {
			case k < 3:
				d.profile(fmt.Sprintf(`{"traderTag":50,"maxOrderVolume":"%d","duplicateWindowMs":%d,"maxMessages":{"perSecond":%d,"burst":9},"restrictedSymbols":["S%d"]}`,
					1+rnd.IntN(1000), rnd.IntN(3000), 1+rnd.IntN(20), rnd.IntN(5)))
			case k < 8:
				d.kill(order.GuardKill+order.GuardOp(rnd.IntN(2)), order.GuardTrader+order.GuardScope(3*rnd.IntN(2)), who)
			default:
				d.send(uint32(rnd.IntN(3)), fmt.Sprintf("35=D 11=o%d 1=%s 50=%s 55=S%d 54=%d 38=%d 40=2 44=%d", n, string(rune('a'+rnd.IntN(8))), who, rnd.IntN(8), 1+rnd.IntN(2), 1+rnd.IntN(900), 1+rnd.IntN(3)))
			}
			if rnd.IntN(20) == 0 {
				m := restored(t, &d.m, d.seq)
				if m.Digest() != d.m.Digest() || m.Recount() != d.m.Digest() {
					t.Fatalf("seed %d entry %d: digest %x, restored %x, recounted %x", seed, d.seq, d.m.Digest(), m.Digest(), m.Recount())
				}
				c := m.Clone()
				d.m, d.second = *m, &c
			}
		}
		if d.second == nil || d.second.Digest() != d.m.Digest() {
			t.Errorf("seed %d: a clone has another digest", seed)
		}
	}
}

// restored returns what a learner makes of a snapshot, sent part by part.
func restored(t *testing.T, from *Machine, base uint64) *Machine {
	t.Helper()
	m := &Machine{}
	m.Begin(int(from.Sessions.window), base)
	if from.Books != nil {
		m.Match()
	}
	for slot := uint32(0); int(slot) < from.SnapshotSlots(); {
		part, next := from.AppendSnapshot(nil, slot)
		if err := m.Restore(part, base, slot, next); err != nil {
			t.Fatal(err)
		}
		slot = next
	}
	if err := m.Restored(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGuardSnapshotDamaged: a snapshot that is cut or changed is refused, or is one.
func TestGuardSnapshotDamaged(t *testing.T) {
	d := newDesk(t)
	d.profile(`{"traderTag":50,"maxOrderVolume":"10","restrictedSymbols":["X"],"duplicateWindowMs":1000}`)
	d.kill(order.GuardKill, order.GuardTrader, "eve")
	d.want(0, "35=D 11=1 1=acc 50=ann 55=IBM 54=1 38=1 40=1", limits.None)
	var parts [][]byte
	var ends []uint32
	for slot := uint32(0); int(slot) < d.m.SnapshotSlots(); {
		part, next := d.m.AppendSnapshot(nil, slot)
		parts, ends, slot = append(parts, part), append(ends, next), next
	}
	try := func(k int, part []byte) (*Machine, error) {
		m := &Machine{}
		m.Begin(8, d.seq)
		from := uint32(0)
		for i := range parts {
			p := parts[i]
			if i == k {
				p = part
			}
			if err := m.Restore(p, d.seq, from, ends[i]); err != nil {
				return nil, err
			}
			from = ends[i]
		}
		if err := m.Restored(); err != nil {
			return nil, err
		}
		return m, nil
	}
	for k, part := range parts {
		for at := range part {
			if at%5 > 0 {
				continue
			}
			if _, err := try(k, part[:at]); err == nil {
				t.Fatalf("part %d cut at %d of %d was taken", k, at, len(part))
			}
		}
		for at := 0; at < len(part); at += 3 {
			damaged := append([]byte(nil), part...)
			damaged[at] ^= 1
			if m, err := try(k, damaged); err == nil && m.Digest() == d.m.Digest() {
				t.Errorf("byte %d of part %d was changed, and the state is the same", at, k)
			}
		}
	}
}

// TestGuardOff: without an entry of kind guard the digest and the snapshot are those of
// releases without limits.
func TestGuardOff(t *testing.T) {
	d := newDesk(t)
	d.want(0, "35=D 11=1 55=IBM 54=1 38=1 40=1", limits.None)
	if le.Uint64(encode(&d.m)[16:])&hasGuard != 0 || d.m.Guard != nil {
		t.Error("a partition without limits has them in its snapshot")
	}
	if want := d.m.digest(d.m.Sessions.sum, d.m.Orders.sum, d.m.Cursors.sum); d.m.Digest() != want {
		t.Errorf("digest %x, without limits %x", d.m.Digest(), want)
	}
}

// TestGuardRefuses changes that no primary makes.
func TestGuardRefuses(t *testing.T) {
	d := newDesk(t)
	for _, v := range []order.Guard{
		{Op: order.GuardProfile, Who: []byte("a"), Profile: []byte(`{"maxOrderVolume":"x"}`)},
		{Op: order.GuardProfile, Who: []byte("a"), Profile: []byte(`{ }`)},
		{Op: order.GuardProfile, Who: []byte("a"), Profile: []byte(`{"creditThreshold":{"total":"5"}}`)},
		{Op: order.GuardKill, Scope: order.GuardSession, Name: []byte("7"), Who: []byte("a"), Why: []byte("b")},
	} {
		if err := d.m.Check(&order.Entry{Seq: 9, Kind: order.KindGuard}, v.Append(nil)); err == nil {
			t.Errorf("%s %q was taken", v.Name, v.Profile)
		}
	}
	for n := range MaxKills - 1 {
		d.kill(order.GuardKill, order.GuardTrader, fmt.Sprint(n))
	}
	more := order.Guard{Op: order.GuardKill, Scope: order.GuardTrader, Name: []byte("x"), Who: []byte("a"), Why: []byte("b")}
	if err := d.m.Check(&order.Entry{Seq: 9, Kind: order.KindGuard}, more.Append(nil)); err == nil {
		t.Error("a kill beyond the bound was taken")
	}
	d.kill(order.GuardKill, order.GuardAll, "")
}

// TestGuardCredit: in a partition that matches, orders and executions use credit, and an
// algorithm is halted.
func TestGuardCredit(t *testing.T) {
	x := newExchange(t)
	add := func(v order.Guard) { x.addOf(order.Entry{Kind: order.KindGuard}, v.Append(nil)) }
	p, err := limits.ParseProfile([]byte(`{"algorithmTag":58,"creditThreshold":{"default":"1000"},"repeatedExecutions":{"count":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	add(order.Guard{Op: order.GuardProfile, Who: []byte("a"), Profile: p.Canonical()})
	send := func(slot uint32, fields string, want limits.Reason) {
		t.Helper()
		msg := fixMessage(fields)
		var o order.Order
		if err := order.Parse(msg, &o); err != nil {
			t.Fatal(err)
		}
		i, _ := x.m.Books.Resolve(msg, &o, termsOf(msg, &o), x.m.Books.OwnerOf(slot))
		if why := x.m.Admit(&Offer{Session: slot, Message: msg, Fields: &o.Fields, Orig: i.Orig, TimeNs: int64(len(x.log)) * 1000, Digits: [2]uint8{2, 0}}); why != want {
			t.Errorf("%s: %v, want %v", fields, why, want)
		}
		if want == limits.None {
			x.send(slot, fields)
		}
		if x.m.Digest() != x.m.Recount() {
			t.Fatalf("%s: digest %x, recounted %x", fields, x.m.Digest(), x.m.Recount())
		}
	}
	send(0, "35=D 11=a 1=A 58=alg 55=IBM 54=1 38=100 40=2 44=5.00", limits.None) // 500
	send(0, "35=D 11=b 1=A 58=alg 55=IBM 54=1 38=101 40=2 44=5.00", limits.ClientCredit)
	send(0, "35=D 11=c 1=A 58=alg 55=IBM 54=1 38=100 40=2 44=5.00", limits.None)
	send(0, "35=D 11=d 1=A 58=alg 55=IBM 54=1 38=1 40=2 44=5.00", limits.ClientCredit)
	send(0, "35=D 11=m 1=A 58=alg 55=IBM 54=1 38=1 40=1", limits.NoPrice)
	send(0, "35=G 11=e 41=a 1=A 58=alg 55=IBM 54=1 38=90 40=2 44=5.00", limits.None)
	send(0, "35=D 11=f 1=A 58=alg 55=IBM 54=1 38=10 40=2 44=5.00", limits.None)
	send(1, "35=D 11=g 1=B 58=alg2 55=IBM 54=2 38=190 40=2 44=5.00", limits.None) // trades with two of them
	send(0, "35=F 11=h 41=f 1=A 58=alg 55=IBM 54=1 38=10", limits.None)
	send(0, "35=D 11=i 1=A 58=alg 55=IBM 54=1 38=10 40=2 44=5.00", limits.Halted)
	send(0, "35=D 11=j 1=A 58=alg3 55=IBM 54=1 38=10 40=2 44=5.00", limits.None) // what the cancel let go
	send(0, "35=D 11=k 1=A 58=alg3 55=IBM 54=1 38=1 40=2 44=5.00", limits.ClientCredit)
	add(order.Guard{Op: order.GuardUnkill, Scope: order.GuardAlgorithm, Name: []byte("alg"), Who: []byte("ann"), Why: []byte("checked")})
	send(0, "35=F 11=l 41=j 1=A 58=alg3 55=IBM 54=1 38=10", limits.None)
	send(0, "35=D 11=n 1=A 58=alg 55=IBM 54=1 38=10 40=2 44=5.00", limits.None)
	if m := restored(t, &x.m, uint64(len(x.log))); m.Digest() != x.m.Digest() {
		t.Errorf("digest %x, restored %x", x.m.Digest(), m.Digest())
	}
}

// BenchmarkGuard reports what the limits of an order take: Admit on the primary and Apply
// everywhere, beside Apply without limits.
func BenchmarkGuard(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("limits=%v", on), func(b *testing.B) {
			d := newDesk(b)
			if on {
				d.profile(`{"traderTag":50,"maxOrderVolume":"1000","maxOrderValue":"5000000","priceCollar":{"referenceBps":1000},"maxMessages":{"perSecond":1000000},
					"referencePrices":[{"symbol":"IBM","price":"5"}],"authorisedPersons":["ann"]}`)
			}
			msg := fixMessage("35=D 11=a 1=acc 50=ann 55=IBM 54=1 38=100 40=2 44=5.00")
			var o order.Order
			if err := order.Parse(msg, &o); err != nil {
				b.Fatal(err)
			}
			e := order.Entry{Kind: order.KindOrder, Fields: o.Fields, Epoch: 1}
			offer := Offer{Message: msg, Fields: &o.Fields}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				e.Seq, e.ClientSeq, e.TimeNs = uint64(n)+10, uint64(n)+1, d.now+int64(n)*10_000
				offer.TimeNs = e.TimeNs
				if d.m.Admit(&offer) != limits.None {
					b.Fatal("refused")
				}
				d.m.Apply(&e, msg)
			}
		})
	}
}
