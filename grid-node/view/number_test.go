package view

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestFixedIsExactOrFar(t *testing.T) {
	for s, want := range map[string]string{
		"0": "0", "-0": "0", "1": "1", "1.50": "1.5", ".5": "0.5", "5.": "5", "-12.00000001": "-12.00000001",
		"92233720368.54775807": "92233720368.54775807", "92233720368.5477580": "92233720368.547758",
		"92233720368.54775808": "far", "0.000000001": "far", "0.1000000000": "0.1", "99999999999999999999": "far",
		"18446744073709551616": "far", "-92233720368.54775807": "-92233720368.54775807",
		"": "bad", "-": "bad", ".": "bad", "1.2.3": "bad", "1e5": "bad", "+1": "bad", "123456789012345678901": "bad",
	} {
		v, far, ok := parseFixed([]byte(s))
		got := fixedNumber(v).String()
		if far {
			got = "far"
		}
		if !ok {
			got = "bad"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
}

// TestNumbersAreThoseOfBig compares parsing, order and ranges with math/big.
func TestNumbersAreThoseOfBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte('0' + byte(r.IntN(10)))
		}
		return b.String()
	}
	draw := func() (Number, *big.Rat) {
		s := digits(1 + r.IntN(12))
		if r.IntN(3) > 0 {
			s += "." + digits(1+r.IntN(12))
		}
		if r.IntN(3) == 0 {
			s = "-" + s
		}
		n, err := ParseNumber(s)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := new(big.Rat).SetString(s)
		if y, _ := new(big.Rat).SetString(n.String()); x.Cmp(y) != 0 || !n.Canonical() {
			t.Fatalf("%s was read as %s", s, n)
		}
		return n, x
	}
	for range 5000 {
		a, x := draw()
		b, y := draw()
		if a.Compare(b) != x.Cmp(y) {
			t.Fatalf("%s against %s is %d, want %d", a, b, a.Compare(b), x.Cmp(y))
		}
		from, to := FixedRange(&a, &b)
		v := r.Int64N(math.MaxInt64>>r.IntN(60)) - r.Int64N(math.MaxInt64>>r.IntN(60))
		at, _ := new(big.Rat).SetString(fixedNumber(v).String())
		if got, want := v >= from && v <= to, at.Cmp(x) >= 0 && at.Cmp(y) <= 0; got != want {
			t.Fatalf("%s from %s to %s: %v, want %v", fixedNumber(v), a, b, got, want)
		}
	}
	if _, err := ParseNumber(strings.Repeat("9", 39)); err == nil {
		t.Error("39 digits were taken")
	}
	if _, err := ParseNumber("0." + strings.Repeat("9", 20)); err == nil {
		t.Error("20 digits behind the point were taken")
	}
}

func TestClock(t *testing.T) {
	var c clock
	for _, s := range []string{"20260101-00:00:00", "20260101-00:00:00.123", "20240229-23:59:59.999", "20240229-23:59:59", "00010101-00:00:00", "99991231-23:59:59.001"} {
		want, err := time.Parse("20060102-15:04:05", s)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := c.parse([]byte(s)); !ok || got != want.UnixMilli() {
			t.Errorf("%s is %d, want %d", s, got, want.UnixMilli())
		}
	}
	for _, s := range []string{"", "20260101", "2026010a-00:00:00", "20260101-00:00:00.1", "20260101-00:00:00.12x", "20260101-00:00:00,123"} {
		if _, ok := c.parse([]byte(s)); ok {
			t.Errorf("%q was taken", s)
		}
	}
}

// TestPostingsWrap has rows whose low halves pass zero.
func TestPostingsWrap(t *testing.T) {
	var p postings
	mem := budget{limit: 1 << 20}
	p.open(&mem, mem.limit)
	defer p.close()
	const first, rows = 1<<32 - 50, 100
	d := &Def{dict: new(dict)}
	if full, err := d.dict.open(&mem, 10); full || err != nil {
		t.Fatal(err)
	}
	defer d.dict.close()
	code, _ := d.dict.add([]byte("x"), d.dict.hash([]byte("x")))
	for row := uint64(first); row < first+rows; row++ {
		if ok, err := p.reserve(&d.dict.entry(code).list); !ok {
			t.Fatal(err)
		}
		p.add(&d.dict.entry(code).list, uint32(row))
	}
	s := &Snapshot{v: &View{posts: []postings{p}}, base: first + 9, at: first + 79}
	next := uint64(first + 10)
	s.posted(d, code, func(row uint64) bool {
		if row != next {
			t.Fatalf("row %d, want %d", row, next)
		}
		next++
		return true
	})
	if next != first+80 {
		t.Errorf("rows up to %d, want %d", next-1, first+79)
	}
	for row := uint64(first); row < first+rows; row++ {
		p.drop(&d.dict.entry(code).list, uint32(row))
	}
	if h := d.dict.entry(code).list; h.head != 0 || h.count != 0 {
		t.Errorf("after all rows were dropped: %+v", h)
	}
}
