package store

import (
	"fmt"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resident counts the bytes of b that the kernel has provided.
func resident(t *testing.T, b []byte) (n int) {
	t.Helper()
	vec := make([]byte, (len(b)+pageSize-1)/pageSize)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&vec[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, v := range vec {
		n += int(v&1) * pageSize
	}
	return n
}

// TestPrefaultBeforeTheFirstEntry: the memory is provided before its use, that same memory
// is used, and later memory is requested only ahead of the tail.
func TestPrefaultBeforeTheFirstEntry(t *testing.T) {
	s := open(t, Options{})
	const ahead = 5 << 20 // segments of 1, 2 and 4 MiB
	s.Prefault(ahead)
	var mems [3]*byte
	for i := range mems {
		if mems[i] = s.seg.ready[i].Load(); mems[i] == nil {
			t.Fatalf("segment %d is not ready", i)
		}
	}
	if s.seg.ready[3].Load() != nil {
		t.Error("segment 3 is ready although not requested")
	}
	for i := 1; s.seg.tail < 4<<20; i++ {
		if err := add(s, fmt.Sprint(i), 1000); err != nil {
			t.Fatal(err)
		}
		s.SetCommitted(uint64(i))
	}
	for i, mem := range mems {
		if &s.seg.maps[i][0] != mem || s.seg.ready[i].Load() != &taken {
			t.Errorf("segment %d is another mapping than the one that was ready", i)
		}
	}
	if n := resident(t, s.seg.maps[2]); n < 2<<20 {
		t.Errorf("%d bytes of segment 2 are there, want 2 MiB or more", n)
	}
	before := s.ahead.to
	s.Prefault(8 << 10)
	if s.ahead.to != before {
		t.Errorf("asked up to %d for 8 KiB beyond %d, up to %d was there", s.ahead.to, s.seg.tail, before)
	}
	s.Prefault(3 << 20)
	if want := (s.seg.tail + 3<<20 + pageSize - 1) &^ (pageSize - 1); s.ahead.to != want {
		t.Errorf("asked up to %d, want %d", s.ahead.to, want)
	}
}

// TestPrefaultComesLate: the writer maps a segment itself and Prefault continues from
// there.
func TestPrefaultComesLate(t *testing.T) {
	s := open(t, Options{})
	for i := 1; s.seg.tail < 2<<20; i++ {
		if err := add(s, fmt.Sprint(i), 1000); err != nil {
			t.Fatal(err)
		}
		s.SetCommitted(uint64(i))
	}
	s.Prefault(64 << 10)
	if s.ahead.index != 1 || &s.ahead.mem[0] != &s.seg.maps[1][0] {
		t.Errorf("prefaults segment %d, the writer is in 1", s.ahead.index)
	}
	// The writer has entered segment 2, and has committed nothing there yet.
	s.seg.takeReady(2)
	s.Prefault(2 << 20)
	if s.ahead.index != 1 || s.seg.ready[2].Load() != &taken {
		t.Error("a second mapping of segment 2")
	}
}

// TestPrefaultOfTheIndex: the writer takes the prepared chunk, and a late one is released.
func TestPrefaultOfTheIndex(t *testing.T) {
	s := open(t, Options{})
	n := 0
	grow := func(pages uint32) {
		for s.keys.pages < pages {
			n++
			if err := add(s, fmt.Sprintf("%x", n), 16); err != nil {
				t.Fatal(err)
			}
			s.SetCommitted(s.last)
		}
	}
	grow(chunkPages / 4)
	s.Prefault(0)
	if s.keys.ready.Load() != nil {
		t.Fatal("a chunk is ready that is not needed yet")
	}
	grow(chunkPages * 3 / 4)
	s.Prefault(0)
	r := s.keys.ready.Load()
	if r == nil || r.chunk != 1 || resident(t, r.mem) < len(r.mem) {
		t.Fatalf("chunk 1 is not ready: %v", r)
	}
	s.Prefault(0)
	if s.keys.ready.Load() != r {
		t.Error("made ready twice")
	}
	grow(chunkPages + 1)
	if len(s.keys.chunks) != 2 || &s.keys.chunks[1][0] != &r.mem[0] {
		t.Error("the writer took another chunk")
	}
	late, err := mapChunk(1)
	if err != nil {
		t.Fatal(err)
	}
	s.keys.ready.Store(&readyChunk{chunk: 1, mem: late})
	if got := s.keys.takeReady(2); got != nil || s.keys.ready.Load() != nil {
		t.Error("chunk 1 was taken for chunk 2")
	}
}
