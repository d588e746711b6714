package archive

import (
	"bytes"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// benchEntries is a full segment of orders of some 305 bytes.
const benchEntries = 1 << 16

func benchLog(b *testing.B) *testLog {
	b.Helper()
	return logOf(b, benchEntries)
}

func rates(b *testing.B, raw, stored int) {
	b.ReportMetric(float64(b.N)*benchEntries/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(stored)/benchEntries, "stored-B/entry")
	b.ReportMetric(float64(raw)/float64(stored), "ratio")
}

// BenchmarkEncode is compression, hashes and index of a segment, without the store.
func BenchmarkEncode(b *testing.B) {
	l, e := benchLog(b), newEncoder()
	var h Header
	var data []byte
	b.ResetTimer()
	for b.Loop() {
		var err error
		if h, data, err = e.encode(Header{Kind: KindSegment, Grid: grid, Partition: part}, 1, 0, l.entries); err != nil {
			b.Fatal(err)
		}
	}
	rates(b, int(h.Raw), len(data))
}

// BenchmarkWrite is all of it to a directory, in batches of 5,000 that are merged into segments: fsync of each object,
// and what is merged is read back and verified.
func BenchmarkWrite(b *testing.B) {
	l := benchLog(b)
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		w := openWriter(b, newDir(b), Options{Grid: grid})
		b.StartTimer()
		write(b, w, l, 1, benchEntries, 5000)
		w.settle()
		b.StopTimer()
		w.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*benchEntries/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkVerify reads a segment from memory with all checks.
func BenchmarkVerify(b *testing.B) {
	l := benchLog(b)
	h, data, err := newEncoder().encode(Header{Kind: KindSegment, Grid: grid, Partition: part}, 1, 0, l.entries)
	if err != nil {
		b.Fatal(err)
	}
	d := newDecoder()
	b.ResetTimer()
	for b.Loop() {
		o, err := d.open("bench", bytes.NewReader(data))
		if err == nil {
			err = o.each(func(*order.Entry, []byte) error { return nil })
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	rates(b, int(h.Raw), len(data))
}

// BenchmarkReplay reads a directory and applies every entry to a machine, as a restore does.
func BenchmarkReplay(b *testing.B) {
	s := newDir(b)
	w := openWriter(b, s, Options{Grid: grid})
	write(b, w, benchLog(b), 1, benchEntries, 5000)
	w.Close()
	r, err := OpenReader(b.Context(), s, grid)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if state, err := r.Replay(b.Context(), part); err != nil || state.Problem != nil {
			b.Fatal(state.Problem, err)
		}
	}
	b.ReportMetric(float64(b.N)*benchEntries/b.Elapsed().Seconds(), "entries/s")
}
