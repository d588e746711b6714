package region

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// batchOf is a batch as a client asks for it: by rising keys, with one value for all puts.
func batchOf(op order.RegionKind, value []byte, keys ...string) order.RegionOp {
	slices.Sort(keys)
	o := order.RegionOp{Op: op}
	if op == order.RegionPatchAll {
		o.Key = value
	}
	for _, k := range slices.Compact(keys) {
		o.Value = order.AppendItem(o.Value, op, []byte(k), value)
		o.Items++
	}
	return o
}

// batch applies one to the state and to the model.
func (r *run) batch() {
	keys := map[string]bool{}
	for range 1 + r.rng.IntN(12) {
		keys[fmt.Sprintf("key-%d", r.rng.IntN(60))] = true
	}
	value := []byte(strings.Repeat("v", r.rng.IntN(200)))
	o := batchOf(order.RegionPutAll+order.RegionKind(r.rng.IntN(3)), value, slices.Collect(maps.Keys(keys))...)
	now := int64(r.seq+1) * 10
	if o.Op == order.RegionPutAll && r.rng.IntN(2) == 0 {
		o.ExpireNs = now + 1 + r.rng.Int64N(400)
	}
	present, skipped := 0, uint32(0)
	for k := range keys {
		if v, has := r.m.values[k]; has && (v.expire == 0 || v.expire > now) || o.Op == order.RegionPutAll {
			present++
		} else {
			skipped++
		}
	}
	v, _, _ := r.s.AdmitBatch(now, &o)
	if present == 0 {
		if v != Failed {
			r.t.Fatalf("entry %d: a %s of keys without values is admitted as %d, want %d", r.seq+1, o.Op, v, Failed)
		}
		return
	}
	if v != Admitted || int(o.Items) != present || o.Skipped() != skipped {
		r.t.Fatalf("entry %d: %s of %d keys, %d with a value: verdict %d, %d items, %d skipped", r.seq+1, o.Op, len(keys), present, v, o.Items, o.Skipped())
	}
	c := r.seq + 1
	r.entry(c, &o)
	r.m.receive(o.Received)
	r.m.skipped[c] = skipped
	o.Each(func(one *order.RegionOp) {
		k := string(one.Key)
		switch old := r.m.values[k]; one.Op {
		case order.RegionPut:
			r.m.values[k] = modelValue{r.seq, o.ExpireNs, value}
		case order.RegionPatch:
			r.m.values[k] = modelValue{r.seq, old.expire, append(slices.Clone(value), old.value[min(len(value), len(old.value)):]...)}
		default:
			delete(r.m.values, k)
		}
	})
}

// TestFinger looks up rising keys in trees of all sizes, those that are there and those that are not.
func TestFinger(t *testing.T) {
	for n := range 80 {
		r := newRun(t, uint64(n))
		var there []string
		for k := range n {
			there = append(there, fmt.Sprintf("%05d", k*7%100*2))
		}
		if n > 0 {
			o := batchOf(order.RegionPutAll, nil, there...)
			r.entry(1, &o)
		}
		for range 40 {
			root := r.s.Regions()[0].root
			f := r.s.search(r.s.Regions()[0])
			for k, odds := 0, 1+r.rng.IntN(20); k < 220; k++ {
				key := fmt.Appendf(nil, "%05d", k)
				if r.rng.IntN(odds) > 0 {
					continue
				}
				if got, want := f.find(key), r.s.find(root, key); got != want {
					t.Fatalf("%d keys: %s is %d, want %d", n, key, got, want)
				}
			}
		}
	}
}

