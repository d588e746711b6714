package region

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// model is what the regions have to have, as maps.
type model struct {
	values map[string]modelValue
	taken  map[uint64][]byte // by clientSeq, of one session
	now    int64

	skipped map[uint64]uint32 // likewise: what the reply of a batch says
}

type modelValue struct {
	version uint64
	expire  int64
	value   []byte
}

// run is a State under random operations, and the model beside it.
type run struct {
	t   *testing.T
	rng *rand.Rand
	s   *State
	m   model
	seq uint64

	clears int
}

// receive forgets what the session has the answers of.
func (m *model) receive(upTo uint64) {
	for n := range m.taken {
		if n <= upTo {
			delete(m.taken, n)
		}
	}
	for n := range m.skipped {
		if n <= upTo {
			delete(m.skipped, n)
		}
	}
}

func newRun(t *testing.T, seed uint64) *run {
	r := &run{t: t, rng: rand.New(rand.NewPCG(seed, 65)), s: New(), m: model{values: map[string]modelValue{}, taken: map[uint64][]byte{}, skipped: map[uint64]uint32{}}}
	r.entry(0, &order.RegionOp{Op: order.RegionConfig, Value: le.AppendUint64(le.AppendUint64(nil, 1<<20), seed)})
	r.entry(0, &order.RegionOp{Op: order.RegionDefine, Key: []byte("positions"), Value: make([]byte, 16)})
	return r
}

// entry applies an operation as a log does: its payload is encoded and checked.
func (r *run) entry(clientSeq uint64, o *order.RegionOp) {
	r.t.Helper()
	r.seq++
	r.m.now = max(r.m.now, int64(r.seq)*10)
	payload := o.Append(nil)
	e := order.Entry{Kind: order.KindRegion, Seq: r.seq, Session: 3, ClientSeq: clientSeq, TimeNs: int64(r.seq) * 10, Size: uint32(order.HeaderSize + len(payload))}
	b := make([]byte, order.HeaderSize)
	e.Put(b)
	if _, err := order.DecodeEntry(append(b, payload...), &e); err != nil {
		r.t.Fatalf("entry %d: %v", r.seq, err)
	}
	back := order.RegionOf(payload)
	if err := r.s.Check(&e, &back); err != nil {
		r.t.Fatal(err)
	}
	r.s.Apply(&e, &back)
	for k, v := range r.m.values {
		if v.expire != 0 && v.expire <= r.m.now {
			delete(r.m.values, k)
		}
	}
}

func (r *run) step() {
	key := fmt.Sprintf("key-%d", r.rng.IntN(60))
	if r.rng.IntN(10) == 0 {
		key += string(bytes.Repeat([]byte{'k'}, r.rng.IntN(400)))
	}
	o := order.RegionOp{Op: order.RegionPut + order.RegionKind(r.rng.IntN(4)), Key: []byte(key)}
	value := make([]byte, r.rng.IntN(300))
	for i := range value {
		value[i] = byte(r.rng.Uint32())
	}
	now := int64(r.seq+1) * 10
	old, has := r.m.values[key]
	if has && old.expire != 0 && old.expire <= now {
		has = false
	}
	switch c := r.seq + 1; o.Op {
	case order.RegionPut:
		o.Value = value
		if r.rng.IntN(3) == 0 {
			o.ExpireNs = now + 1 + r.rng.Int64N(400)
		}
		r.want(Admitted, &o, has, old)
		r.entry(c, &o)
		r.m.values[key] = modelValue{r.seq, o.ExpireNs, value}
	case order.RegionPatch:
		if !has {
			r.want(Failed, &o, has, old)
			return
		}
		o.Offset, o.Value = uint32(r.rng.IntN(len(old.value)+1)), value
		r.want(Admitted, &o, has, old)
		r.entry(c, &o)
		patched := slices.Clone(old.value)
		patched = append(patched, make([]byte, max(0, int(o.Offset)+len(value)-len(patched)))...)
		copy(patched[o.Offset:], value)
		r.m.values[key] = modelValue{r.seq, old.expire, patched}
	default:
		if !has {
			r.want(Failed, &o, has, old)
			return
		}
		if r.rng.IntN(3) == 0 {
			o.Received = r.seq - uint64(r.rng.IntN(5))
		}
		r.entry(c, &o)
		delete(r.m.values, key)
		r.m.receive(o.Received)
		if o.Op == order.RegionTake {
			r.m.taken[c] = old.value
		}
	}
	if r.rng.IntN(20) == 0 {
		r.batch()
	}
	if r.rng.IntN(300) == 0 {
		r.entry(r.seq+1, &order.RegionOp{Op: order.RegionClear})
		clear(r.m.values)
		r.clears++
	}
}

// want checks what Admit returns, for no condition and for those of the present version.
func (r *run) want(v Verdict, o *order.RegionOp, has bool, old modelValue) {
	r.t.Helper()
	now := int64(r.seq+1) * 10
	got, version := r.s.Admit(now, o, Always, 0)
	if got != v || has && version != old.version || !has && version != 0 {
		r.t.Fatalf("entry %d: Admit of %s %q returns %d and version %d, want %d and %d", r.seq+1, o.Op, o.Key, got, version, v, old.version)
	}
	if o.Op == order.RegionPut {
		if got, _ := r.s.Admit(now, o, IfAbsent, 0); (got == Failed) != has {
			r.t.Fatalf("put if absent of %q returns %d, and the key is there: %v", o.Key, got, has)
		}
		if got, _ := r.s.Admit(now, o, IfVersion, old.version+1); got != Failed {
			r.t.Fatalf("put of another version of %q returns %d, want %d", o.Key, got, Failed)
		}
	}
}

