package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// testLog makes entries that chain.
type testLog struct {
	seq, hash uint64
	entries   [][]byte // padded
}

func (l *testLog) add(rng *rand.Rand) []byte {
	payload := make([]byte, 16)
	le.PutUint64(payload, 1)
	le.PutUint64(payload[8:], rng.Uint64())
	e := order.Entry{Kind: order.KindNoop, Seq: l.seq + 1, PrevHash: l.hash, Epoch: 1, Size: uint32(order.HeaderSize + len(payload))}
	b := make([]byte, order.Padded(int(e.Size)))
	e.Put(b)
	copy(b[order.HeaderSize:], payload)
	l.seq, l.hash = e.Seq, order.Hash(b[:e.Size])
	l.entries = append(l.entries, b)
	return b
}

func (l *testLog) batch(rng *rand.Rand, n int) *Batch {
	var b Batch
	for range n {
		b.Entries(l.add(rng), l.seq)
	}
	return &b
}

// collected is a Visitor that keeps everything.
type collected struct {
	log   []byte
	parts []replica.JournalState
	state []byte
}

func (c *collected) State(p *replica.JournalState) error {
	c.parts = append(c.parts, *p)
	c.state = append(c.state, p.Part...)
	return nil
}

func (c *collected) Entries(run []byte) error {
	c.log = append(c.log, run...)
	return nil
}

func testConfig(t *testing.T, epoch uint64) *replica.Config {
	t.Helper()
	m, err := replica.NewMember("p-0/00000000000000ab", "10.0.0.1:7400")
	if err != nil {
		t.Fatal(err)
	}
	return &replica.Config{Version: "7", Epoch: epoch, Lineage: 1, ChangeID: "c", Primary: m, InSync: []replica.Member{m}}
}

func begin(t *testing.T, fs FS, o Options, life uint64) (*Journal, *Found, *collected) {
	t.Helper()
	var c collected
	f, err := Read(fs, &c)
	if err != nil {
		t.Fatal(err)
	}
	j, err := Begin(fs, o, Identity{Grid: "g", Partition: 3, Boot: 0xab, Life: life}, f)
	if err != nil {
		t.Fatal(err)
	}
	return j, f, &c
}

func write(t *testing.T, j *Journal, b *Batch) {
	t.Helper()
	if err := errors.Join(j.Write(b), j.Sync()); err != nil {
		t.Fatal(err)
	}
}

// TestContent: what was written is read, over segments, states and processes.
func TestContent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	disk, log := NewDisk(), &testLog{}
	o := Options{SegmentBytes: 2000}
	j, f, _ := begin(t, disk, o, 1)
	if f.Life != 0 || f.Config != nil || f.Seq != 0 {
		t.Fatalf("an empty directory holds %+v", f)
	}
	for i := range 40 {
		b := log.batch(rng, 1+i%3)
		if i == 20 {
			b.Config(testConfig(t, 9), 2)
		}
		write(t, j, b)
	}
	if len(j.segments) < 3 {
		t.Fatalf("%d segments", len(j.segments))
	}
	base := log.seq / 2
	if !j.Frees(base) {
		t.Fatalf("a state up to %d frees none of %+v", base, j.segments)
	}
	before, hash := j.Bytes(), order.Hash(log.entries[base-1][:le.Uint32(log.entries[base-1])])
	for from := uint32(0); from < 3; from++ {
		done, err := j.State(&replica.JournalState{Base: base, Hash: hash, From: from, Next: from + 1, Slots: 3, Part: []byte{byte(from), 7}})
		if err != nil || done != (from == 2) {
			t.Fatal(done, err)
		}
		if from == 1 { // the log goes on meanwhile
			write(t, j, log.batch(rng, 2))
		}
	}
	if j.Bytes() >= before || j.Frees(base) {
		t.Errorf("%d bytes after the state, %d before", j.Bytes(), before)
	}
	j2, f, c := begin(t, disk, o, 2)
	if want := bytes.Join(log.entries[base:], nil); !bytes.Equal(c.log, want) || !bytes.Equal(c.state, []byte{0, 7, 1, 7, 2, 7}) {
		t.Errorf("read %d bytes of log and state %v, allowed: %d bytes", len(c.log), c.state, len(want))
	}
	if f.Base != base || f.Seq != log.seq || f.Hash != log.hash || f.Life != 1 || f.Boot != 0xab || f.Partition != 3 || f.Config.Epoch != 9 || f.Cut != nil {
		t.Errorf("found %+v", f)
	}
	if p := c.parts[2]; p.Base != base || p.Hash != hash || p.From != 2 || p.Next != 3 || p.Slots != 3 {
		t.Errorf("last part is %+v", p)
	}
	if f.Bytes != j.Bytes() {
		t.Errorf("%d bytes are read, %d were written", f.Bytes, j.Bytes())
	}
	write(t, j2, log.batch(rng, 3))
	if _, f, _ = begin(t, disk, o, 3); f.Life != 2 || f.Seq != log.seq || f.Config.Epoch != 9 {
		t.Errorf("found %+v, allowed: life 2 with entry %d", f, log.seq)
	}
}

