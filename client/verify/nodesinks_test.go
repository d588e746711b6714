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

// fakeNodes is a grid whose nodes show files that can be wrong in ways a node's
// never are. A file is named by the node's address.
type fakeNodes struct {
	fakeGrid
	partitions int // of the shard; 0: one
	files      map[string]string
	listErr    map[string]error
	readErr    error
}

func (g *fakeNodes) Table() []client.PartitionInfo {
	table := g.fakeGrid.Table()
	for i := 1; i < g.partitions; i++ {
		table = append(table, client.PartitionInfo{ID: wire.PartitionID(i)})
	}
	return table
}

func (g *fakeNodes) SinkFiles(_ context.Context, p wire.PartitionID, address string) (out []client.SinkFile, err error) {
	if err := g.listErr[address]; err != nil {
		return nil, err
	}
	if _, ok := g.files[address]; ok {
		out = append(out, client.SinkFile{Partition: p, Address: address, Name: "g-s0p0.log.old", SetAside: true}, client.SinkFile{Partition: p, Address: address, Name: "g-s0p0.log"})
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
	for name, c := range map[string]struct {
		files      map[string]string
		listErr    map[string]error
		readErr    error
		partitions int
		code       int
		want       string // in the text
	}{
		"all":                       {map[string]string{a: file(1, last)}, nil, nil, 2, ExitEqual, "set aside and not compared: m0/g-s0p0.log.old"},
		"one after the other":       {map[string]string{a: file(1, 4), b: file(5, last)}, nil, nil, 2, ExitEqual, "2 files"},
		"missing":                   {map[string]string{a: file(1, 4), b: file(6, last)}, nil, nil, 2, ExitDifferent, "entries 5..5 are in no file, later ones are"},
		"missing, a pod is away":    {map[string]string{a: file(1, 4), b: file(6, last)}, nil, nil, 3, ExitIncomplete, "a pod that is away may have them"},
		"missing, a node is silent": {map[string]string{b: file(6, last)}, map[string]error{a: errors.New("no answer")}, nil, 2, ExitIncomplete, "no answer"},
		"no node has a sink":        {nil, map[string]error{a: none, b: none}, nil, 2, ExitIncomplete, "no node of the shard has a file sink"},
		"one node has a sink":       {map[string]string{a: file(1, last)}, map[string]error{b: none}, nil, 2, ExitIncomplete, "--sink=hold"},
		"no file yet":               {nil, nil, nil, 2, ExitIncomplete, "no node of the shard has a file of the partition's sink"},
		"the way breaks":            {map[string]string{a: file(1, 4)}, nil, errors.New("connection lost"), 2, ExitIncomplete, "connection lost"},
		"not a sink":                {map[string]string{a: "hello\n"}, nil, nil, 2, ExitIncomplete, "the first line is"},
		"a line that is none":       {map[string]string{a: file(1, 4) + "5\tx\n"}, nil, nil, 2, ExitDifferent, "columns"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeNodes{fakeGrid{logs: [][][]byte{log, log}}, c.partitions, c.files, c.listErr, c.readErr}
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
		t.Error("a grid whose nodes show nothing is taken")
	}
}
