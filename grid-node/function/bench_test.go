package function

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestCallsDoNotAllocate: in the steady state, of every kind, accepted, refused or changed.
func TestCallsDoNotAllocate(t *testing.T) {
	pre := load(t, examples.FatFinger, Pre, Options{Config: []byte("quantity=10")})
	enrich := load(t, examples.EnrichClient, Pre, Options{Config: []byte("A=B"), Tags: []uint32{10001}})
	post := load(t, examples.AuditTrail, Post, Options{Fuel: 1_000_000})
	compute := load(t, testdata(t, "compute.wasm"), Compute, Options{})
	o, args := with(t, set(38, "11"), set(1, "A")), computeArgs(1, 10)
	for name, call := range map[string]func() bool{
		"Pre":     func() bool { return pre.Decide(t.Context(), o).Verdict == Refuse },
		"change":  func() bool { return enrich.Decide(t.Context(), o).Verdict == Change },
		"Post":    func() bool { _, f := post.Record(t.Context(), o); return f == None },
		"Compute": func() bool { _, _, f := compute.Compute(t.Context(), args); return f == None },
		"digest":  func() bool { return post.Digest() != 0 },
	} {
		ok := true
		if n := testing.AllocsPerRun(200, func() { ok = ok && call() }); n != 0 || !ok {
			t.Errorf("%s: %v allocations a call, as expected: %v", name, n, ok)
		}
	}
}

// BenchmarkCall is what an order pays: nothing, a check of five fields, a copy with all
// fields found in the module, and the functions that are there.
func BenchmarkCall(b *testing.B) {
	five := Options{Config: []byte("quantity=1000000\nvalue=9000000000")}
	for _, c := range []struct {
		name string
		bin  []byte
		kind Kind
		opts Options
	}{
		{"empty", entry(Pre, nil, constI32(0)), Pre, Options{}},
		{"five-fields", examples.FatFinger, Pre, five},
		{"restricted", examples.RestrictedList, Pre, Options{Config: []byte("AAA\nBBB")}},
		{"enrich", examples.EnrichClient, Pre, Options{Config: []byte("A=B"), Tags: []uint32{10001}}},
		{"copy-parse", testdata(b, "parse.wasm"), Pre, Options{Tags: []uint32{10001}}},
		{"audit", examples.AuditTrail, Post, Options{Fuel: 1_000_000}},
	} {
		b.Run(c.name, func(b *testing.B) {
			i, o := load(b, c.bin, c.kind, c.opts), with(b)
			o.Parsed = parsed(b, o.Raw) // as in the node
			b.ReportAllocs()
			for b.Loop() {
				if f := call(i, b, o); f != None {
					b.Fatal(i.Err(f))
				}
			}
			b.ReportMetric(float64(i.Used()), "fuel/op")
		})
	}
	b.Run("locate", func(b *testing.B) { // of an empty call: finding the fields
		l, o := order.NewLocator(ownTags...), with(b)
		for b.Loop() {
			l.Locate(o.Raw, o.Places)
		}
	})
}

// computations are those of compute.c, in Go.
var computations = []struct {
	name string
	n    uint32
	run  func(n uint32) uint32
}{
	{"primes", 60_000, goPrimes},
	{"fibonacci", 22, goFibonacci},
	{"product", 32, goProduct},
	{"collatz", 2_000, goCollatz},
	{"switch", 100_000, nil},
	{"hash", 60_000, nil},
}

// BenchmarkCompute compares in one run: go test -bench Compute -count 5, interleaved by
// count. Metered against unmetered, and against Go.
func BenchmarkCompute(b *testing.B) {
	bin := testdata(b, "compute.wasm")
	for k, c := range computations {
		args := computeArgs(byte(k), c.n)
		b.Run(c.name+"/metered", func(b *testing.B) {
			i := load(b, bin, Compute, Options{Fuel: 1 << 40})
			for b.Loop() {
				if _, _, f := i.Compute(b.Context(), args); f != None {
					b.Fatal(f)
				}
			}
			b.ReportMetric(float64(i.Used()), "fuel/op")
		})
		b.Run(c.name+"/unmetered", func(b *testing.B) {
			plain := unmetered(b, bin, Compute, Options{Pages: defaultPages})
			for b.Loop() {
				plain.compute(b, args)
			}
		})
		if c.run != nil {
			b.Run(c.name+"/go", func(b *testing.B) {
				for b.Loop() {
					sink = c.run(c.n)
				}
			})
		}
	}
}

var sink uint32

// TestGoComputesTheSame: what the benchmark compares with is the same computation.
func TestGoComputesTheSame(t *testing.T) {
	i := load(t, testdata(t, "compute.wasm"), Compute, Options{Fuel: 1 << 40})
	for k, c := range computations {
		if c.run == nil {
			continue
		}
		out, _, fault := i.Compute(t.Context(), computeArgs(byte(k), c.n))
		if fault != None || fmt.Sprint(le.Uint32(out)) != fmt.Sprint(c.run(c.n)) {
			t.Errorf("%s: %v, %v, in Go %d", c.name, out, fault, c.run(c.n))
		}
	}
}

var goSieve [1 << 16]byte

func goPrimes(n uint32) (found uint32) {
	for i := uint32(2); i < n; i++ {
		goSieve[i&0xffff] = 1
	}
	for i := uint32(2); i < n && i < 1<<16; i++ {
		if goSieve[i] == 0 {
			continue
		}
		found++
		for k := 2 * i; k < n && k < 1<<16; k += i {
			goSieve[k] = 0
		}
	}
	return found
}

func goFibonacci(n uint32) uint32 {
	if n < 2 {
		return n
	}
	return goFibonacci(n-1) + goFibonacci(n-2)
}

var goMatrix [3][32][32]uint32

func goProduct(n uint32) uint32 {
	for i := range n {
		for k := range n {
			goMatrix[0][i][k], goMatrix[1][i][k] = i*7+k, i^k
		}
	}
	h := uint32(2166136261)
	for i := range n {
		for k := range n {
			sum := uint32(0)
			for j := range n {
				sum += goMatrix[0][i][j] * goMatrix[1][j][k]
			}
			goMatrix[2][i][k] = sum
		}
	}
	for i := range n {
		for k := range n {
			for s := 0; s < 32; s += 8 {
				h = (h ^ goMatrix[2][i][k]>>s&0xff) * 16777619
			}
		}
	}
	return h
}

func goCollatz(n uint32) (most uint32) {
	for i := uint32(1); i < n; i++ {
		steps := uint32(0)
		for v := uint64(i); v != 1; steps++ {
			if v&1 == 1 {
				v = 3*v + 1
			} else {
				v /= 2
			}
		}
		most = max(most, steps)
	}
	return most
}