// TestPowerCuts: whatever the moment at which the power goes, what was synced is there, and
// what is there is a log.
func TestPowerCuts(t *testing.T) {
	cuts := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		disk, log := NewDisk(), &testLog{}
		synced, epoch, known := uint64(0), uint64(0), uint64(0)
		for life := uint64(1); life < 6; life++ {
			j, f, c := begin(t, disk, Options{SegmentBytes: 1500}, life)
			if f.Cut != nil {
				cuts++
			}
			if f.Seq < synced || f.Life != life-1 || known > 0 && (f.Config == nil || f.Config.Epoch < known) {
				t.Fatalf("seed %d, life %d: %+v, allowed: entry %d and epoch %d", seed, life, f, synced, known)
			}
			if want := bytes.Join(log.entries[f.Base:f.Seq], nil); !bytes.Equal(c.log, want) {
				t.Fatalf("seed %d, life %d: another log", seed, life)
			}
			if log.entries, log.seq, log.hash, epoch = log.entries[:f.Seq], f.Seq, f.Hash, 0; f.Config != nil {
				epoch = f.Config.Epoch
			}
			for range rng.IntN(12) {
				b := log.batch(rng, 1+rng.IntN(20))
				if rng.IntN(3) == 0 {
					epoch++
					b.Config(testConfig(t, epoch), epoch)
				}
				if err := j.Write(b); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(8) == 0 {
					break
				}
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
				synced, known = log.seq, epoch
				if base := log.seq - min(log.seq, uint64(rng.IntN(5))); rng.IntN(4) == 0 && base > f.Base && base > j.state.base {
					e := log.entries[base-1]
					p := &replica.JournalState{Base: base, Hash: order.Hash(e[:le.Uint32(e)]), Next: 1, Slots: 1}
					if rng.IntN(4) == 0 {
						p.Slots = 2 // it is never finished
					}
					if _, err := j.State(p); err != nil {
						t.Fatal(err)
					}
				}
			}
			disk.CutPower(rng)
		}
	}
	if cuts == 0 {
		t.Error("no end was torn")
	}
}

