package peerkey

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

func TestRecordsCarryEverything(t *testing.T) {
	key := New()
	a, b := meet(t, key, key)
	var want, wire []byte
	for _, n := range []int{1, 2, 300, MaxRecord - 1, MaxRecord, MaxRecord + 1, 3*MaxRecord + 7, 1} {
		data := bytes.Repeat([]byte{byte(n)}, n)
		want, wire = append(want, data...), a.Seal(wire, data)
	}
	if len(a.Seal(nil, nil)) != 0 {
		t.Error("no data makes a record")
	}
	var got, held []byte
	for n := 1; len(wire) > 0; n = n*3%50_021 + 1 {
		k := min(n, len(wire))
		held = append(held, wire[:k]...)
		wire = wire[k:]
		var rest []byte
		var err error
		if got, rest, err = b.Open(got, held); err != nil {
			t.Fatal(err)
		}
		if len(rest) >= maxSealed {
			t.Fatalf("%d bytes are kept, allowed: less than a record", len(rest))
		}
		held = append([]byte(nil), rest...)
	}
	if !bytes.Equal(got, want) || len(held) > 0 {
		t.Errorf("%d bytes arrived of %d, or others; %d are left", len(got), len(want), len(held))
	}
}

// An attacker on the path can end the connection, and nothing else.
func TestTamperedRecords(t *testing.T) {
	for name, tamper := range map[string]func(a, b, c []byte) []byte{
		"repeated":             func(a, _, _ []byte) []byte { return bytes.Join([][]byte{a, a}, nil) },
		"left out":             func(a, _, c []byte) []byte { return bytes.Join([][]byte{a, c}, nil) },
		"in another order":     func(a, b, c []byte) []byte { return bytes.Join([][]byte{b, a, c}, nil) },
		"two as one":           func(a, b, _ []byte) []byte { a[0] += byte(len(b)); return append(a, b...) },
		"shorter":              func(a, _, _ []byte) []byte { a[0]--; return a },
		"longer than allowed":  func(a, _, _ []byte) []byte { a[2] = 0xff; return a },
		"shorter than allowed": func(a, _, _ []byte) []byte { a[0] = minSealed - 1; return a },
	} {
		key := New()
		a, b := meet(t, key, key)
		x, y, z := a.Seal(nil, []byte("first")), a.Seal(nil, []byte("other")), a.Seal(nil, []byte("third"))
		got, _, err := b.Open(nil, tamper(x, y, z))
		if !errors.Is(err, ErrRecord) {
			t.Errorf("%s: opened %q, %v", name, got, err)
		}
		if !bytes.HasPrefix([]byte("firstotherthird"), got) {
			t.Errorf("%s: %q came out", name, got)
		}
	}
}

func TestEveryBitOfARecord(t *testing.T) {
	key := New()
	size := len(func() []byte { a, _ := meet(t, key, key); return a.Seal(nil, []byte("x")) }())
	for bit := range 8 * size {
		a, b := meet(t, key, key)
		record := a.Seal(nil, []byte("x"))
		record[bit/8] ^= 1 << (bit % 8)
		got, rest, err := b.Open(nil, record)
		// A length beyond the data waits for more, and fails then.
		if err == nil && len(rest) == size {
			got, _, err = b.Open(nil, append(rest, make([]byte, maxSealed)...))
		}
		if !errors.Is(err, ErrRecord) || len(got) > 0 {
			t.Fatalf("bit %d: %q, %v", bit, got, err)
		}
	}
}

// After so many records both ends rekey.
func TestKeysAreReplaced(t *testing.T) {
	key := New()
	a, b := meet(t, key, key)
	a.out.until, b.in.until = 3, 3
	before := a.out.key
	for range 10 {
		passes(t, a, b, "on and on")
	}
	if a.out.key == before || a.out.key != b.in.key || a.out.until != 3+rekeyAfter {
		t.Errorf("the key is the same, or the ends have other ones")
	}
}

func TestRecordsAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	key := New()
	a, b := meet(t, key, key)
	data, sealed, opened := make([]byte, 400), make([]byte, 0, 1024), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(1000, func() {
		sealed = a.Seal(sealed[:0], data)
		var err error
		if opened, _, err = b.Open(opened[:0], sealed); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a record, want 0", n)
	}
}

// No forged input opens, or makes us keep more than a record of it.
func FuzzOpen(f *testing.F) {
	key := New()
	a, b := meet(f, key, key)
	fresh := *b
	f.Add(a.Seal(nil, []byte("genuine")), 3)
	f.Add([]byte{21, 0, 0, 0}, 1)
	f.Add(bytes.Repeat([]byte{0xff}, 64), 64)
	genuine := a.out.n
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		r := fresh // each stream begins at the first record
		var got, held []byte
		for len(stream) > 0 {
			k := min(max(size, 1), len(stream))
			held, stream = append(held, stream[:k]...), stream[k:]
			var rest []byte
			var err error
			if got, rest, err = r.Open(got, held); err != nil {
				break
			}
			if held = append([]byte(nil), rest...); len(held) >= maxSealed {
				t.Fatalf("%d bytes are kept", len(held))
			}
		}
		if len(got) > 0 && (string(got) != "genuine" || r.in.n > genuine+1) {
			t.Fatalf("%q came out", got)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	key := New()
	x, y := meet(b, key, key)
	for name, size := range map[string]int{"300 B": 300, "32 KiB": MaxRecord} {
		b.Run(name, func(b *testing.B) {
			data, sealed, opened := make([]byte, size), make([]byte, 0, 2*MaxRecord), make([]byte, 0, 2*MaxRecord)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				sealed = x.Seal(sealed[:0], data)
				opened, _, _ = y.Open(opened[:0], sealed)
			}
		})
	}
}
