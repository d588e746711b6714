package ledger

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

var id = fixorder.ID{Run: 77, Probe: 1}

// scene is a step of ten acknowledged orders and the log that holds them, after three earlier
// entries.
type scene struct {
	orders []load.Order
	log    []Entry
}

const before, first = 3, 40

func newScene(t *testing.T) *scene {
	t.Helper()
	maker, err := fixorder.NewMaker(fixorder.FIX42, id)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{orders: make([]load.Order, 10)}
	for i := range s.orders {
		seq := uint64(before + 1 + i)
		s.orders[i] = load.Order{T1: int64(i), T2: int64(i) + 1, T3: int64(i) + 2, Seq: seq, Epoch: 1, Copies: 2, Fate: load.Acked}
		s.log = append(s.log, Entry{
			Seq: seq, PrevHash: 1000 + seq - 1, Hash: 1000 + seq, IsOrder: true,
			ClOrdID: []byte(id.ClOrdID(first + int64(i))), FIX: bytes.Clone(maker.Make(first+int64(i), int64(i), time.Now(), time.Now())),
		})
	}
	return s
}

// drop removes entry i without a trace: no gap is left.
func (s *scene) drop(i int) {
	s.log = slices.Delete(s.log, i, i+1)
	s.renumber()
}

func (s *scene) renumber() {
	for i := range s.log {
		seq := uint64(before + 1 + i)
		s.log[i].Seq, s.log[i].PrevHash, s.log[i].Hash = seq, 1000+seq-1, 1000+seq
	}
}

func check(c *Checker, s *scene) Counts {
	c.Begin(first, s.orders, nil)
	for _, e := range s.log {
		c.Entry(e)
	}
	return c.Finish()
}

// Each row makes one change to a clean scene. The checker must detect it, and nothing else: this is
// the negative control of every count.
func TestChecker(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		want   Counts
	}{
		"clean":                                 {func(*scene) {}, Counts{Entries: 10}},
		"acknowledged order missing at the end": {func(s *scene) { s.log = s.log[:9] }, Counts{Entries: 9, Lost: 1}},
		"acknowledged order missing, gap left":  {func(s *scene) { s.log = slices.Delete(s.log, 4, 5) }, Counts{Entries: 9, Lost: 1, Gaps: 1}},
		"acknowledged order missing, log closed up": {func(s *scene) { s.drop(4) },
			Counts{Entries: 9, Lost: 1, Misplaced: 5}},
		"whole log gone": {func(s *scene) { s.log = nil }, Counts{Lost: 10}},
		"order applied twice": {func(s *scene) {
			s.log = append(s.log, s.log[2])
			s.renumber()
		}, Counts{Entries: 11, Duplicates: 1}},
		"sequence number twice": {func(s *scene) {
			e := s.log[9]
			e.IsOrder = false
			s.log = append(s.log, e)
		}, Counts{Entries: 11, Duplicates: 1}},
		"one receipt for two orders":       {func(s *scene) { s.orders[3].Seq = s.orders[2].Seq }, Counts{Entries: 10, Duplicates: 1, Misplaced: 1}},
		"receipt beyond the log":           {func(s *scene) { s.orders[3].Seq = 999 }, Counts{Entries: 10, Misplaced: 1}},
		"receipt with the entry's hash":    {func(s *scene) { s.orders[3].Hash = s.log[3].Hash }, Counts{Entries: 10}},
		"another entry than the receipt's": {func(s *scene) { s.orders[3].Hash = s.log[3].Hash + 1 }, Counts{Entries: 10, Misplaced: 1}},
		"refused order applied":            {func(s *scene) { s.orders[3].Fate = load.Rejected }, Counts{Entries: 10, Refused: 1}},
		"unsent order applied":             {func(s *scene) { s.orders[3].Fate = load.Unsent }, Counts{Entries: 10, Refused: 1}},
		"order never created":              {func(s *scene) { s.orders = s.orders[:9] }, Counts{Entries: 10, Refused: 1}},
		"unanswered order applied":         {func(s *scene) { s.orders[3].Fate = load.Unknown }, Counts{Entries: 10, UnknownFound: 1}},
		"unanswered order not applied": {func(s *scene) {
			s.orders[9].Fate = load.Unknown
			s.log = s.log[:9]
		}, Counts{Entries: 9, UnknownAbsent: 1}},
		"byte changed":                {func(s *scene) { s.log[5].FIX[100] ^= 1 }, Counts{Entries: 10, Corrupt: 1}},
		"hash chain":                  {func(s *scene) { s.log[5].PrevHash++ }, Counts{Entries: 10, ChainBreaks: 1}},
		"hash chain at the beginning": {func(s *scene) { s.log[0].PrevHash++ }, Counts{Entries: 10, ChainBreaks: 1}},
		"others' orders and other kinds": {func(s *scene) {
			s.log = append(s.log, Entry{IsOrder: true, ClOrdID: []byte("SOMEONE-ELSE")}, Entry{IsOrder: true, ClOrdID: []byte(fixorder.ID{Run: 77, Probe: 2}.ClOrdID(3))}, Entry{})
			s.renumber()
		}, Counts{Entries: 13, Foreign: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.change(s)
			checker := NewChecker(id, before, 1000+before, true)
			got := check(checker, s)
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v\n%s", got, c.want, strings.Join(checker.Examples(), "\n"))
			}
			if (got.Violations() > 0) != (len(checker.Examples()) > 0) {
				t.Errorf("%d violations, examples %q", got.Violations(), checker.Examples())
			}
		})
	}
}

