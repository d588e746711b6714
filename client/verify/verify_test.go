package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fakeGrid is logs in memory, with faults that a grid never has.
type fakeGrid struct {
	logs   [][][]byte // per replica, its entries
	errs   []error    // per replica: what reading it ends with
	commit []uint64   // 0: all
	first  uint64     // number of the first entry, 0: 1
	// no primary; all but the first replica are learners; the epoch of the table from its second
	// reading on; other partitions
	unserved, learners bool
	later              uint64
	lineage            uint32
	tables             int
	beside             [][][]byte // of p1 and on: one replica each
	fresh              []bool     // at the end of its entries another process answers, which has no more than those
}

func (g *fakeGrid) Table() []client.PartitionInfo {
	p := client.PartitionInfo{ID: 0, Epoch: 3, Lineage: 1}
	for i := range g.logs {
		p.Members = append(p.Members, client.Member{ID: fmt.Sprintf("m%d/1", i), Address: fmt.Sprintf("10.0.0.%d:7400", i), InSync: true})
	}
	for i := range p.Members {
		p.Members[i].InSync = i == 0 || !g.learners
	}
	if len(p.Members) > 0 && !g.unserved {
		p.Primary = p.Members[0]
	}
	if g.tables++; g.tables > 1 && g.later > 0 {
		p.Epoch = g.later
	}
	if g.lineage > 0 {
		p.Lineage = g.lineage
	}
	list := []client.PartitionInfo{p}
	for i := range g.beside {
		m := client.Member{ID: "n/1", Address: "10.0.1.0:7400", InSync: true}
		list = append(list, client.PartitionInfo{ID: wire.PartitionID(i + 1), Epoch: 3, Lineage: 1, Members: []client.Member{m}, Primary: m})
	}
	return list
}

func (g *fakeGrid) OpenLog(p wire.PartitionID, address string) Log {
	if p != 0 {
		log := g.beside[p-1]
		return &fakeLog{entries: log, commit: uint64(len(log))}
	}
	var i int
	fmt.Sscanf(address, "10.0.0.%d:7400", &i)
	l := &fakeLog{entries: g.logs[i], commit: uint64(len(g.logs[i]))}
	if g.first > 0 {
		l.commit += g.first - 1
	}
	if g.commit != nil {
		l.commit = g.commit[i]
	}
	if g.errs != nil {
		l.err = g.errs[i]
	}
	l.fresh = g.fresh != nil && g.fresh[i]
	return l
}

type fakeLog struct {
	entries [][]byte
	commit  uint64
	at      int
	err     error
	fresh   bool
}

func (l *fakeLog) End() client.LogEnd { return client.LogEnd{CommitSeq: l.commit} }