// check compares a state with the model.
func (r *run) check(s *State) {
	r.t.Helper()
	var keys []string
	for k := range r.m.values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	i := 0
	s.Scan(0, nil, false, 1<<20, func(v *Value) bool {
		if i == len(keys) || string(v.Key) != keys[i] {
			r.t.Fatalf("entry %d: the %dth key is %q, want one of %d keys in order", r.seq, i, v.Key, len(keys))
		}
		m := r.m.values[keys[i]]
		if v.Version != m.version || v.ExpireNs != m.expire || !bytes.Equal(v.Value, m.value) {
			r.t.Fatalf("entry %d: %q has version %d, expires %d, %x; want %d, %d, %x", r.seq, v.Key, v.Version, v.ExpireNs, v.Value, m.version, m.expire, m.value)
		}
		i++
		return true
	})
	if i != len(keys) {
		r.t.Fatalf("entry %d: %d keys, want %d", r.seq, i, len(keys))
	}
	for c, n := range r.m.skipped {
		if got, _ := s.Taken(nil, 3, c); order.SkippedIn(got) != n {
			r.t.Fatalf("entry %d: batch %d skipped %d keys, want %d", r.seq, c, order.SkippedIn(got), n)
		}
	}
	for c, value := range r.m.taken {
		if got, held := s.Taken(nil, 3, c); !held || !bytes.Equal(got, value) {
			r.t.Fatalf("entry %d: what operation %d took is %x (%v), want %x", r.seq, c, got, held, value)
		}
	}
	if s.Digest() != s.Recount() {
		r.t.Fatalf("entry %d: digest is %x, recounted %x", r.seq, s.Digest(), s.Recount())
	}
}

func copyOf(t *testing.T, s *State) *State {
	t.Helper()
	c := NewRestore()
	for next, parts := 0, 0; next < s.Slots(); parts++ {
		var part []byte
		part, next = s.AppendSlots(nil, next, 2000)
		if err := c.Restore(part, next, s.Last()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Restored(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStateAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		r := newRun(t, seed)
		for range 600 {
			r.step()
			if r.rng.IntN(20) == 0 {
				r.check(r.s)
			}
			if r.rng.IntN(150) == 0 { // a learner goes on with what it restored
				c := copyOf(t, r.s)
				twin := c.Clone()
				r.check(twin)
				if c.Digest() != r.s.Digest() || twin.Digest() != r.s.Digest() {
					t.Fatalf("seed %d, entry %d: digest is %x, that of a copy %x and of its clone %x", seed, r.seq, r.s.Digest(), c.Digest(), twin.Digest())
				}
				r.s = c
			}
		}
		r.check(r.s.Clone())
	}
}

func TestMemoryComesBack(t *testing.T) {
	r := newRun(t, 1)
	for range 400 {
		r.step()
	}
	r.entry(r.seq+1, &order.RegionOp{Op: order.RegionClear, Received: r.seq})
	r.entry(0, &order.RegionOp{Op: order.RegionTick})
	if r.s.Used() != 0 || r.s.Busy() {
		t.Errorf("after a clear %d bytes are used, want 0", r.s.Used())
	}
}

func TestBounds(t *testing.T) {
	r := newRun(t, 1)
	put := func(key string, n int) Verdict {
		o := order.RegionOp{Op: order.RegionPut, Key: []byte(key), Value: make([]byte, n)}
		v, _ := r.s.Admit(1, &o, Always, 0)
		if v == Admitted {
			r.entry(r.seq+1, &o)
		}
		return v
	}
	n := 0
	for ; put(fmt.Sprint(n), 60000) == Admitted; n++ {
	}
	if want := 1 << 20 / (60000 + 60000/nextData*nextFixed); n < want-1 || n > want {
		t.Errorf("%d values of 60000 bytes fit 1 MiB, want about %d", n, want)
	}
	if v := put("0", 60000); v != Admitted {
		t.Errorf("a put of the same size over a value returns %d, want %d: it takes no more", v, Admitted)
	}
	r.entry(0, &order.RegionOp{Op: order.RegionDefine, Region: 1, Key: []byte("small"), Value: le.AppendUint64(le.AppendUint64(nil, 256), 0)})
	r.entry(r.seq+1, &order.RegionOp{Op: order.RegionClear})
	r.entry(0, &order.RegionOp{Op: order.RegionTick})
	for i, want := range []Verdict{Admitted, Admitted, Full} {
		o := order.RegionOp{Op: order.RegionPut, Region: 1, Key: []byte{byte(i)}}
		if v, _ := r.s.Admit(1, &o, Always, 0); v != want {
			t.Fatalf("put %d in a region of two blocks returns %d, want %d", i, v, want)
		} else if v == Admitted {
			r.entry(r.seq+1, &o)
		}
	}
}

// TestRestoreRefuses changes each byte of a snapshot: it is refused, or another state, and
// never a panic.
func TestRestoreRefuses(t *testing.T) {
	r := newRun(t, 3)
	for range 60 {
		r.step()
	}
	state, next := r.s.AppendSlots(nil, 0, 1<<20)
	for i := range state {
		for _, bit := range []byte{1, 0x80} {
			c, b := NewRestore(), slices.Clone(state)
			b[i] ^= bit
			if err := c.Restore(b, next, r.seq); err == nil {
				if err = c.Restored(); err == nil && c.Digest() == r.s.Digest() {
					t.Fatalf("byte %d of %d changed by %#x: restored with the digest of before", i, len(state), bit)
				}
			}
		}
	}
}