func TestLaterStepSeesWhatBelongsToAnEarlierOne(t *testing.T) {
	s := newScene(t)
	c := NewChecker(id, before, 1000+before, true)
	s.orders[9].Fate = load.Unknown
	late := s.log[9]
	s.log = s.log[:9]
	if got := check(c, s); got != (Counts{Entries: 9, UnknownAbsent: 1}) {
		t.Fatalf("first step: %+v", got)
	}
	again := s.log[0]
	again.Seq, again.PrevHash, again.Hash = late.Seq+1, late.Hash, 5
	c.Begin(first+10, nil, nil)
	c.Entry(late)
	c.Entry(again)
	if got := c.Finish(); got != (Counts{Entries: 2, Late: 1, Duplicates: 1}) {
		t.Errorf("second step: %+v", got)
	}
}

func TestControlSeesWhatWasDoneToIt(t *testing.T) {
	s := newScene(t)
	v := NewVerifier(id, before, 1000+before, true)
	v.Begin(first, s.orders, nil)
	for _, e := range s.log {
		v.Entry(e)
	}
	counts, err := v.Finish()
	if err != nil || counts != (Counts{Entries: 10}) {
		t.Errorf("%+v, %v", counts, err)
	}
	if !v.dropped || !v.repeated {
		t.Error("the control got an unmodified log")
	}
}

// A control that finds nothing must be reported.
func TestBlindControlIsAnError(t *testing.T) {
	s := newScene(t)
	v := NewVerifier(id, before, 1000+before, true)
	v.Begin(first, s.orders, nil)
	for _, e := range s.log {
		v.Entry(e)
	}
	v.control.counts, v.control.inLog = Counts{}, v.inLog
	if _, err := v.Finish(); err == nil || !strings.Contains(err.Error(), "negative control") {
		t.Errorf("got %v", err)
	}
}

func TestFileRoundTrip(t *testing.T) {
	s := newScene(t)
	s.orders[4] = load.Order{T1: 5, Fate: load.Unsent}
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Header{ID: id, Partition: 0x21})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(first, s.orders); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(first+10, s.orders[:1]); err != nil {
		t.Fatal(err)
	}
	var got []Record
	h, err := Read(&buf, func(_ Header, r Record) error { got = append(got, r); return nil })
	if err != nil || h != (Header{ID: id, Partition: 0x21}) || len(got) != 11 {
		t.Fatalf("%+v, %d records, %v", h, len(got), err)
	}
	if r := got[3]; r.Index != first+3 || r.Fate != load.Acked || r.Seq != before+4 || r.Epoch != 1 || r.Copies != 2 || r.Ended-r.Created != 2 {
		t.Errorf("record 3: %+v", r)
	}
	if r := got[4]; r.Fate != load.Unsent || r.Sent != 0 || r.Ended != 0 || r.Created == 0 {
		t.Errorf("unsent record: %+v", r)
	}
	if got[10].Index != first+10 {
		t.Errorf("second step: %+v", got[10])
	}
}

func FuzzRead(f *testing.F) {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Header{ID: id})
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Append(1, make([]load.Order, 3)); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add(buf.Bytes()[:50])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		if _, err := Read(bytes.NewReader(b), func(Header, Record) error { n++; return nil }); err == nil && n*recordSize+headerSize != len(b) {
			t.Fatalf("%d records read from %d bytes", n, len(b))
		}
		_, _ = Read(bytes.NewReader(b), func(Header, Record) error { return io.ErrUnexpectedEOF })
	})
}
