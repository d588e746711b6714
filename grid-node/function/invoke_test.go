package function

import (
	"bytes"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

func longs(vs ...int64) (b []byte) {
	for _, v := range vs {
		b = le.AppendUint64(b, uint64(v))
	}
	return b
}

func TestInvokeAdd(t *testing.T) {
	i := load(t, examples.Add, Compute, Options{})
	call := func(version uint64, value, args []byte) Result {
		return i.Invoke(t.Context(), &KeyCall{Region: []byte("positions"), Key: []byte("A"), Args: args, Value: value, Version: version})
	}
	for name, c := range map[string]struct {
		version     uint64
		value, args []byte
		want        []byte
		code        int32
	}{
		"no value":            {0, nil, longs(5), longs(5), 0},
		"a value":             {7, longs(100), longs(-30), longs(70), 0},
		"at the least":        {7, longs(100), longs(-30, 70), longs(70), 0},
		"below the least":     {7, longs(100), longs(-31, 70), nil, 3},
		"beyond 64 bits":      {7, longs(1<<63 - 1), longs(1), nil, 2},
		"value of other size": {7, []byte("x"), longs(1), nil, 1},
		"arguments of 3":      {0, nil, []byte("abc"), nil, 1},
	} {
		r := call(c.version, c.value, c.args)
		if r.Fault != None || r.Code != c.code || !bytes.Equal(r.Value, c.want) || (r.Action == SetTo) != (c.code == 0) || c.code == 0 && !bytes.Equal(r.Out, c.want) {
			t.Errorf("%s: %+v, want %x and code %d", name, r, c.want, c.code)
		}
	}
	if r := call(7, make([]byte, 65000), make([]byte, 1000)); r.Room != 65472 {
		t.Errorf("a call that does not fit has %+v, want room 65472", r)
	}
	value, args := longs(1), longs(2)
	if n := testing.AllocsPerRun(100, func() { call(1, value, args) }); n > 0 {
		t.Errorf("a call allocates %v times", n)
	}
}

func TestInvokeOutOfFuel(t *testing.T) {
	i := load(t, examples.Add, Compute, Options{Fuel: 30})
	if r := i.Invoke(t.Context(), &KeyCall{Key: []byte("A"), Args: longs(1)}); r.Fault != OutOfFuel || r.Action != Keep || r.Value != nil {
		t.Errorf("a call with fuel 30 has %+v, want a fault", r)
	}
}
