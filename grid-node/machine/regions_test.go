package machine

import (
	"bytes"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
)

// regionEntry applies an operation as the next entry.
func regionEntry(t *testing.T, m *Machine, seq uint64, session uint32, clientSeq uint64, o order.RegionOp) {
	t.Helper()
	e := &order.Entry{Kind: order.KindRegion, Seq: seq, Epoch: 3, Session: session, ClientSeq: clientSeq, TimeNs: int64(seq)}
	payload := o.Append(nil)
	if err := m.Check(e, payload); err != nil {
		t.Fatal(err)
	}
	m.Apply(e, payload)
}

// definition is the value of a definition with a source.
func definition(object string, since, generation int64) []byte {
	return (&region.Spec{Source: &limits.Source{Grid: "g", Object: object, SinceMs: since, Generation: generation}}).Definition(true)
}

func withRegions(t *testing.T) *Machine {
	m := aState()
	regionEntry(t, m, 91, 0, 0, order.RegionOp{Op: order.RegionConfig, Value: le.AppendUint64(le.AppendUint64(nil, 1<<20), 5)})
	spec := region.Spec{Name: "positions", Source: &limits.Source{Grid: "g", Object: "r", SinceMs: 5, Generation: 2}}
	regionEntry(t, m, 92, 0, 0, order.RegionOp{Op: order.RegionDefine, Key: []byte("positions"), Value: spec.Definition(true)})
	for i := range uint64(40) {
		regionEntry(t, m, 93+i, 0, 21+i, order.RegionOp{Op: order.RegionPut, Key: []byte{byte(i)}, Value: bytes.Repeat([]byte{1}, int(i)*100), ExpireNs: int64(i%3) * 500})
	}
	regionEntry(t, m, 133, 2, 1, order.RegionOp{Op: order.RegionTake, Key: []byte{7}})
	return m
}

// TestRegionsSnapshot restores a state with regions part by part.
func TestRegionsSnapshot(t *testing.T) {
	want := withRegions(t)
	if want.Digest() != want.Recount() {
		t.Errorf("digest is %x, recounted %x", want.Digest(), want.Recount())
	}
	got := &Machine{}
	got.Begin(8, 133)
	for from := uint32(0); int(from) < want.SnapshotSlots(); {
		part, next := want.AppendSnapshot(nil, from)
		if err := got.Restore(part, 133, from, next); err != nil {
			t.Fatal(err)
		}
		from = next
	}
	if err := got.Restored(); err != nil {
		t.Fatal(err)
	}
	if source := got.Regions.Regions()[0].Source; source.String() != "generation 2 of r, since 5" {
		t.Errorf("the source is restored as %v", source)
	}
	clone := got.Clone()
	for name, m := range map[string]*Machine{"restored": got, "its clone": &clone} {
		if m.Regions == nil || m.Digest() != want.Digest() || m.Digest() != m.Recount() {
			t.Fatalf("%s: regions %v, digest %x, recounted %x, want %x", name, m.Regions != nil, m.Digest(), m.Recount(), want.Digest())
		}
		if v, held := m.Regions.Taken(nil, 2, 1); !held || len(v) != 700 {
			t.Errorf("%s: the reply has %d bytes (%v), want 700", name, len(v), held)
		}
	}
	regionEntry(t, got, 134, 2, 2, order.RegionOp{Op: order.RegionClear})
	if clone.Digest() != want.Digest() {
		t.Error("a change of the restored state changes its clone")
	}
}

// TestRegionsOff shows that a partition without regions has the bytes of before.
func TestRegionsOff(t *testing.T) {
	m := aState()
	before, digest := encode(m), m.Digest()
	n := m.regionsFrom()
	if m.Regions != nil || n != m.SnapshotSlots() || le.Uint64(before[16:])&hasRegions != 0 || digest != m.digest(m.Sessions.sum, m.Orders.sum, m.Cursors.sum) {
		t.Errorf("without an entry of kind region: regions %v, %d of %d slots", m.Regions != nil, n, m.SnapshotSlots())
	}
}

func TestRegionsRefused(t *testing.T) {
	m := withRegions(t)
	for name, c := range map[string]struct {
		session   uint32
		clientSeq uint64
		o         order.RegionOp
	}{
		"a retry":                   {0, 60, order.RegionOp{Op: order.RegionPut, Key: []byte("k")}},
		"no session":                {1, 1, order.RegionOp{Op: order.RegionPut, Key: []byte("k")}},
		"no region":                 {2, 2, order.RegionOp{Op: order.RegionPut, Region: 1, Key: []byte("k")}},
		"no key":                    {2, 2, order.RegionOp{Op: order.RegionTake, Key: []byte{7}}},
		"a patch behind the value":  {2, 2, order.RegionOp{Op: order.RegionPatch, Key: []byte{3}, Offset: 301}},
		"another seed":              {0, 0, order.RegionOp{Op: order.RegionConfig, Value: le.AppendUint64(le.AppendUint64(nil, 1<<20), 6)}},
		"no later source":           {0, 0, order.RegionOp{Op: order.RegionDefine, Key: []byte("positions"), Value: definition("r", 5, 2)}},
		"an earlier generation":     {0, 0, order.RegionOp{Op: order.RegionDefine, Key: []byte("positions"), Value: definition("r", 5, 1)}},
		"an earlier GridRegion":     {0, 0, order.RegionOp{Op: order.RegionDefine, Key: []byte("positions"), Value: definition("s", 4, 9)}},
		"no source":                 {0, 0, order.RegionOp{Op: order.RegionDefine, Key: []byte("positions"), Value: make([]byte, 16)}},
		"a source in another form":  {0, 0, order.RegionOp{Op: order.RegionDefine, Key: []byte("other"), Region: 1, Value: append(make([]byte, 16), `{"grid":"g", "object":"s","sinceMs":6,"generation":1}`...)}},
		"the number of another one": {0, 0, order.RegionOp{Op: order.RegionDefine, Key: []byte("other"), Value: make([]byte, 16)}},
	} {
		e := &order.Entry{Kind: order.KindRegion, Seq: 134, Epoch: 3, Session: c.session, ClientSeq: c.clientSeq, TimeNs: 134}
		if err := m.Check(e, c.o.Append(nil)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	fresh := &Machine{}
	fresh.Begin(8, 0)
	if err := fresh.Check(&order.Entry{Kind: order.KindRegion, Seq: 1}, (&order.RegionOp{Op: order.RegionTick}).Append(nil)); err == nil {
		t.Error("a tick before the config: accepted")
	}
}

// TestTakenEndsWithSession frees the replies of a session whose slot another one gets.
func TestTakenEndsWithSession(t *testing.T) {
	m := withRegions(t)
	used := m.Regions.Used()
	m.Apply(&order.Entry{Kind: order.KindSessionOpen, Seq: 134, Epoch: 3, Session: 2, ClientSeq: 2}, make([]byte, 16))
	if _, held := m.Regions.Taken(nil, 2, 1); held || m.Regions.Used() >= used {
		t.Errorf("the reply of the session before is held: %v, %d of %d bytes", held, m.Regions.Used(), used)
	}
}