// TestBatchIsAllOrNothing: what does not fit as a whole changes nothing.
func TestBatchIsAllOrNothing(t *testing.T) {
	r := newRun(t, 1)
	r.entry(0, &order.RegionOp{Op: order.RegionDefine, Region: 1, Key: []byte("small"), Value: le.AppendUint64(le.AppendUint64(nil, 10*BlockSize), 0)})
	admit := func(o order.RegionOp) (Verdict, string) {
		t.Helper()
		before := o
		v, _, key := r.s.AdmitBatch(1, &o)
		if v == Admitted {
			r.entry(r.seq+1, &o)
		} else if o.Items != before.Items || o.Reply != nil || len(o.Value) != len(before.Value) {
			t.Errorf("a batch that is refused was changed: %+v", o)
		}
		return v, string(key)
	}
	small := func(op order.RegionKind, value int, keys ...string) order.RegionOp {
		o := batchOf(op, make([]byte, value), keys...)
		o.Region = 1
		return o
	}
	keys := strings.Split("abcdefghijk", "")
	if v, _ := admit(small(order.RegionPutAll, 1, keys...)); v != Full { // each of them would fit
		t.Errorf("11 puts where 10 fit: %d, want %d", v, Full)
	}
	if v, _ := admit(small(order.RegionPutAll, 1, keys[:8]...)); v != Admitted {
		t.Errorf("8 puts where 10 fit: %d", v)
	}
	if v, _ := admit(small(order.RegionPutAll, 2, keys[:8]...)); v != Admitted || r.s.Regions()[1].Blocks != 8 {
		t.Errorf("8 puts over 8: %d, %d blocks", v, r.s.Regions()[1].Blocks)
	}
	if v, _ := admit(small(order.RegionPatchAll, 150, keys[:3]...)); v != Full {
		t.Errorf("3 patches that need a block each where 2 are free: %d, want %d", v, Full)
	}
	if v, _ := admit(small(order.RegionPatchAll, 150, keys[:2]...)); v != Admitted {
		t.Errorf("2 patches that need a block each where 2 are free: %d", v)
	}
	o := small(order.RegionPatchAll, 1, keys[:4]...)
	o.Offset = 3
	if v, key := admit(o); v != Invalid || key != "c" {
		t.Errorf("a patch behind the end of the third value: %d of %q, want %d of c", v, key, Invalid)
	}
	e := order.Entry{Seq: r.seq + 1, Session: 3, ClientSeq: r.seq + 1}
	if err := r.s.Check(&e, &o); err == nil || !strings.Contains(err.Error(), "offset is 3") {
		t.Errorf("the entry of it: %v", err)
	}
	o = small(order.RegionRemoveAll, 0, "a", "x")
	if err := r.s.Check(&e, &o); err == nil || !strings.Contains(err.Error(), `key is "x"`) {
		t.Errorf("an entry that removes a key which is not there: %v", err)
	}
	if v, _ := admit(small(order.RegionPutAll, 1, "a")); v != Admitted {
		t.Error(v)
	}
	if s := r.s; s.Digest() != s.Recount() {
		t.Errorf("digest is %x, recounted %x", s.Digest(), s.Recount())
	}
}

// TestRemovesOfBatchesAreTakenWhenFull: what shrinks is always taken, also with a reply.
func TestRemovesOfBatchesAreTakenWhenFull(t *testing.T) {
	r := newRun(t, 1)
	r.entry(0, &order.RegionOp{Op: order.RegionConfig, Value: le.AppendUint64(le.AppendUint64(nil, 2*BlockSize), 1)})
	o := batchOf(order.RegionPutAll, nil, "a", "b")
	if v, _, _ := r.s.AdmitBatch(1, &o); v != Admitted {
		t.Fatal(v)
	}
	r.entry(1, &o)
	o = batchOf(order.RegionRemoveAll, nil, "a", "x", "y")
	if v, _, _ := r.s.AdmitBatch(1, &o); v != Admitted || o.Items != 1 || o.Skipped() != 2 {
		t.Fatalf("verdict %d, %+v", v, o)
	}
	r.entry(2, &o)
	if r.s.Used() != 2*BlockSize { // b, and the reply
		t.Errorf("%d bytes are used, want those of a value and a reply", r.s.Used())
	}
}

