package model

import "testing"

func TestProbe(t *testing.T) {
	for _, b := range []Bounds{{Orders: 1}, {Orders: 1, Faults: 1}, {Orders: 2, Faults: 1}, {Orders: 1, Faults: 1, HandOvers: 1, Retires: 1}, {Orders: 1, Faults: 2}, {Orders: 1, Faults: 2, Replace: true}, {Orders: 2, Faults: 2, HandOvers: 1, Retires: 1}} {
		res, err := Search(&Spec{Bounds: b}, Options{Healthy: true})
		t.Logf("%v: %d states %d trans depth %d %v %v gone %d stuck %d %v err %v", b, res.States, res.Transitions, res.Depth, res.Took, res.Bytes>>20, res.AllGone, res.Stuck, res.Broken, err)
		for i, s := range res.Trace {
			t.Logf("%2d %s", i+1, s.Text)
		}
		if len(res.Trace) > 0 {
			return
		}
	}
}

func TestMut(t *testing.T) {
	for _, m := range append(Mutants(), Variants()...) {
		res, err := Search(&Spec{Bounds: Bounds{2, 2, 1, 1, false}, Mutant: m}, Options{})
		t.Logf("%v: %d states  %v %v len %d err %v", m, res.States, res.Took, res.Broken, len(res.Trace), err)
		for i, s := range res.Trace {
			t.Logf("%2d %s", i+1, s.Text)
		}
	}
}
