package rounds

import "testing"

func TestAccount(t *testing.T) {
	before := parseSamples("# HELP x y\n" + ordersHeld + " 0\n" + mallocs + " 1000\n" + gcPauses + " 2\n" +
		`ordergrid_node_runtime_gc_pause_seconds_bucket{le="0.00048828125"} 2` + "\n" + `ordergrid_node_runtime_gc_pause_seconds_bucket{le="0.0009765625"} 2` + "\n" +
		`ordergrid_node_runtime_gc_pause_seconds_bucket{le="0.001953125"} 2` + "\nnonsense\nx y z\n")
	filled := samples{}
	for k, v := range before {
		filled[k] = v
	}
	filled[ordersHeld], filled[mallocs] = 10_000, 1100
	after := samples{automatic: 1, gcPauses: 4, ordersHeld: 12_000, "go_gc_heap_live_bytes": 3 << 20, "process_resident_memory_bytes": 5,
		`ordergrid_node_runtime_gc_pause_seconds_bucket{le="0.00048828125"}`: 2,
		`ordergrid_node_runtime_gc_pause_seconds_bucket{le="0.0009765625"}`:  3,
		`ordergrid_node_runtime_gc_pause_seconds_bucket{le="0.001953125"}`:   4}
	n := account("primary", before, filled, after)
	if n.Held != 12_000 || n.Live != 3<<20 || n.AllocsPerOrder != 0.01 || n.Natural != (Collections{}) {
		t.Errorf("account %+v", n)
	}
	if want := (Collections{Count: 1, Pauses: 2, Long: 1, Longest: 0.001953125}); n.Forced != want {
		t.Errorf("collections %+v, want %+v", n.Forced, want)
	}
}
