package client

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// nearPartOf is a part that follows nothing: the test says what it hears.
func nearPartOf(age time.Duration) *nearPart {
	p := &nearPart{n: &NearCache{o: NearCacheOptions{MaxAge: age}}, wake: make(chan struct{}, 1), reads: map[string]*nearRead{}, started: true, following: true, life: 1}
	p.kept.init(1 << 20)
	return p
}

// hears applies an entry.
func (p *nearPart) hears(seq uint64, timeNs int64, o order.RegionOp) {
	payload := o.Append(nil)
	e := order.Entry{Kind: order.KindRegion, Seq: seq, Epoch: 1, TimeNs: timeNs, Size: uint32(order.HeaderSize + len(payload))}
	b := make([]byte, e.Size)
	e.Put(b)
	copy(b[order.HeaderSize:], payload)
	p.apply(&FollowBatch{Through: Position{Seq: seq}, Entries: []LogEntry{{Entry: e, Bytes: b}}})
}

// removesOf is a batch.
func removesOf(keys ...string) order.RegionOp {
	o := order.RegionOp{Op: order.RegionRemoveAll, Items: uint32(len(keys))}
	for _, k := range keys {
		o.Value = order.AppendItem(o.Value, o.Op, []byte(k), nil)
	}
	return o
}

var nearKey = []byte("k")

// A read that a change overtakes is kept only if it has the change.
func TestNearReadsAndChanges(t *testing.T) {
	put := func(key string) order.RegionOp { return order.RegionOp{Op: order.RegionPut, Key: []byte(key)} }
	for _, c := range []struct {
		name   string
		before func(*nearPart) // while the read is under way
		e      Entry
		after  func(*nearPart)
		kept   bool
	}{
		{"no change", nil, Entry{Version: 3, CommitSeq: 10}, nil, true},
		{"no value", nil, Entry{CommitSeq: 10}, nil, false},
		{"the change that it has", func(p *nearPart) { p.hears(11, 0, put("k")) }, Entry{Version: 11, CommitSeq: 10}, nil, true},
		{"a change before it", func(p *nearPart) { p.hears(9, 0, put("k")) }, Entry{Version: 3, CommitSeq: 10}, nil, true},
		{"a change that it lacks", func(p *nearPart) { p.hears(11, 0, put("k")) }, Entry{Version: 3, CommitSeq: 10}, nil, false},
		{"a change of another key", func(p *nearPart) { p.hears(11, 0, put("j")) }, Entry{Version: 3, CommitSeq: 10}, nil, true},
		{"a clear that it lacks", func(p *nearPart) { p.hears(11, 0, order.RegionOp{Op: order.RegionClear}) }, Entry{Version: 3, CommitSeq: 10}, nil, false},
		{"a clear before it", func(p *nearPart) { p.hears(9, 0, order.RegionOp{Op: order.RegionClear}) }, Entry{Version: 10, CommitSeq: 10}, nil, true},
		{"another life", func(p *nearPart) { p.ends(); p.begins(Position{Seq: 11}) }, Entry{Version: 3, CommitSeq: 10}, nil, false},
		{"changed later", nil, Entry{Version: 3, CommitSeq: 10}, func(p *nearPart) { p.hears(11, 0, order.RegionOp{Op: order.RegionRemove, Key: nearKey}) }, false},
		{"patched later", nil, Entry{Version: 3, CommitSeq: 10}, func(p *nearPart) { p.hears(11, 0, order.RegionOp{Op: order.RegionPatch, Key: nearKey}) }, false},
		{"of a batch later", nil, Entry{Version: 3, CommitSeq: 10}, func(p *nearPart) { p.hears(11, 0, removesOf("j", "k")) }, false},
		{"a batch of other keys", nil, Entry{Version: 3, CommitSeq: 10}, func(p *nearPart) { p.hears(11, 0, removesOf("j", "l")) }, true},
		{"a batch that it lacks", func(p *nearPart) { p.hears(11, 0, removesOf("j", "k")) }, Entry{Version: 3, CommitSeq: 10}, nil, false},
		{"its own change later", nil, Entry{Version: 12, CommitSeq: 10}, func(p *nearPart) { p.hears(12, 0, put("k")) }, true},
		{"a tick", nil, Entry{Version: 3, CommitSeq: 10}, func(p *nearPart) { p.hears(11, 5, order.RegionOp{Op: order.RegionTick}) }, true},
		{"expired by the log", nil, Entry{Version: 3, CommitSeq: 10, Expires: time.Unix(0, 5)}, func(p *nearPart) { p.hears(11, 5, order.RegionOp{Op: order.RegionTick}) }, false},
		{"an operation of a later release", nil, Entry{Version: 3, CommitSeq: 10}, func(p *nearPart) { p.hears(11, 0, order.RegionOp{Op: 77}) }, false},
	} {
		p := nearPartOf(time.Hour)
		p.asOf = nanotime()
		_, read := p.get(nearKey)
		if read == nil {
			t.Fatalf("%s: something is kept from the beginning", c.name)
		}
		if c.before != nil {
			c.before(p)
		}
		c.e.Key = nearKey
		p.keep(read, &c.e)
		if c.after != nil {
			c.after(p)
		}
		e, read := p.get(nearKey)
		if kept := read == nil; kept != c.kept || kept && e.Version != c.e.Version {
			t.Errorf("%s: kept is %v, want %v: %+v", c.name, kept, c.kept, e)
		}
		if read == nil && len(p.reads) > 0 {
			t.Errorf("%s: a read is left", c.name)
		}
	}
}

