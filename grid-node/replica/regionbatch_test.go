package replica_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// batches is a pair with a region, whose client changes many keys at once.
type batches struct {
	*pair
	clientSeq uint64
	closed    []string // why connections were
}

func newBatches(t *testing.T, knownByBackup wire.FeatureSet) *batches {
	t.Helper()
	n := 0
	b := &batches{pair: newPairOf(t, seedOrder(t), func(o *replica.Options) {
		o.Regions, o.Known = &replica.Regions{Bytes: 64 << 10, Regions: []replica.RegionSpec{{Name: "positions"}}}, wire.Features
		if n++; n == 2 {
			o.Known = knownByBackup
		}
	})}
	b.settle()
	if b.a.Regions() == nil {
		t.Fatal("the log has no regions")
	}
	// The backup is asked what it knows.
	b.refused(b.ask(b.frame(wire.RegionPut, "1", 0, "a")), wire.CodeOverloaded, "release without batches")
	return b
}

// settle exchanges frames for a while, and returns what the client was answered.
func (b *batches) settle() (replies [][]byte) {
	for range 5 {
		b.now.Mono += 4e6
		b.a.Step(b.now, &replica.Event{Kind: replica.EventTick}, &b.ao)
		b.b.Step(b.now, &replica.Event{Kind: replica.EventTick}, &b.bo)
		for range 3 {
			b.a.Step(b.now, &replica.Event{Kind: replica.EventFlush}, &b.ao)
			for i := range b.ao.Actions {
				switch a := &b.ao.Actions[i]; a.Kind {
				case replica.ActionReply:
					replies = append(replies, append([]byte(nil), b.ao.Head(a)...))
				case replica.ActionCloseConn:
					b.closed = append(b.closed, a.Text)
				}
			}
			b.carry(&b.ao, b.b, &b.bo)
			b.b.Step(b.now, &replica.Event{Kind: replica.EventFlush}, &b.bo)
			b.carry(&b.bo, b.a, &b.ao)
		}
	}
	return replies
}

// ask sends a frame and returns the answer, nil for none.
func (b *batches) ask(frame []byte) []byte {
	b.tb.Helper()
	b.a.Step(b.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: frame}, &b.ao)
	replies := b.settle()
	if len(replies) > 1 {
		b.tb.Fatalf("%d answers", len(replies))
	}
	if len(replies) == 0 {
		return nil
	}
	return replies[0]
}

// frame is a batch of these keys.
func (b *batches) frame(op uint8, value string, offset uint32, keys ...string) []byte {
	b.clientSeq++
	m := wire.RegionBatch{Generation: 1, ClientSeq: b.clientSeq, Op: op, Count: uint16(len(keys)), Offset: offset, Region: []byte("positions")}
	if op == wire.RegionPatch {
		m.Patch = []byte(value)
	}
	for _, k := range keys {
		m.Items = wire.AppendRegionItem(m.Items, op, []byte(k), []byte(value))
	}
	return wire.AppendRegionBatch(nil, partition, &m)
}

// done checks that a batch was answered with so many keys that were skipped.
func (b *batches) done(reply []byte, skipped uint32, flags uint8) (seq uint64) {
	b.tb.Helper()
	var m wire.RegionBatched
	if err := wire.DecodeRegionBatched(reply, &m); err != nil || m.Skipped != skipped || m.Flags != flags || m.Seq == 0 {
		b.tb.Fatalf("answer %x: %+v, %v; want %d skipped, flags %d", reply, m, err, skipped, flags)
	}
	return m.Seq
}

// refused checks that a batch was refused so, and changed nothing.
func (b *batches) refused(reply []byte, code wire.Code, text string) {
	b.tb.Helper()
	var m wire.Reject
	if reply == nil || wire.DecodeReject(reply, &m) != nil || m.Code != code || m.ForType != wire.TypeRegionBatch || !strings.Contains(string(m.Text), text) {
		b.tb.Fatalf("answer %x: %+v %q; want code %d with %q", reply, m, m.Text, code, text)
	}
	b.clientSeq--
}

// has checks the values of the region on both copies.
func (b *batches) has(want string) {
	b.tb.Helper()
	for i, r := range []*replica.Replica{b.a, b.b} {
		var got []string
		for _, k := range []string{"a", "b", "c", "d"} {
			if v, found := r.Regions().Get(0, []byte(k), nil); found {
				got = append(got, fmt.Sprintf("%s=%s", k, v.Value))
			}
		}
		if strings.Join(got, " ") != want {
			b.tb.Fatalf("copy %d has %q, want %q", i, got, want)
		}
	}
}

