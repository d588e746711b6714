package function

import (
	"encoding/binary"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

func primesOf(n, rounds uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n), rounds)
}

// mapped calls an instance until it is at its end, and returns how often that was.
func mapped(t *testing.T, i *Instance, c KeyCall) (Result, int) {
	t.Helper()
	c.Step = StepEnd
	for n := 1; ; n++ {
		r := i.Invoke(t.Context(), &c)
		if i.Used() > 60_000 {
			t.Errorf("a call takes %d fuel, want at most 60,000: others wait for it", i.Used())
		}
		if r.Action != Again {
			return r, n
		}
		if n > 1<<20 {
			t.Fatal("it never ends")
		}
	}
}

// TestPrimesAddUp: the slices of any number of workers have all primes and all work, each once.
func TestPrimesAddUp(t *testing.T) {
	m, err := Load(t.Context(), examples.Primes, Compute, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context()) //nolint:errcheck // of memory
	const n, rounds = 10_000, 2
	most := uint64(0)
	for _, slices := range []uint32{1, 2, 3, 7, 50, 1000} {
		found, work := uint64(0), uint64(0)
		for slice := range slices {
			i, err := m.Instance(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r, _ := mapped(t, i, KeyCall{Args: primesOf(n, rounds), Slice: slice, Slices: slices})
			if r.Fault != None || r.Code != 0 || len(r.Out) != 16 {
				t.Fatalf("slice %d of %d: %+v", slice, slices, r)
			}
			found += binary.LittleEndian.Uint64(r.Out)
			work += binary.LittleEndian.Uint64(r.Out[8:])
			if one := binary.LittleEndian.Uint64(r.Out[8:]); slices == 2 {
				most = max(most, one)
			}
			_ = i.Close(t.Context())
		}
		if want := uint64(goPrimes(n)) * rounds; found != want || want != 1229*rounds {
			t.Errorf("%d slices have %d primes, want %d", slices, found, want)
		}
		if slices == 2 && most*100 > work*55 {
			t.Errorf("of two slices one has %d of %d divisions, want about half", most, work)
		}
	}
}

// TestPrimesOfRows has values of entries, and calls that are refused.
func TestPrimesOfRows(t *testing.T) {
	m, err := Load(t.Context(), examples.Primes, Compute, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context()) //nolint:errcheck // of memory
	i, err := m.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := KeyCall{Region: []byte("numbers"), Args: primesOf(0, 0), Slices: 1, Step: StepRow}
	for v := range uint32(100) {
		c.Value = binary.LittleEndian.AppendUint32(nil, v)
		if r := i.Invoke(t.Context(), &c); r.Fault != None || r.Code != 0 || r.Action != Keep {
			t.Fatalf("row %d: %+v", v, r)
		}
	}
	c.Value = nil
	if r, n := mapped(t, i, c); binary.LittleEndian.Uint64(r.Out) != 25 || n != 1 {
		t.Errorf("of 0 to 99 there are %d primes, in %d calls; want 25 in 1", binary.LittleEndian.Uint64(r.Out), n)
	}
	c.Step, c.Value = StepRow, []byte("12345")
	if r := i.Invoke(t.Context(), &c); r.Code != 1 {
		t.Errorf("a value of 5 bytes: %+v, want error 1", r)
	}
	c.Step = 0
	if r := i.Invoke(t.Context(), &c); r.Code != 1 {
		t.Errorf("a call that is no Map: %+v, want error 1", r)
	}
}

// TestAMapChangesNothing: what a function asks for that a step does not have is a bad result.
func TestAMapChangesNothing(t *testing.T) {
	for action, steps := range map[Action][]Step{Keep: {0, StepRow, StepEnd}, SetTo: {0}, Remove: {0}, Again: {StepEnd}, Again + 1: nil} {
		m, err := Load(t.Context(), entry(Compute, nil, constI32(areaAt+areaAction), constI32(int64(action)), "\x36\x02\x00", constI32(0)), Compute, Options{})
		if err != nil {
			t.Fatal(err)
		}
		i, err := m.Instance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []Step{0, StepRow, StepEnd} {
			want := BadResult
			for _, may := range steps {
				if may == s {
					want = None
				}
			}
			if r := i.Invoke(t.Context(), &KeyCall{Step: s, Slices: 1}); r.Fault != want || want == None && r.Action != action {
				t.Errorf("action %d in step %d: %+v, want fault %v", action, s, r, want)
			}
		}
		_ = m.Close(t.Context())
	}
}
