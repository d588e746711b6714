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
		sum, ok := a.Add(b)
		if got, _ := new(big.Rat).SetString(sum.String()); !ok || got.Cmp(new(big.Rat).Add(x, y)) != 0 || !sum.Canonical() {
			t.Fatalf("%s plus %s is %s", a, b, sum)
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

// TestSmallNumbersAreThoseOfBig has mantissas at the bounds of 64 bits, where numbers cease to be added without math/big.
func TestSmallNumbersAreThoseOfBig(t *testing.T) {
	var all []Number
	for _, v := range []int64{0, 1, -1, 10, -10, 99, 1 << 62, -1 << 62, math.MaxInt64 - 7, math.MaxInt64, math.MinInt64, math.MinInt64 + 8, 1_000_000_000_000_000_000} {
		for scale := range uint8(MaxScale + 1) {
			n := Number{Hi: v >> 63, Lo: uint64(v), Scale: scale}
			m, ok := NumberOf(n.Big())
			if canonical := ok && m == n; n.Canonical() != canonical {
				t.Fatalf("%d by ten to the power of -%d: canonical is %v, want %v", v, scale, n.Canonical(), canonical)
			}
			if ok && m == n {
				all = append(all, n)
			}
			if ok && shortest(v, scale) != m {
				t.Fatalf("%d by ten to the power of -%d is %v at its shortest, want %v", v, scale, shortest(v, scale), m)
			}
		}
	}
	all = append(all, Number{Hi: 1, Lo: 1}, Number{Hi: -2, Lo: 9, Scale: 3}, Number{Hi: 1<<61 - 1, Lo: 1, Scale: 1})
	for _, a := range all {
		x, _ := new(big.Rat).SetString(a.String())
		if new(big.Rat).SetFrac(a.Big(), new(big.Int).SetUint64(pow10[MaxScale])).Cmp(x) != 0 {
			t.Fatalf("%v is written as %s", a, a)
		}
		for _, b := range all {
			if got, want := a.Compare(b), a.Big().Cmp(b.Big()); got != want {
				t.Fatalf("%s against %s is %d, want %d", a, b, got, want)
			}
			got, ok := a.Add(b)
			want, wantOK := NumberOf(new(big.Int).Add(a.Big(), b.Big()))
			if ok != wantOK || got != want {
				t.Fatalf("%s plus %s is %s %v, want %s %v", a, b, got, ok, want, wantOK)
			}
		}
	}
}
