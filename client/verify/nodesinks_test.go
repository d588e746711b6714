package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fakeNodes is a grid whose nodes return files with faults that a node's never have. A file is
// named by the node's address.
type fakeNodes struct {
	fakeGrid
	files   map[string]string
	listErr map[string]error
	readErr error
	aside   bool // each has one that was set aside as well
}

// Table has another partition, on m0 and on a pod that holds no copy of p0.
func (g *fakeNodes) Table() []client.PartitionInfo {
	table := g.fakeGrid.Table()
	return append(table, client.PartitionInfo{ID: 1, Members: []client.Member{table[0].Members[0], {ID: "other/1", Address: otherPod}}})
}

const otherPod = "10.0.0.9:7400"

func (g *fakeNodes) SinkFiles(_ context.Context, p wire.PartitionID, address string) (out []client.SinkFile, err error) {
	if err := g.listErr[address]; err != nil {
		return nil, err
	}
	if _, ok := g.files[address]; ok {
		out = append(out, client.SinkFile{Partition: p, Address: address, Name: "g-p0.log"})
		if g.aside {
			out = append(out, client.SinkFile{Partition: p, Address: address, Name: "g-p0.log.old", SetAside: true})
		}
	}
	return out, nil
}

func (g *fakeNodes) ReadSinkFile(_ context.Context, f client.SinkFile) io.Reader {
	return io.MultiReader(strings.NewReader(g.files[f.Address]), failing{g.readErr})
}

// failing ends a file with an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

func TestNodeSinks(t *testing.T) {
	const a, b = "10.0.0.0:7400", "10.0.0.1:7400"
	log := goodLog(9)
	lines := sinkLines(log)
	file := func(from, to int) string { // entries from..to
		return lines[0] + "\n" + strings.Join(lines[from:to+1], "\n") + "\n"
	}
	last := len(log)
	none := fmt.Errorf("%w: --sink=hold", client.ErrSinkUnreadable)
	freed := log[5:] // entries 1 to 5 are
	for name, c := range map[string]struct {
		log     [][]byte
		files   map[string]string
		listErr map[string]error
		readErr error
		code    int
		want    string // in the text
	}{
		"all, and one set aside":    {log, map[string]string{a: file(1, last)}, nil, nil, ExitEqual, "set aside and not compared: m0/g-p0.log.old"},
		"one after the other":       {log, map[string]string{a: file(1, 4), b: file(5, last)}, nil, nil, ExitEqual, "2 files"},
		"moved":                     {log, map[string]string{otherPod: file(1, 6), b: file(7, last)}, nil, nil, ExitEqual, "2 files, entries 1..11"},
		"missing":                   {log, map[string]string{a: file(1, 4), b: file(6, last)}, nil, nil, ExitIncomplete, "entries 5..5 are in no file of the pods that hold a partition now, [m0/g-p0.log m1/g-p0.log]; the file of a pod that is away, or was removed, may have them"},
		"missing in a file":         {log, map[string]string{a: file(1, 4) + strings.Join(lines[6:], "\n") + "\n"}, nil, nil, ExitDifferent, "sequence 6 follows 4"},
		"moved, and removed":        {log, map[string]string{b: file(7, last)}, nil, nil, ExitIncomplete, "entries 1..6 are in no file"},
		"moved, and silent":         {log, map[string]string{b: file(7, last)}, map[string]error{otherPod: errors.New("no answer")}, nil, ExitIncomplete, "may have them; not read: other: no answer"},
		"another node is silent":    {log, map[string]string{a: file(1, last)}, map[string]error{otherPod: errors.New("no answer")}, nil, ExitEqual, "entries 1..11"},
		"missing, a node is silent": {log, map[string]string{b: file(6, last)}, map[string]error{a: errors.New("no answer")}, nil, ExitIncomplete, "no answer"},
		"no node has a sink":        {log, nil, map[string]error{a: none, b: none}, nil, ExitIncomplete, "no node of the partition has a file sink"},
		"one node has a sink":       {log, map[string]string{a: file(1, last)}, map[string]error{b: none}, nil, ExitIncomplete, "--sink=hold"},
		"no file yet":               {log, nil, nil, nil, ExitIncomplete, "no node of the grid shows a file of the partition's sink"},
		"the way breaks":            {log, map[string]string{a: file(1, 4)}, nil, errors.New("connection lost"), ExitIncomplete, "connection lost"},
		"not a sink":                {log, map[string]string{a: "hello\n"}, nil, nil, ExitIncomplete, "the first line is"},
		"an invalid line":           {log, map[string]string{a: file(1, 4) + "5\tx\n"}, nil, nil, ExitDifferent, "columns"},
		// Of the log only entries 6 and on are held.
		"freed":                        {freed, map[string]string{b: file(1, last)}, nil, nil, ExitEqual, "entries 6..11"},
		"freed, and moved":             {freed, map[string]string{otherPod: file(1, 4), b: file(4, last)}, nil, nil, ExitEqual, "2 files"},
		"freed, and the pod removed":   {freed, map[string]string{b: file(4, last)}, nil, nil, ExitIncomplete, "entries 1..3 are freed, and in no file that was read, [m1/g-p0.log]"},
		"freed, and no file has it":    {freed, map[string]string{b: file(6, last)}, nil, nil, ExitIncomplete, "entries 1..5 are freed"},
		"freed, and a hole":            {freed, map[string]string{a: file(1, 2), b: file(5, last)}, nil, nil, ExitIncomplete, "missing 2,"},
		"freed, a hole, and set aside": {freed, map[string]string{b: file(4, last)}, nil, nil, ExitEqual, "not compared: m1/g-p0.log.old"},
		"freed, and a file apart":      {freed, map[string]string{a: file(1, 2), b: file(3, last)}, nil, nil, ExitEqual, "missing 0"},
		"freed, and an end before":     {freed, map[string]string{a: file(1, 4), b: file(6, last)}, nil, nil, ExitIncomplete, "entries 5..5 are freed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeNodes{fakeGrid{logs: [][][]byte{c.log, c.log}}, c.files, c.listErr, c.readErr, strings.HasSuffix(name, "set aside")}
			if len(c.log) < len(log) {
				g.first = uint64(len(log)-len(c.log)) + 1
			}
			r, err := Run(t.Context(), g, Options{NodeSinks: true, Partitions: []wire.PartitionID{0}})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := r.WriteText(&text); err != nil || r.ExitCode() != c.code || !strings.Contains(text.String(), c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", r.ExitCode(), c.code, c.want, &text)
			}
		})
	}
}

func TestParseSinks(t *testing.T) {
	var o Options
	if err := ParseSinks("", &o); err != nil || o.NodeSinks {
		t.Errorf("%+v, %v", o, err)
	}
	if err := ParseSinks("nodes", &o); err != nil || !o.NodeSinks {
		t.Errorf("%+v, %v", o, err)
	}
	if err := ParseSinks("disk", &o); err == nil || !strings.Contains(err.Error(), `"disk", allowed: nodes`) {
		t.Errorf("%v", err)
	}
	if err := ParseSinks("nodes", &Options{SinkDir: "x"}); err == nil {
		t.Error("both are taken")
	}
	if _, err := Run(t.Context(), &fakeGrid{}, Options{NodeSinks: true}); err == nil {
		t.Error("a grid whose nodes cannot list sinks is accepted")
	}
}
