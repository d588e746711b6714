package function

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/hostile anew")

// hostileFiles are modules for tests of the node: accept an order unless its quantity is
// the number in the name, then do harm.
func hostileFiles() map[string][]byte {
	files := map[string][]byte{}
	add := func(quantity int64, name string, build func(entry func(body []byte) []byte) []byte) {
		guard := func(body []byte) []byte {
			return cat(constI32(areaAt+areaQuantity), "\x29\x03\x00", appendS64([]byte{opI64Const}, quantity*100_000_000), 0x51, // i64.load, i64.eq
				opIf, i32, body, opElse, constI32(0), opEnd)
		}
		files[string('0'+byte(quantity))+"-"+name+".wasm"] = build(guard)
	}
	plain := func(body ...any) func(func([]byte) []byte) []byte {
		return func(guard func([]byte) []byte) []byte { return entry(Pre, nil, guard(cat(body...))) }
	}
	add(1, "endless-loop", plain(loopForever, constI32(0)))
	add(2, "memory-growth", plain(opLoop, typeV, constI32(1), opMemoryGrow, 0, 0x1a, opBr, 0, opEnd, constI32(0)))
	add(3, "fill", plain(opLoop, typeV, constI32(70000), constI32(0), constI32(61000), opPrefix, subMemoryFill, 0, opBr, 0, opEnd, constI32(0)))
	add(4, "out-of-bounds", plain(constI32(-4), 0x28, 2, 0))
	add(5, "unknown-verdict", plain(constI32(-3)))
	add(6, "smaller-area", plain(constI32(areaAt+areaSize), constI32(0), "\x36\x02\x00", constI32(-1)))
	add(7, "recursion", func(guard func([]byte) []byte) []byte {
		a := newAsm()
		locals := appendU32(nil, 1000)
		a.funcs = append(a.funcs, []byte{0})
		a.code = append(a.code, sized(cat(1, locals, i64, opCall, 1, opEnd))) // function 1 calls itself
		a.export("og1_pre", 0, a.fn(0, nil, guard(cat(opCall, 1))))
		return a.bytes()
	})
	add(8, "nan", plain(0x44, "\x01\x00\x00\x00\x00\x00\xf0\x7f", 0xb0, 0xa7)) // i64.trunc_f64_s of a NaN traps
	return files
}

// hostileCompute are modules of kind Compute: every call does harm.
func hostileCompute() map[string][]byte {
	return map[string][]byte{
		"endless-loop.wasm":  entry(Compute, nil, loopForever, constI32(0)),
		"memory-growth.wasm": entry(Compute, nil, opLoop, typeV, constI32(1), opMemoryGrow, 0, 0x1a, opBr, 0, opEnd, constI32(0)),
		"trap.wasm":          entry(Compute, nil, opUnreachable),
	}
}

// TestHostileComputeFiles are as this package builds them.
func TestHostileComputeFiles(t *testing.T) {
	files := hostileCompute()
	for name, want := range files {
		path := filepath.Join("testdata", "hostile-compute", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as built (%v); run go test ./grid-node/function -run TestHostileComputeFiles -update", path, err)
		}
		i, fault := load(t, want, Compute, Options{Fuel: 1_000_000}), OutOfFuel
		if name == "trap.wasm" {
			fault = Trapped
		}
		for range 2 {
			if r := i.Invoke(t.Context(), &KeyCall{Region: []byte("positions"), Key: []byte("k")}); r.Fault != fault || i.Used() > 1_000_000 {
				t.Errorf("%s: fault %v after fuel of %d, want %v within 1000000", name, r.Fault, i.Used(), fault)
			}
		}
	}
	if list, _ := filepath.Glob("testdata/hostile-compute/*"); len(list) != len(files) {
		t.Errorf("%d files, want %d: %q", len(list), len(files), list)
	}
}

// TestHostileFiles are as this package builds them.
func TestHostileFiles(t *testing.T) {
	files := hostileFiles()
	for name, want := range files {
		path := filepath.Join("testdata", "hostile", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as built (%v); run go test ./grid-node/function -run TestHostileFiles -update", path, err)
		}
		i := load(t, want, Pre, Options{})
		for range 2 {
			if d := i.Decide(t.Context(), with(t, set(38, "9"))); d.Verdict != Accept || d.Fault != None {
				t.Errorf("%s: %+v for an order that it has nothing against", name, d)
			}
			if d := i.Decide(t.Context(), with(t, set(38, name[:1]))); d.Fault == None {
				t.Errorf("%s: %+v, want a fault", name, d)
			}
		}
	}
	if list, _ := filepath.Glob("testdata/hostile/*"); len(list) != len(files) {
		t.Errorf("%d files, want %d: %q", len(list), len(files), list)
	}
}
