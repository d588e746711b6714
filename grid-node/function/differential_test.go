package function

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

func testdata(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// bare is a module as it came, without meter.
type bare struct {
	inst api.Module
	call api.Function
	at   uint32
}

func unmetered(tb testing.TB, bin []byte, kind Kind, opts Options) *bare {
	tb.Helper()
	r := wazero.NewRuntimeWithConfig(tb.Context(), config(&opts))
	tb.Cleanup(func() { _ = r.Close(tb.Context()) })
	inst, err := r.Instantiate(tb.Context(), bin)
	if err != nil {
		tb.Fatal(err)
	}
	at, err := inst.ExportedFunction("og1_area").Call(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return &bare{inst, inst.ExportedFunction(kind.entryPoint()), uint32(at[0])}
}

// compute calls og1_compute as Instance.Compute does.
func (b *bare) compute(tb testing.TB, args []byte) ([]byte, int32) {
	tb.Helper()
	area, _ := b.inst.Memory().Read(b.at, areaData+order64K)
	putSpan(area[areaPayload:], areaData, uint32(copy(area[areaData:], args)))
	putSpan(area[areaOut:], 0, 0)
	var stack [1]uint64
	if err := b.call.CallWithStack(tb.Context(), stack[:]); err != nil {
		tb.Fatal(err)
	}
	out, _ := output(area)
	return out, int32(stack[0])
}

func computeArgs(what byte, n uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{what}, n)
}

// TestMeterChangesNoResult computes with and without meter, compiled and interpreted: loops,
// recursion, calls by a table, switches. The same bytes, and the same fuel in both engines.
func TestMeterChangesNoResult(t *testing.T) {
	bin := testdata(t, "compute.wasm")
	opts := Options{Fuel: 1 << 40}
	compiled := load(t, bin, Compute, opts)
	opts.Interpret = true
	interpreted := load(t, bin, Compute, opts)
	plain := unmetered(t, bin, Compute, Options{Pages: defaultPages})
	rng := rand.New(rand.NewPCG(1, 2))
	for what := byte(0); what < 7; what++ {
		for range 8 {
			args := computeArgs(what, rng.Uint32N(2000))
			if what == 1 {
				args = computeArgs(what, rng.Uint32N(18))
			}
			want, wantCode := plain.compute(t, args)
			for _, i := range []*Instance{compiled, interpreted} {
				got, code, fault := i.Compute(t.Context(), args)
				if fault != None || code != wantCode || !bytes.Equal(got, want) {
					t.Fatalf("%x: %x, code %d, fault %v (%v); without meter %x, %d", args, got, code, fault, i.Err(fault), want, wantCode)
				}
			}
			if compiled.Used() != interpreted.Used() {
				t.Fatalf("%x: fuel %d compiled, %d interpreted", args, compiled.Used(), interpreted.Used())
			}
		}
	}
}

// TestFuelIsEnoughOrNot: a call that used n succeeds with n and fails with n-1, and the
// fuel of a loop is in proportion to its rounds.
func TestFuelIsEnoughOrNot(t *testing.T) {
	bin := testdata(t, "compute.wasm")
	for what := byte(0); what < 6; what++ {
		args := computeArgs(what, 14)
		i := load(t, bin, Compute, Options{})
		if _, _, fault := i.Compute(t.Context(), args); fault != None {
			t.Fatal(fault)
		}
		used := i.Used()
		for _, c := range []struct {
			fuel int64
			want Fault
		}{{used, None}, {used - 1, OutOfFuel}, {used / 2, OutOfFuel}} {
			_, _, fault := load(t, bin, Compute, Options{Fuel: max(c.fuel, 40)}).Compute(t.Context(), args)
			if fault != c.want && c.fuel >= 40 {
				t.Errorf("computation %d with fuel %d of %d: %v, want %v", what, c.fuel, used, fault, c.want)
			}
		}
	}
	i := load(t, bin, Compute, Options{Fuel: 1 << 40})
	var fuel []int64
	for _, n := range []uint32{1000, 2000, 3000} {
		i.Compute(t.Context(), computeArgs(5, n))
		fuel = append(fuel, i.Used())
	}
	if fuel[2]-fuel[1] != fuel[1]-fuel[0] || fuel[1]-fuel[0] < 4*1000 {
		t.Errorf("fuel of 1000, 2000 and 3000 rounds: %v", fuel)
	}
}

// TestFuelBoundsInstructions compares fuel with what an interpreter would count: each
// instruction that costs anything is paid for before it runs. Straight code pays exactly.
func TestFuelBoundsInstructions(t *testing.T) {
	body := []any{}
	for range 50 {
		body = append(body, constI32(3), 0x1a) // two instructions
	}
	i := load(t, entry(Compute, nil, append(body, constI32(0))...), Compute, Options{})
	if i.Compute(t.Context(), nil); i.Used() != 101 {
		t.Errorf("101 instructions took fuel %d", i.Used())
	}
	long := func(n int) []byte { // n instructions behind a branch that is taken if the argument's length is 0
		b := cat(opBlock, typeV, constI32(areaAt+areaPayload+4), "\x28\x02\x00", 0x45, opBrIf, 0)
		for range n / 2 {
			b = cat(b, constI32(3), 0x1a)
		}
		return cat(b, opEnd, constI32(0))
	}
	i = load(t, entry(Compute, nil, long(100)), Compute, Options{})
	i.Compute(t.Context(), nil)
	without := i.Used()
	i.Compute(t.Context(), []byte{1})
	if with := i.Used(); with-without != 100 || without != 5 {
		t.Errorf("fuel %d without the branch, %d with it", without, with)
	}
}

// random makes a function of random structure: blocks, loops that end, branches out of
// blocks, returns. Local 0 counts rounds down, local 1 is hashed.
type random struct {
	rng   *rand.Rand
	depth int // open blocks and loops around
	loops []int
	left  int
}

func (g *random) body() []byte {
	var b []byte
	for n := 1 + g.rng.IntN(5); n > 0 && g.left > 0; n-- {
		g.left--
		switch g.rng.IntN(8) {
		case 0, 1:
			b = cat(b, opLocalGet, 1, constI32(int64(g.rng.Int32())), 0x6c, constI32(13), 0x73, opLocalSet, 1)
		case 2:
			g.depth++
			b = cat(b, opBlock, typeV, g.body(), opEnd)
			g.depth--
		case 3: // a loop of as many rounds as local 0 has left
			g.depth++
			b = cat(b, opLoop, typeV, g.body(), opLocalGet, 0, constI32(1), opI32Sub, opLocalTee, 0, constI32(0), 0x4a, opBrIf, 0, opEnd)
			g.depth--
		case 4:
			g.depth++
			b = cat(b, opLocalGet, 1, constI32(1), 0x71, opIf, typeV, g.body(), opElse, g.body(), opEnd)
			g.depth--
		case 5: // out of everything, with the result
			b = cat(b, opLocalGet, 1, constI32(15), 0x71, 0x45, opIf, typeV, opLocalGet, 1, opReturn, opEnd)
		case 6:
			b = cat(b, opLocalGet, 1, opLocalGet, 1, constI32(7), 0x71, opBrIf, g.depth, opLocalSet, 1)
		default:
			b = cat(b, opLocalGet, 1, opCall, 1, opLocalSet, 1)
		}
	}
	return b
}

// module calls one random function from og1_compute, with local 1 from the argument.
func (g *random) module() []byte {
	a := newAsm()
	a.fn(1, nil, opLocalGet, 0, constI32(31), 0x6c, constI32(7), opI32Add)
	inner := a.fn(1, []byte{1, i32}, constI32(20), opLocalSet, 1, // parameter 0 is hashed: exchange
		opLocalGet, 0, opLocalGet, 1, opLocalSet, 0, opLocalSet, 1, g.body(), opLocalGet, 1)
	a.export("og1_compute", 0, a.fn(0, nil, constI32(areaAt+areaData), "\x28\x02\x00", opCall, inner))
	return a.bytes()
}

// TestRandomFunctions holds random functions against themselves without meter.
func TestRandomFunctions(t *testing.T) {
	total := int64(0)
	for seed := range uint64(60) {
		g := &random{rng: rand.New(rand.NewPCG(seed, 24)), left: 40}
		bin := g.module()
		plain := unmetered(t, bin, Compute, Options{Pages: defaultPages})
		fuel := [2][]int64{}
		for k, interpret := range []bool{false, true} {
			i := load(t, bin, Compute, Options{Fuel: 1 << 40, Interpret: interpret})
			for n := range uint32(4) {
				args := binary.LittleEndian.AppendUint32(nil, n*0x9e3779b9+uint32(seed))
				_, want := plain.compute(t, args)
				_, got, fault := i.Compute(t.Context(), args)
				if fault != None || got != want {
					t.Fatalf("seed %d, argument %d: %d, %v; without meter %d", seed, n, got, fault, want)
				}
				fuel[k] = append(fuel[k], i.Used())
				total += i.Used()
			}
		}
		if fmt.Sprint(fuel[0]) != fmt.Sprint(fuel[1]) {
			t.Fatalf("seed %d: fuel %v compiled, %v interpreted", seed, fuel[0], fuel[1])
		}
	}
	if total < 60*8*20 {
		t.Fatalf("the functions did next to nothing: fuel %d in all", total)
	}
}

// FuzzLoad loads whatever comes. What is loaded was valid before it was rewritten, and runs
// within its fuel.
func FuzzLoad(f *testing.F) {
	f.Add(testdata(f, "compute.wasm"))
	f.Add(testdata(f, "parse.wasm"))
	for _, c := range hostile(Compute) {
		f.Add(c.bin)
	}
	for seed := range uint64(8) {
		f.Add((&random{rng: rand.New(rand.NewPCG(seed, 24)), left: 40}).module())
	}
	ctx := f.Context()
	f.Fuzz(func(t *testing.T, bin []byte) {
		for _, kind := range []Kind{Pre, Post, Compute} {
			m, err := Load(ctx, bin, kind, Options{Fuel: 20_000, Interpret: true})
			if err != nil {
				if _, ok := errors.AsType[*Refusal](err); !ok {
					t.Fatalf("%v is no refusal", err)
				}
				continue
			}
			opts := Options{Pages: MaxPages, Interpret: true}
			r := wazero.NewRuntimeWithConfig(ctx, config(&opts))
			if _, err := r.CompileModule(ctx, bin); err != nil {
				t.Errorf("loaded, but as it came it is not valid: %v", err)
			}
			_ = r.Close(ctx)
			if i, err := m.Instance(ctx); err == nil {
				o := &Order{Raw: message(t)}
				if fault := call(i, t, o); i.Used() > 20_000 || fault == None && i.Used() < 1 {
					t.Errorf("%v with fuel %d", fault, i.Used())
				}
			}
			_ = m.Close(ctx)
		}
	})
}
