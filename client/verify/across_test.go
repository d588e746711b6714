package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A ClOrdID that two partitions accepted is found: it was sent to one that it does
// not belong to.
func TestAClOrdIDInTwoPartitions(t *testing.T) {
	g := &fakeGrid{logs: [][][]byte{goodLog(10)}, beside: [][][]byte{goodLog(3), logOf(0, 0)}}
	r, err := Run(t.Context(), g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	r.WriteText(&text)
	if r.ExitCode() != ExitDifferent || r.TwiceCount != 3 || !strings.Contains(text.String(), "PROBLEM  orders p0/") || !strings.Contains(text.String(), "DIFFERENT: 3 problems") {
		t.Fatalf("exit %d, %d twice, want %d and 3:\n%s", r.ExitCode(), r.TwiceCount, ExitDifferent, &text)
	}
}

// Runs that do not fit in memory go to a file, and give the same result.
func TestAcrossInMemoryAndInAFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const partitions, each = 9, 2000
	for _, memory := range []int{acrossMemory, partitions / 2 * each * idBytes, 0} {
		a := newAcross(memory)
		want := uint64(0)
		for p := range partitions {
			var ids []idSeq
			for i := range each {
				h := uint64(p)<<32 | uint64(i)*7
				if p > 0 && i%500 == 0 { // also in partition 0
					h, want = uint64(i)*7, want+1
				}
				ids = append(ids, idSeq{h, uint64(i + 1)})
			}
			sortIDs(ids)
			a.add(wire.PartitionID(p), ids)
		}
		var r Result
		a.report(&r)
		if r.TwiceCount != want || r.AcrossError != "" || len(r.Twice) != MaxProblems {
			t.Errorf("memory %d: %d found, %d listed, error %q; want %d", memory, r.TwiceCount, len(r.Twice), r.AcrossError, want)
		}
		a.close()
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "ordergrid-verify-*")); len(left) != 0 {
		t.Errorf("files left behind: %v", left)
	}
}

// Where no file can be created the verdict is not EQUAL.
func TestAcrossWithoutRoom(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	a := newAcross(0)
	defer a.close()
	a.add(0, []idSeq{{1, 1}})
	r := Result{Partitions: []Partition{{}}}
	a.report(&r)
	if r.ExitCode() != ExitIncomplete || !strings.Contains(r.AcrossError, "TMPDIR") {
		t.Errorf("exit %d, error %q, want %d and what to do", r.ExitCode(), r.AcrossError, ExitIncomplete)
	}
}

// writeSinks makes a sink directory of files by pod.
func writeSinks(t *testing.T, files map[string][]string) string {
	t.Helper()
	dir := t.TempDir()
	for pod, lines := range files {
		if err := os.MkdirAll(filepath.Join(dir, pod), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, pod, "g-p0.log"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A hand-over while verify reads: the next primary brings its own file up to date, in an epoch that
// the table did not have when reading began.
func TestAHandOverWhileSinksAreRead(t *testing.T) {
	log := logOf(10, 5) // up to epoch 2
	lines := sinkLines(log)
	dir := writeSinks(t, map[string][]string{"a": lines, "b": lines, "c": lines})
	for later, want := range map[uint64]int{4: ExitEqual, 3: ExitDifferent} {
		r, err := Run(t.Context(), &fakeGrid{logs: [][][]byte{log, log}, later: later}, Options{SinkDir: dir, Grid: "g"})
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode() != want {
			t.Errorf("three files have entries of epoch 2, the partition is in epoch %d: exit %d, want %d: %v", later, r.ExitCode(), want, r.Partitions[0].Problems)
		}
	}
}

// The loss of data was accepted: a file of a lost process has entries that the log lacks, with
// numbers that were assigned anew. They are no problem.
func TestLinesOfALineageThatEnded(t *testing.T) {
	old := goodLog(10)
	kept := old[:5]
	next := append([][]byte(nil), kept...)
	begin := order.Entry{Kind: order.KindNoop, Epoch: 2}
	mark := make([]byte, 16)
	mark[0] = 2 // lineage
	for i := range 6 {
		e, payload := begin, mark
		if i > 0 {
			e = order.Entry{Kind: order.KindOrder, Epoch: 2, ClientSeq: uint64(100 + i), Fields: order.Fields{ClOrdIDOff: 13, ClOrdIDLen: 6}}
			payload = fmt.Appendf(nil, "8=FIX.4.2\x0111=NEW%03d\x0158=x\x01", i)
		}
		e.Size, e.Seq, e.PrevHash = uint32(order.HeaderSize+len(payload)), uint64(len(next)+1), order.Hash(next[len(next)-1])
		b := make([]byte, order.HeaderSize, order.HeaderSize+len(payload))
		e.Put(b)
		next = append(next, append(b, payload...))
	}
	now := sinkLines(next)
	for i := len(kept) + 1; i < len(now); i++ {
		f := strings.Split(now[i], "\t")
		f[2] = "2"
		now[i] = strings.Join(f, "\t")
	}
	dir := writeSinks(t, map[string][]string{"a": sinkLines(old), "b": now})
	r, err := Run(t.Context(), &fakeGrid{logs: [][][]byte{next, next}, lineage: 2}, Options{SinkDir: dir, Grid: "g"})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	r.WriteText(&text)
	if s := r.Partitions[0].Sink; r.ExitCode() != ExitEqual || s.Superseded != 6 || s.Missing != 0 {
		t.Fatalf("exit %d, superseded %d, want %d and 6:\n%s", r.ExitCode(), s.Superseded, ExitEqual, &text)
	}
	// A line of the present lineage that differs from the log stays a problem.
	now[8] = strings.Replace(now[8], "NEW", "OLD", 2)
	dir = writeSinks(t, map[string][]string{"b": now})
	if r, err = Run(t.Context(), &fakeGrid{logs: [][][]byte{next, next}, lineage: 2}, Options{SinkDir: dir, Grid: "g"}); err != nil || r.ExitCode() != ExitDifferent {
		t.Fatalf("error %v, exit %d, want %d", err, r.ExitCode(), ExitDifferent)
	}
}
