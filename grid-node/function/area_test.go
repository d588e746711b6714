package function

import "testing"

// TestAreaIsWhatTheModuleHas: the area that is kept between calls is the module's own, while
// its memory grows and it changes the size, until that is too small. The module answers the
// sequence number, makes it the size, and takes a page.
func TestAreaIsWhatTheModuleHas(t *testing.T) {
	bin := entry(Post, nil,
		constI32(areaAt+areaData), constI32(areaAt+areaSeq), "\x29\x03\x00", "\x37\x03\x00",
		constI32(areaAt+areaOut), constI32(areaData), "\x36\x02\x00",
		constI32(areaAt+areaOut+4), constI32(8), "\x36\x02\x00",
		constI32(areaAt+areaSize), constI32(areaAt+areaSeq), "\x28\x02\x00", "\x36\x02\x00",
		constI32(1), opMemoryGrow, 0, 0x1a, constI32(1))
	least := uint64(needed(false, 0))
	for _, interpret := range []bool{false, true} {
		i, o := load(t, bin, Post, Options{Interpret: interpret}), with(t)
		before := i.Bytes()
		for _, size := range []uint64{least + 1000, least + 1000, least, 2 * least, least + 8, least - 1} {
			o.Seq = size
			record, fault := i.Record(t.Context(), o)
			if fault != None || len(record) != 8 || le.Uint64(record) != size {
				t.Fatalf("interpreted %t: %x, %v, want %d", interpret, record, i.Err(fault), size)
			}
			area, ok := i.view()
			if ok != (size >= least) || ok && (uint64(len(area)) != size || cap(area) != len(area)) {
				t.Fatalf("interpreted %t: an area of %d bytes, %t, after size %d", interpret, len(area), ok, size)
			}
		}
		if i.Bytes() <= before {
			t.Fatalf("memory of %d bytes did not grow", before)
		}
		for range 2 {
			if record, fault := i.Record(t.Context(), o); fault != BadResult {
				t.Errorf("interpreted %t: too small an area has %x, %v, want a bad result", interpret, record, fault)
			}
		}
	}
}