func TestRegionBatches(t *testing.T) {
	b := newBatches(t, wire.Features)
	seq := b.done(b.ask(b.frame(wire.RegionPut, "1", 0, "a", "b", "c")), 0, 0)
	b.has("a=1 b=1 c=1")
	last := b.frame(wire.RegionPatch, "23", 1, "a", "c", "d", "e")
	if patched := b.done(b.ask(last), 2, 0); patched != seq+1 {
		t.Errorf("the batch is entry %d, want %d: one entry", patched, seq+1)
	}
	b.has("a=123 b=1 c=123")
	if again := b.done(b.ask(last), 2, wire.AckDup); again != seq+1 { // a retry is told the same
		t.Errorf("a retry is entry %d, want %d", again, seq+1)
	}
	b.done(b.ask(b.frame(wire.RegionRemove, "", 0, "a", "d")), 1, 0)
	if again := b.done(b.ask(last), 2, wire.AckDup); again != seq+1 {
		t.Errorf("a retry behind a later change is entry %d, want %d", again, seq+1)
	}
	b.has("b=1 c=123")

	b.refused(b.ask(b.frame(wire.RegionRemove, "", 0, "a", "d")), wire.CodeConditionFailed, "or there is none")
	b.refused(b.ask(b.frame(wire.RegionPatch, "4", 2, "a", "b", "c")), wire.CodeTooLarge, `the end of the value of "b"`)
	b.refused(b.ask(b.frame(wire.RegionPut, strings.Repeat("v", 21_000), 0, "a", "b", "c")), wire.CodeCapacity, "region positions has")
	long := b.frame(wire.RegionPatch, strings.Repeat("v", wire.MaxRegionBatch-5), 0, "a", "b")
	b.refused(b.ask(long), wire.CodeTooLarge, "longer than the limit")
	unknown := wire.RegionBatch{Generation: 1, ClientSeq: b.clientSeq + 1, Op: wire.RegionRemove, Count: 1, Region: []byte("quotes"), Items: wire.AppendRegionItem(nil, wire.RegionRemove, []byte("a"), nil)}
	b.clientSeq++
	b.refused(b.ask(wire.AppendRegionBatch(nil, partition, &unknown)), wire.CodeRegionUnknown, "quotes")
	b.has("b=1 c=123")
	b.done(b.ask(b.frame(wire.RegionPut, "5", 0, "d")), 0, 0)
	b.has("b=1 c=123 d=5")
	if len(b.closed) > 0 || len(b.alarms) > 0 {
		t.Errorf("connections were closed: %q; alarms %v", b.closed, b.alarms)
	}
}

// TestRegionBatchFromAnEnemy: what is no frame changes nothing, and ends the connection with the field.
func TestRegionBatchFromAnEnemy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f []byte) []byte
		text   string
	}{
		"no items":             {func(f []byte) []byte { f[42] = 0; return f }, "count is 0, allowed: 1..512"},
		"513 items":            {func(f []byte) []byte { binary.LittleEndian.PutUint16(f[42:], 513); return f }, "count is 513, allowed: 1..512"},
		"more than follow":     {func(f []byte) []byte { f[42] = 4; return f }, "count is 4, allowed: the items that follow"},
		"a length beyond":      {func(f []byte) []byte { f[73+1] = 1; return f }, "keyLen is 257"},
		"a key of no bytes":    {func(f []byte) []byte { f[73] = 0; return f }, "keyLen is 0, allowed: 1 or more"},
		"a value beyond":       {func(f []byte) []byte { f[75] = 99; return f }, "valueLen is 99"},
		"a key twice":          {func(f []byte) []byte { f[83] = 'a'; return f }, "item is 1, allowed: one whose key is behind"},
		"a patch beyond":       {func(f []byte) []byte { binary.LittleEndian.PutUint32(f[56:], 1<<31); return f }, "patchLen is 2147483648"},
		"a byte too many":      {func(f []byte) []byte { wire.AddTail(f, 1); return append(f, 0) }, "itemsLen is 18, allowed: the bytes that follow"},
		"an operation of none": {func(f []byte) []byte { f[40] = 9; return f }, "op is 9, allowed: 4 put, 5 patch, 6 remove"},
	} {
		b := newBatches(t, wire.Features)
		reply := b.ask(c.change(b.frame(wire.RegionPut, "1", 0, "a", "b", "c")))
		if reply != nil || len(b.closed) != 1 || !strings.Contains(b.closed[0], c.text) {
			t.Errorf("%s: answer %x, connections closed: %q, want %q", name, reply, b.closed, c.text)
		}
		b.has("")
	}
}

// TestRegionBatchesAwaitAllCopies: a copy of a release before would stop at the entry.
func TestRegionBatchesAwaitAllCopies(t *testing.T) {
	b := newBatches(t, wire.Features&^wire.FeatureRegionBatch)
	b.refused(b.ask(b.frame(wire.RegionPut, "1", 0, "a")), wire.CodeOverloaded, "release without batches")
	b.has("")
}