// TestDamage: a changed byte in what is known to have been synced is an error with its
// place. In the last batch it cannot be told from a torn end.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	make := func() (*Disk, *testLog, int64) {
		disk, log := NewDisk(), &testLog{}
		j, _, _ := begin(t, disk, Options{SegmentBytes: 3000}, 1)
		last := int64(0)
		for range 30 {
			last = j.segments[len(j.segments)-1].bytes
			write(t, j, log.batch(rng, 2))
		}
		return disk, log, last
	}
	disk, _, _ := make()
	names, _ := disk.List()
	for i, name := range names {
		for range 40 {
			disk, log, last := make()
			at := rng.Int64N(int64(len(disk.files[name].b)))
			disk.Spoil(name, at)
			f, err := Read(disk, &collected{})
			var damage *DamageError
			switch {
			case i == len(names)-1 && at >= last:
				if err != nil || f.Cut == nil || f.Cut.File != name || f.Cut.Offset > at || f.Seq != log.seq-2 && f.Seq != log.seq-1 {
					t.Fatalf("%s at %d, in the last batch: %+v, %v", name, at, f, err)
				}
			case !errors.As(err, &damage):
				t.Fatalf("%s at %d of %d: %v, allowed: a DamageError", name, at, len(disk.files[name].b), err)
			case damage.File != name && at >= recordHeader || damage.Offset > at || damage.Seq == 0 || damage.Seq > log.seq:
				t.Fatalf("%s at %d: %v", name, at, err)
			}
		}
	}
	disk, _, _ = make()
	if err := disk.Remove(names[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(disk, &collected{}); err == nil || !strings.Contains(err.Error(), names[1]) {
		t.Errorf("without %s: %v", names[1], err)
	}
}

// TestFull: a batch that does not fit is not written, and is when there is room.
func TestFull(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	disk, log := NewDisk(), &testLog{}
	j, _, _ := begin(t, disk, Options{MaxBytes: 4000}, 1)
	var full *ErrFull
	b := log.batch(rng, 10)
	for {
		if err := j.Write(b); errors.As(err, &full) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		b = log.batch(rng, 10)
	}
	if full.Limit != 4000 || full.Used > 4000 || !strings.Contains(full.Error(), "spec.journal.size") {
		t.Errorf("%v", full)
	}
	j.opt.MaxBytes, disk.Room = 0, 100
	if err := j.Write(b); !errors.As(err, &full) || full.Limit != 0 {
		t.Errorf("on a full disk: %v", err)
	}
	disk.Room = -1
	write(t, j, b)
	var c collected
	if f, err := Read(disk, &c); err != nil || f.Seq != log.seq || f.Cut != nil {
		t.Errorf("%+v, %v; allowed: entry %d", f, err, log.seq)
	}
}

// TestVersion: a file of another format is refused.
func TestVersion(t *testing.T) {
	disk := NewDisk()
	f, _ := disk.Create(segmentName(1))
	if _, err := f.Write(appendRecord(nil, 0, kindHead, []byte(`{"Version":2}`))); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(disk, &collected{}); err == nil || !strings.Contains(err.Error(), "version is 2") {
		t.Error(err)
	}
}

// TestDirectory: the same on the operating system's files, and a journal that is set aside
// stays with its reason.
func TestDirectory(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	root := t.TempDir()
	path := filepath.Join(root, "p3")
	for n := 1; n <= 2; n++ {
		fs, err := Dir(path)
		if err != nil {
			t.Fatal(err)
		}
		log := &testLog{}
		j, _, _ := begin(t, fs, Options{SegmentBytes: 1000}, 1)
		for range 20 {
			write(t, j, log.batch(rng, 2))
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		names, _ := fs.List()
		slices.Sort(names)
		tail := filepath.Join(path, names[len(names)-1])
		info, err := os.Stat(tail)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(tail, info.Size()-5); err != nil {
			t.Fatal(err)
		}
		j, f, _ := begin(t, fs, Options{SegmentBytes: 1000}, 2)
		if f.Cut == nil || f.Seq != log.seq-2 && f.Seq != log.seq-1 {
			t.Fatalf("after a cut of 5 bytes: %+v, allowed: entry %d or one less", f, log.seq-1)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		to, err := SetAside(path, "of another lineage")
		if err != nil || to != filepath.Join(root, "aside", fmt.Sprintf("p3-%d", n)) {
			t.Fatal(to, err)
		}
		if b, err := os.ReadFile(filepath.Join(to, "REASON.txt")); err != nil || string(b) != "of another lineage\n" {
			t.Error(string(b), err)
		}
	}
}

// TestUnsyncedRead: what a process reads that the one before it had written and not synced
// is durable before it counts.
func TestUnsyncedRead(t *testing.T) {
	disk, log, rng := NewDisk(), &testLog{}, rand.New(rand.NewPCG(6, 6))
	j, _, _ := begin(t, disk, Options{}, 1)
	write(t, j, log.batch(rng, 3))
	if err := j.Write(log.batch(rng, 50)); err != nil {
		t.Fatal(err)
	}
	_, f, _ := begin(t, disk, Options{}, 2) // killed: the kernel has it
	if f.Seq != log.seq {
		t.Fatalf("entry %d is the last, allowed: %d", f.Seq, log.seq)
	}
	for seed := range uint64(20) {
		disk.CutPower(rand.New(rand.NewPCG(seed, 6)))
		if _, f, _ = begin(t, disk, Options{}, seed+3); f.Seq != log.seq {
			t.Fatalf("entry %d is the last after a power cut, allowed: %d", f.Seq, log.seq)
		}
	}
}