func (l *fakeLog) Next(_ context.Context, fn func(client.LogEntry) error) (int, error) {
	if l.err != nil && l.at >= len(l.entries) {
		return 0, l.err
	}
	if l.fresh && l.at >= len(l.entries) {
		l.commit = uint64(len(l.entries))
	}
	n := 0
	for ; l.at < len(l.entries) && n < 3; l.at++ {
		e := client.LogEntry{Bytes: l.entries[l.at]}
		if _, err := order.DecodeEntry(e.Bytes, &e.Entry); err != nil {
			return n, err
		}
		if err := fn(e); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// goodLog is a session and n orders of it.
func goodLog(n int) [][]byte { return logOf(n, 0) }

// logOf begins another epoch before every order whose number every divides.
func logOf(n, every int) [][]byte {
	var log [][]byte
	var prev uint64
	epoch := uint32(1)
	add := func(e order.Entry, payload []byte) {
		e.Size, e.Seq, e.PrevHash, e.Epoch = uint32(order.HeaderSize+len(payload)), uint64(len(log)+1), prev, epoch
		b := make([]byte, order.HeaderSize, order.HeaderSize+len(payload))
		e.Put(b)
		b = append(b, payload...)
		prev = order.Hash(b)
		log = append(log, b)
	}
	mark := make([]byte, 16)
	mark[0] = 1 // rechain makes the hash chain valid again after a change.
	add(order.Entry{Kind: order.KindNoop}, mark)
	add(order.Entry{Kind: order.KindSessionOpen, ClientSeq: 1}, make([]byte, 16))
	for i := range n {
		if every > 0 && i > 0 && i%every == 0 {
			epoch++
			add(order.Entry{Kind: order.KindNoop}, mark)
		}
		fix := fmt.Appendf(nil, "8=FIX.4.2\x0111=ID%04d\x0158=a|b\\c\x01", i)
		add(order.Entry{Kind: order.KindOrder, ClientSeq: uint64(i + 1), Fields: order.Fields{ClOrdIDOff: 13, ClOrdIDLen: 6}}, fix)
	}
	return log
}

// rechain makes the hash chain right again after a change.
func rechain(log [][]byte) [][]byte {
	var prev uint64
	var out [][]byte
	for i, b := range log {
		b = bytes.Clone(b)
		var e order.Entry
		order.DecodeEntry(b, &e)
		e.PrevHash, e.Seq = prev, uint64(i+1)
		e.Put(b)
		prev = order.Hash(b)
		out = append(out, b)
	}
	return out
}

// high is the first number that a log still holds whose beginning is freed.
const high = 3_800_000_000_000_001

// from makes a log one that begins behind what is freed, with another number than 1.
func from(first uint64, log [][]byte) [][]byte {
	out := rechain(log)
	prev := uint64(1) // of the last entry freed
	for i, b := range out {
		var e order.Entry
		order.DecodeEntry(b, &e)
		e.PrevHash, e.Seq = prev, first+uint64(i)
		e.Put(b)
		prev = order.Hash(b)
	}
	return out
}

func flip(log [][]byte, i, offset int) [][]byte {
	out := append([][]byte(nil), log...)
	out[i] = bytes.Clone(out[i])
	out[i][offset] ^= 1
	return out
}

func TestFindings(t *testing.T) {
	good := goodLog(10)
	repeated := func(i int) [][]byte {
		return rechain(append(append(append([][]byte(nil), good...), good[i]), good[11]))
	}
	for name, tc := range map[string]struct {
		grid fakeGrid
		exit int
		want string
	}{
		"equal":                {fakeGrid{logs: [][][]byte{good, good}}, ExitEqual, "EQUAL: all replicas hold the same bytes; 10 orders in 12 entries"},
		"three":                {fakeGrid{logs: [][][]byte{good, good, good}}, ExitEqual, "EQUAL"},
		"empty":                {fakeGrid{logs: [][][]byte{nil, nil}}, ExitIncomplete, "NOT SERVED  no entry is committed on every in-sync replica at epoch 3"},
		"no primary":           {fakeGrid{logs: [][][]byte{good, good}, unserved: true}, ExitIncomplete, "INCOMPLETE: no problem found, but 1 partitions have no primary"},
		"a high number":        {fakeGrid{logs: [][][]byte{from(high, good), from(high, good)}, first: high}, ExitEqual, "10 orders in 12 entries of 1 partitions"},
		"high, and behind":     {fakeGrid{logs: [][][]byte{from(high, good), nil}, commit: []uint64{high + 11, 0}, first: high, learners: true}, ExitEqual, "committed 0  behind 12"},
		"behind":               {fakeGrid{logs: [][][]byte{good, good[:7]}}, ExitEqual, "committed 7  behind 5"},
		"a byte differs":       {fakeGrid{logs: [][][]byte{good, flip(good, 5, 80)}}, ExitDifferent, "entry 6 differs: 10.0.0.0:7400 has order"},
		"last differs":         {fakeGrid{logs: [][][]byte{good, flip(good, 11, 80)}}, ExitDifferent, "entry 12 differs"},
		"chain":                {fakeGrid{logs: [][][]byte{flip(good, 5, 80), flip(good, 5, 80)}}, ExitDifferent, "entry 7: the hash chain is broken"},
		"chain behind":         {fakeGrid{logs: [][][]byte{flip(good, 10, 80), good[:7]}}, ExitDifferent, "10.0.0.0:7400: entry 12: the hash chain is broken"},
		"same ClOrdID":         {fakeGrid{logs: [][][]byte{repeated(5), repeated(5)}}, ExitDifferent, "entries 6 and 13 are orders with the same ClOrdID"},
		"same clientSeq":       {fakeGrid{logs: [][][]byte{repeated(5), repeated(5)}}, ExitDifferent, "entry 13: order 4 of session 0 was applied before"},
		"unreachable":          {fakeGrid{logs: [][][]byte{good, nil}, errs: []error{nil, errors.New("connection refused")}}, ExitIncomplete, "NOT READ: connection refused"},
		"breaks off":           {fakeGrid{logs: [][][]byte{good, good[:6]}, errs: []error{nil, errors.New("reset")}, commit: []uint64{12, 12}}, ExitIncomplete, "from entry 7: reset"},
		"ends early":           {fakeGrid{logs: [][][]byte{good, good[:6]}, commit: []uint64{12, 12}}, ExitDifferent, "the log ends before entry 7, committed was 12"},
		"replaced":             {fakeGrid{logs: [][][]byte{good, good[:6]}, commit: []uint64{12, 12}, fresh: []bool{false, true}}, ExitIncomplete, "6 entries are committed there now, 12 were"},
		"not a log":            {fakeGrid{logs: [][][]byte{good, good[:6]}, errs: []error{nil, &client.LogError{Address: "x", Seq: 7, What: "seq is 9"}}, commit: []uint64{12, 12}}, ExitDifferent, "log of p0 at x: entry 7: seq is 9"},
		"no replica reachable": {fakeGrid{logs: [][][]byte{nil}, errs: []error{errors.New("no route")}}, ExitIncomplete, "INCOMPLETE"},
		"no member":            {fakeGrid{logs: [][][]byte{}}, ExitDifferent, "no replica is known"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), &tc.grid, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if r.ExitCode() != tc.exit || !strings.Contains(text.String(), tc.want) {
				t.Fatalf("exit %d, want %d and %q in\n%s", r.ExitCode(), tc.exit, tc.want, &text)
			}
			t.Logf("\n%s", &text)
			var back Result
			var j bytes.Buffer
			if err := r.WriteJSON(&j); err != nil || json.Unmarshal(j.Bytes(), &back) != nil || back.Problems != r.Problems {
				t.Fatalf("JSON: %v\n%s", err, &j)
			}
		})
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	a, b := goodLog(1000), goodLog(1000)
	for i := range b {
		b[i][40] ^= 1 // receive time
	}
	r, err := Run(t.Context(), &fakeGrid{logs: [][][]byte{a, rechain(b)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Partitions[0]; len(p.Problems) != MaxProblems || p.ProblemCount != 1002 {
		t.Fatalf("%d of %d problems listed", len(p.Problems), p.ProblemCount)
	}
}

func sinkLines(log [][]byte) []string {
	lines := []string{"# ordergrid sink v1 grid=g partition=p0 pod=a"}
	for _, b := range log {
		var e order.Entry
		order.DecodeEntry(b, &e)
		id, fix := "-", "-"
		if e.Kind.IsOrder() {
			id, fix = string(order.ClOrdID(b)), string(sinkText(order.Message(b)))
		}
		lines = append(lines, fmt.Sprintf("%d\t%d\t1\t%s\t-\t%d\t0\t%016x\t%s\t%s", e.Seq, e.Epoch, e.Kind, e.ClientSeq, order.Hash(b), id, fix))
	}
	return lines
}

// TestSink: files of up to three pods against a log of two epochs: noop, session and orders 3 to 7
// of epoch 1; noop and orders 9 to 13 of epoch 2. The grid is in epoch 3, of which the log has no
// entry yet.
func TestSink(t *testing.T) {
	log := logOf(10, 5)
	lines := sinkLines(log)
	part := func(from, to int) []string { return append([]string{lines[0]}, lines[from:to+1]...) }
	plus := func(a []string, more ...string) []string { return append(append([]string(nil), a...), more...) }
	changed := func(i int, old, now string) []string {
		l := strings.Replace(lines[i], old, now, 1)
		if l == lines[i] {
			t.Fatalf("%q is not in %q", old, l)
		}
		return plus(lines[:i], plus([]string{l}, lines[i+1:]...)...)
	}
	type files map[string][]string
	for name, tc := range map[string]struct {
		files files
		exit  int
		want  string
	}{
		"all":    {files{"a": lines}, ExitEqual, "1 files, entries 1..13, orders 10, missing 0, repeats around failovers 0, duplicates 0, out of order 0, behind 0"},
		"behind": {files{"a": lines[:6]}, ExitEqual, "entries 1..5, orders 3, missing 0, repeats around failovers 0, duplicates 0, out of order 0, behind 8"},
		// Failovers.
		"the next pod goes on":     {files{"a": part(1, 8), "b": part(9, 13)}, ExitEqual, "2 files, entries 1..13, orders 10, missing 0, repeats around failovers 0"},
		"the next pod repeats":     {files{"a": part(1, 7), "b": lines}, ExitEqual, "missing 0, repeats around failovers 7, duplicates 0"},
		"the last epoch twice":     {files{"a": lines, "b": lines}, ExitEqual, "repeats around failovers 13"},
		"one epoch by three":       {files{"a": part(1, 5), "b": part(1, 7), "c": lines}, ExitEqual, "repeats around failovers 7"},
		"more writers than epochs": {files{"a": part(8, 13), "b": part(1, 11), "c": part(10, 13)}, ExitDifferent, "entry 10 of epoch 2 is in 3 files [a b c], allowed: 2, one and one more for each of the 1 epochs after it; 6 entries"},
		"those are not repeats":    {files{"a": part(8, 13), "b": part(1, 11), "c": part(10, 13)}, ExitDifferent, "repeats around failovers 0, duplicates 6"},
		"a hole between two":       {files{"a": part(1, 5), "b": part(9, 13)}, ExitDifferent, "entries 6..8 are in no file"},
		"another history":          {files{"a": lines, "b": changed(9, fmt.Sprintf("%016x", order.Hash(log[8])), "00000000deadbeef")}, ExitDifferent, "entry 9 is a order with hash 00000000deadbeef"},
		"another epoch":            {files{"a": changed(9, "9\t2\t", "9\t3\t")}, ExitDifferent, "entry 9 is of lineage 1 epoch 3, in the log it is of lineage 1 epoch 2"},
		"another lineage":          {files{"a": changed(9, "\t2\t1\t", "\t2\t2\t")}, ExitDifferent, "entry 9 is of lineage 2 epoch 2, in the log it is of lineage 1 epoch 2"},
		// One file.
		"gap":                {files{"a": plus(lines[:5], lines[7:]...)}, ExitDifferent, "sequence 7 follows 4, allowed: 5"},
		"gap in all":         {files{"a": plus(lines[:5], lines[7:]...)}, ExitDifferent, "entries 5..6 are in no file"},
		"begins late":        {files{"a": part(3, 13)}, ExitDifferent, "entries 1..2 are in no file"},
		"twice":              {files{"a": plus(lines[:5], lines[4:]...)}, ExitDifferent, "entry 4 of epoch 1 is in this file twice"},
		"a block twice":      {files{"a": plus(lines[:8], lines[3:]...)}, ExitDifferent, "repeats around failovers 0, duplicates 5, out of order 0"},
		"out of order":       {files{"a": plus(part(5, 8), lines[2:]...), "b": lines}, ExitDifferent, "entry 2 comes after later ones, the file begins with 5"},
		"goes back an epoch": {files{"a": changed(10, "10\t2\t", "10\t1\t")}, ExitDifferent, "entry 10 goes back to lineage 1 epoch 1, the one before it is of lineage 1 epoch 2"},
		"other hash":         {files{"a": changed(5, "\t0\t", "\t0\t0")}, ExitDifferent, "column 8 (hash)"},
		"other message":      {files{"a": changed(13, "58=", "59=")}, ExitDifferent, "the FIX message is not the log's"},
		"columns":            {files{"a": plus(lines[:12], "12\t1")}, ExitDifferent, "it has 2 columns, allowed: 10"},
		"no epoch":           {files{"a": changed(5, "5\t1\t", "5\t0\t")}, ExitDifferent, "column 2 (epoch)"},
		"no lineage":         {files{"a": changed(5, "5\t1\t1", "5\t1\t-")}, ExitDifferent, "column 3 (lineage)"},
		"no header":          {files{"a": lines[1:]}, ExitIncomplete, "the first line is"},
		"no file":            {nil, ExitIncomplete, "no file g-p0.log"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s[i]nk*") // a name that a pattern would misread
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for pod, l := range tc.files {
				os.MkdirAll(filepath.Join(dir, pod), 0o755)
				if err := os.WriteFile(filepath.Join(dir, pod, "g-p0.log"), []byte(strings.Join(l, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Run(t.Context(), &fakeGrid{logs: [][][]byte{log, log}}, Options{SinkDir: dir, Grid: "g"})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			r.WriteText(&text)
			if r.ExitCode() != tc.exit || !strings.Contains(text.String(), tc.want) {
				t.Fatalf("exit %d, want %d and %q in\n%s", r.ExitCode(), tc.exit, tc.want, &text)
			}
		})
	}
}

// TestSinkOfMatchedOrders: in a log of a partition that matches, the message of an order is compared too.
func TestSinkOfMatchedOrders(t *testing.T) {
	var log [][]byte
	for _, b := range goodLog(10) {
		var e order.Entry
		order.DecodeEntry(b, &e)
		payload := order.Payload(b)
		if e.Kind == order.KindOrder {
			e.Kind, e.Fields = order.KindExecute, e.Fields.Instructed()
			payload = append((&order.Instruction{Op: order.InstructEnter, Side: 1}).Append(nil), payload...)
		}
		e.Size = uint32(order.HeaderSize + len(payload))
		b = make([]byte, order.HeaderSize)
		e.Put(b)
		log = append(log, append(b, payload...))
	}
	log = rechain(log)
	right := strings.Join(sinkLines(log), "\n") + "\n"
	for name, tc := range map[string]struct {
		text string
		exit int
		want string
	}{
		"right":         {right, ExitEqual, "entries 1..12, orders 10, missing 0"},
		"other message": {strings.Replace(right, "58=", "59=", 1), ExitDifferent, "the FIX message is not the log's"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "g-p0.log"), []byte(tc.text), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), &fakeGrid{logs: [][][]byte{log, log}}, Options{SinkDir: dir, Grid: "g"})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		r.WriteText(&text)
		if r.ExitCode() != tc.exit || !strings.Contains(text.String(), tc.want) {
			t.Errorf("%s: exit %d, want %d and %q in\n%s", name, r.ExitCode(), tc.exit, tc.want, &text)
		}
	}
}

func TestUsage(t *testing.T) {
	if _, err := Run(t.Context(), &fakeGrid{logs: [][][]byte{nil}}, Options{SinkDir: "/tmp"}); err == nil {
		t.Error("a sink without the grid's name was accepted")
	}
	if _, err := Run(t.Context(), &fakeGrid{logs: [][][]byte{nil}}, Options{Partitions: []wire.PartitionID{7}}); err == nil || !strings.Contains(err.Error(), "p7") {
		t.Errorf("error %v", err)
	}
}

func FuzzSinkLine(f *testing.F) {
	for _, l := range sinkLines(goodLog(2)) {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := parseSinkLine(b); err == nil && l.seq == 0 {
			t.Fatal("seq 0 was accepted")
		}
	})
}
