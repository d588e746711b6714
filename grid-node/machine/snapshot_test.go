package machine

import (
	"strings"
	"testing"
)

// aState is a state with everything in it: two epochs, a session with a hole, one that
// did nothing, a slot that was never opened.
func aState() *Machine {
	m := &Machine{}
	m.Begin(8, 0)
	m.Cursors.Sink.To = 90
	m.Cursors.set(0, 70, []byte("kafka"))
	m.Cursors.set(0, 80, []byte("archive-2"))
	m.Orders.Lineage = 2
	m.Orders.add(epochStart{1, 1})
	m.Orders.add(epochStart{40, 3})
	m.Sessions.open(0, 3, [2]uint64{7, 8}, 2)
	for c := uint64(1); c <= 20; c++ {
		if c != 17 {
			m.Sessions.put(0, c, 10+c)
		}
	}
	m.Sessions.open(2, 1, [2]uint64{9, 9}, 50)
	return m
}

func encode(m *Machine) (state []byte) {
	for from := uint32(0); ; {
		if state, from = m.AppendSnapshot(state, from); int(from) == m.SnapshotSlots() {
			return state
		}
	}
}

func decode(state []byte, slots uint32, base uint64) (*Machine, error) {
	m := &Machine{}
	m.Begin(8, base)
	if err := m.Restore(state, base, 0, slots); err != nil {
		return m, err
	}
	if err := m.Restored(); err != nil {
		return m, err
	}
	return m, nil
}

func TestSnapshot(t *testing.T) {
	want := aState()
	state := encode(want)
	got, err := decode(state, 3, 100)
	if err != nil {
		t.Fatal(err)
	}
	if string(encode(got)) != string(state) {
		t.Error("what is read is not what was written")
	}
	s := got.Sessions.Find(0, 3)
	for c := uint64(13); c <= 20; c++ {
		verdict, seq := got.Sessions.Admit(s, c, 0)
		if c == 17 && verdict != New || c != 17 && (verdict != Applied || seq != 10+c) {
			t.Errorf("clientSeq %d: verdict %d, entry %d", c, verdict, seq)
		}
	}
	for seq, epoch := range map[uint64]uint32{1: 1, 39: 1, 40: 3, 99: 3} {
		if e := got.Orders.EpochAt(seq); e != epoch {
			t.Errorf("entry %d is said to be of epoch %d, it is of %d", seq, e, epoch)
		}
	}
	for cut := range state {
		if _, err := decode(state[:cut], 3, 100); err == nil {
			t.Fatalf("state cut at %d of %d was taken", cut, len(state))
		}
	}
}

func TestSnapshotRefuses(t *testing.T) {
	const readers = 24 + 2*16                   // behind the epochs: archive-2, kafka
	const session0 = readers + 16 + 16 + 16 + 8 // behind the head
	put := func(at int, v uint64) func([]byte) { return func(b []byte) { le.PutUint64(b[at:], v) } }
	for _, c := range []struct {
		name  string
		spoil func([]byte)
		want  string
	}{
		{"too many epochs", put(16, 1025), "nEpochs is 1025"},
		{"more epochs than bytes", put(16, 1000), "nEpochs is 1000"},
		{"epochs that fall", put(24+16+8, 1), "epoch is 1, allowed: rising"},
		{"an epoch behind the base", put(24+16, 101), "epochSeq is 101, allowed: at most base"},
		{"too many readers", put(16, 2|17<<32), "nReaders is 17"},
		{"a reader behind the base", put(readers, 101), "readerSeq is 101, allowed: at most base"},
		{"a reader without a name", put(readers+8, 0), "readerName is 0"},
		{"a name that is too long", put(readers+8, 33), "readerName is 33"},
		{"a name of other letters", func(b []byte) { b[readers+16] = 'A' }, "readerName is 9"},
		{"a name that is padded with something", func(b []byte) { b[readers+26] = 'a' }, "readerName is 9"},
		{"readers that fall", func(b []byte) { b[readers+16] = 'z' }, "readerName is 5"},
		{"neither open nor closed", put(session0, 3|2<<32), "open is 2"},
		{"a closed one with a state", put(session0, 3), "open is 0"},
		{"touched behind the base", put(session0+32, 200), "touched is 200"},
		{"more replies than the window", put(session0+40, 9), "nReplies is 9"},
		{"fewer replies than there are", put(session0+40, 3), "nReplies is 3"},
		{"no replies where there are some", put(session0+40, 0), "nReplies is 0"},
		{"a reply behind the base", put(session0+48, 101), "reply is 101"},
		{"two sessions with one id", func(b []byte) {
			at := session0 + 48 + 64 + 48 // slot 0 has 8 replies, slot 1 none
			le.PutUint64(b[at+8:], 7)
			le.PutUint64(b[at+16:], 8)
		}, "idLo is 8"},
	} {
		state := encode(aState())
		c.spoil(state)
		if _, err := decode(state, 3, 100); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(encode(aState()), uint32(3))
	f.Add(encode(fixState(nil)), uint32(4))
	f.Fuzz(func(t *testing.T, state []byte, slots uint32) {
		b, err := decode(state, min(slots, 1<<16), 100)
		if err == nil && string(encode(b)) != string(state) {
			t.Error("what was taken is not what is written again")
		}
		if err == nil && b.Digest() != b.Recount() {
			t.Error("the digest is not of what is there")
		}
	})
}