// TestBatchesExpireAlike: values of one batch have one time and one version, and every copy removes the same ones first, also
// one that restored them.
func TestBatchesExpireAlike(t *testing.T) {
	r := newRun(t, 1)
	var keys []string
	for i := range 500 {
		k := fmt.Sprintf("key-%d", i*7919%500)
		if i%5 == 0 {
			k += strings.Repeat("k", 100)
		}
		keys = append(keys, k)
	}
	o := batchOf(order.RegionPutAll, []byte("v"), keys...)
	o.ExpireNs = 1000
	r.entry(1, &o)
	c := copyOf(t, r.s)
	for n := range 12 {
		e := order.Entry{Seq: r.seq + 1, TimeNs: 1000}
		r.seq++
		tick := order.RegionOp{Op: order.RegionTick}
		r.s.Apply(&e, &tick)
		c.Apply(&e, &tick)
		if r.s.Digest() != c.Digest() || r.s.Regions()[0].Entries != uint64(max(0, 500-64*(n+1))) {
			t.Fatalf("after %d ticks digests are %x and %x, %d entries", n+1, r.s.Digest(), c.Digest(), r.s.Regions()[0].Entries)
		}
	}
	o.ExpireNs = 2000
	r.entry(2, &o)
	for i := range keys {
		keys[i] = "other-" + keys[i]
	}
	other := batchOf(order.RegionPutAll, nil, keys...)
	r.s.Apply(&order.Entry{Seq: r.seq + 1, ClientSeq: 3, Session: 3, TimeNs: 2000}, &other)
	if n := r.s.Regions()[0].Entries; n != 500 {
		t.Errorf("%d entries behind a batch that puts as many as have expired, want 500", n)
	}
}

// TestBatchAllocatesNothing in the steady state.
func TestBatchAllocatesNothing(t *testing.T) {
	r := newRun(t, 1)
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("key-%d", i))
	}
	put := batchOf(order.RegionPutAll, make([]byte, 20), keys...)
	r.entry(1, &put)
	patch := batchOf(order.RegionPatchAll, []byte("xx"), append(keys, "none")...)
	e := order.Entry{Seq: r.seq, Session: 3, ClientSeq: 1}
	if n := testing.AllocsPerRun(100, func() {
		o := patch
		e.Seq, e.ClientSeq = e.Seq+1, e.ClientSeq+1
		o.Received = e.ClientSeq - 1
		if v, _, _ := r.s.AdmitBatch(1, &o); v != Admitted || r.s.Check(&e, &o) != nil {
			t.Fatal(v)
		}
		r.s.Apply(&e, &o)
	}); n > 1 { // the list of the session's replies
		t.Errorf("%.1f allocations of a batch, want at most that of its reply", n)
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, op := range []order.RegionKind{order.RegionPutAll, order.RegionPatchAll} {
		b.Run(op.String(), func(b *testing.B) {
			s := New()
			s.Apply(&order.Entry{Seq: 1}, &order.RegionOp{Op: order.RegionConfig, Value: le.AppendUint64(le.AppendUint64(nil, 1<<30), 7)})
			s.Apply(&order.Entry{Seq: 2}, &order.RegionOp{Op: order.RegionDefine, Key: []byte("r"), Value: make([]byte, 16)})
			const keys = 500_000
			key := func(i int) string { return fmt.Sprintf("Q%09d", i) }
			for i := range keys {
				s.Apply(&order.Entry{Seq: uint64(3 + i), ClientSeq: 1}, &order.RegionOp{Op: order.RegionPut, Key: []byte(key(i)), Value: make([]byte, 60)})
			}
			var batches []order.RegionOp
			for i := 0; i+3*512 < keys; i += 3 * 512 {
				var of []string
				for k := range 512 {
					of = append(of, key(i+3*k))
				}
				batches = append(batches, batchOf(op, make([]byte, 60), of...))
			}
			b.ResetTimer()
			seq := uint64(keys + 3)
			for i := range b.N {
				o := batches[i%len(batches)]
				seq++
				e := order.Entry{Seq: seq, Session: 1, ClientSeq: seq}
				if v, _, _ := s.AdmitBatch(1, &o); v != Admitted {
					b.Fatal(v)
				}
				s.Apply(&e, &o)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*512), "ns/key")
		})
	}
}