// What is kept is as old as the last proof that the follower has reached, and is not given when that is too old.
func TestNearAge(t *testing.T) {
	p := nearPartOf(time.Hour)
	_, read := p.get(nearKey)
	p.keep(read, &Entry{Key: nearKey, Version: 3, CommitSeq: 10})
	stale := func(what string, want bool) {
		t.Helper()
		_, read := p.get(nearKey)
		if read != nil {
			p.keep(read, &Entry{Key: nearKey})
		}
		if (read != nil) != want {
			t.Errorf("%s: too old is %v", what, !want)
		}
	}
	stale("before a proof", true)
	p.proofs = append(p.proofs, proof{seq: 12, at: nanotime()}, proof{seq: 14, at: nanotime()})
	p.hears(11, 0, order.RegionOp{Op: order.RegionTick})
	stale("before the follower has come to it", true)
	p.hears(12, 0, order.RegionOp{Op: order.RegionTick})
	stale("when it has", false)
	if len(p.proofs) != 1 || len(p.wake) != 1 {
		t.Errorf("%d proofs wait, %d calls for one, want 1 each", len(p.proofs), len(p.wake))
	}
	p.asOf -= int64(2 * time.Hour)
	stale("later", true)
	p.hears(14, 0, order.RegionOp{Op: order.RegionTick})
	stale("at the next proof", false)
	if s := p.stats; s.Hits != 2 || s.Stale != 3 || s.Misses != 1 {
		t.Errorf("%+v", s)
	}
}

// What is kept was read, from begin to end, while the log was followed, by one following of it.
func TestNearFollowsAnew(t *testing.T) {
	p := nearPartOf(time.Hour)
	begins := func() { p.begins(Position{Seq: 12}) }
	read := func() *nearRead {
		t.Helper()
		e, read := p.get(nearKey)
		if read == nil {
			t.Fatalf("kept: %+v", e)
		}
		return read
	}
	found := func(read *nearRead) { p.keep(read, &Entry{Key: nearKey, Version: 3, CommitSeq: 11}) }
	for range 2 {
		before, across1 := read(), read()
		p.ends()
		between, across2 := read(), read()
		found(between) // and then entry 12 changes it, which the next following does not see
		found(before)
		if len(p.kept.by) != 0 || len(p.reads) != 0 {
			t.Errorf("%d values and %d reads are kept while nothing is followed", len(p.kept.by), len(p.reads))
		}
		begins()
		found(across1)
		found(across2)
		if len(p.kept.by) != 0 {
			t.Error("what was read across the beginning is kept")
		}
		found(read())
		if e, read := p.get(nearKey); read != nil || e.Version != 3 || len(p.reads) != 0 {
			t.Errorf("what is read while it is followed is not kept: %+v, %d reads", e, len(p.reads))
		}
		p.ends()
		begins()
	}
	p.ends() // for good, by Close
	for range 3 {
		found(read())
	}
	if len(p.kept.by) != 0 || p.kept.bytes != 0 || len(p.reads) != 0 {
		t.Errorf("behind the end: %d values of %d bytes, %d reads", len(p.kept.by), p.kept.bytes, len(p.reads))
	}
}
