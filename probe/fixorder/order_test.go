package fixorder

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func maker(t testing.TB, v Version, id ID) *Maker {
	t.Helper()
	m, err := NewMaker(v, id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTemplatesAreValidOrders(t *testing.T) {
	for name, b := range map[string][]byte{"4.2": template42, "4.4": template44, "5.0SP2": template50} {
		if err := Check(b); err != nil {
			t.Errorf("template %s: %v", name, err)
		}
	}
}

func TestMake(t *testing.T) {
	created := time.Date(2026, 3, 4, 5, 6, 7, 8_999_999, time.UTC)
	for _, v := range Versions() {
		m := maker(t, v, ID{Run: 1, Probe: 2})
		got := string(m.Make(42, 7, created, created.Add(time.Millisecond)))
		if err := Check([]byte(got)); err != nil {
			t.Fatalf("FIX %s: %v", v, err)
		}
		for _, want := range []string{
			"8=" + v.BeginString() + "\x01", "\x0134=000000007\x01", "\x0152=20260304-05:06:07.009\x01",
			"\x0160=20260304-05:06:07.008\x01", "\x0111=P0000000102000000042\x01",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("FIX %s: %q not in %q", v, want, got)
			}
		}
	}
}

// Every order of a long run is valid, across second and day boundaries.
func TestEveryOrderIsValid(t *testing.T) {
	m := maker(t, FIX42, ID{Run: MaxRun, Probe: MaxProbes - 1})
	at := time.Date(2026, 12, 31, 23, 59, 58, 0, time.UTC)
	seen := map[string]bool{}
	for i := range int64(3000) {
		at = at.Add(1_234_567 * time.Nanosecond)
		b := m.Make(i*333_333, i, at, at)
		if err := Check(b); err != nil {
			t.Fatalf("order %d: %v", i, err)
		}
		off := bytes.Index(b, []byte("\x0111=")) + 4
		id, index, ok := ParseID(b[off : off+IDSize])
		if !ok || index != i*333_333 || id != (ID{Run: MaxRun, Probe: MaxProbes - 1}) {
			t.Fatalf("order %d: ClOrdID reads back as %+v %d %v", i, id, index, ok)
		}
		seen[string(b[off:off+IDSize])] = true
	}
	if len(seen) != 3000 {
		t.Errorf("%d distinct ClOrdIDs of 3000 orders", len(seen))
	}
}

func TestMakeAllocatesNothing(t *testing.T) {
	m := maker(t, FIX44, ID{})
	at, i := time.Now(), int64(0)
	if n := testing.AllocsPerRun(5000, func() {
		i++
		at = at.Add(time.Millisecond)
		_ = m.Make(i, i, at, at)
	}); n != 0 {
		t.Errorf("%v allocations an order", n)
	}
}

func TestNewMakerRefuses(t *testing.T) {
	for _, c := range []struct {
		v  Version
		id ID
	}{{"5.0", ID{}}, {"", ID{}}, {FIX42, ID{Run: MaxRun + 1}}, {FIX42, ID{Probe: -1}}, {FIX42, ID{Probe: MaxProbes}}} {
		if _, err := NewMaker(c.v, c.id); err == nil {
			t.Errorf("%+v accepted", c)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	good := maker(t, FIX42, ID{}).Make(1, 1, time.Now(), time.Now())
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if Check(bad) == nil {
			t.Errorf("byte %d flipped and accepted", i)
		}
	}
	for n := range good {
		if Check(good[:n]) == nil {
			t.Errorf("first %d bytes accepted", n)
		}
	}
}

func TestRunTextRoundTrip(t *testing.T) {
	for range 100 {
		n := NewRun()
		got, err := ParseRun(RunText(n))
		if err != nil || got != n {
			t.Fatalf("%d: %d, %v", n, got, err)
		}
	}
	for _, s := range []string{"", "0000000", "000000000", "0000000I", "0000000a", "0000 000"} {
		if _, err := ParseRun(s); err == nil {
			t.Errorf("%q accepted", s)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add([]byte("P0000000102000000042"))
	f.Add([]byte("PRA20071115T00000001"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, index, ok := ParseID(b)
		if !ok {
			return
		}
		if err := id.check(); err != nil || index < 0 || index > MaxIndex {
			t.Fatalf("%q gives %+v %d", b, id, index)
		}
		var back [IDSize]byte
		id.put(back[:], index)
		if !bytes.Equal(back[:], b) {
			t.Fatalf("%q writes back as %q", b, back[:])
		}
	})
}

func BenchmarkMake(b *testing.B) {
	m := maker(b, FIX42, ID{})
	at, i := time.Now(), int64(0)
	for b.Loop() {
		i++
		_ = m.Make(i, i, at, at)
	}
}
