package node

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// sunk waits until the sinks of the partitions' primaries hold everything.
func (g *grid) sunk() {
	g.t.Helper()
	g.settled()
	for _, r := range g.nodes {
		for _, p := range r.data.parts.list {
			g.until(func() bool {
				lags := true
				_ = r.onLoop(func() { lags = p.unsunk() })
				return !lags
			}, "the sink of %s lags", p.id)
		}
	}
}

// The files of all sinks, read through the nodes, equal those on their disks; a
// verification through the nodes has the same result as one on the directory.
func TestSinksAreReadThroughNodes(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	c := g.client()
	submit(t, c, "before", 300) // more than one piece
	g.sunk()
	g.kill(0)
	submit(t, c, "after", 300) // the other node writes a file of its own
	g.start(0)
	g.ready()
	g.sunk()
	aside := filepath.Join(g.base.SinkDir, "g-s0-1", "g-p0.log.20261121T064229.852000000Z")
	if err := os.WriteFile(aside, []byte("# ordergrid sink v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range g.nodes {
		files, err := c.SinkFiles(t.Context(), 0, g.addrs[i])
		if err != nil || len(files) != 1+i || files[i].SetAside || files[i].Name != "g-p0.log" || files[0].SetAside != (i == 1) {
			t.Fatalf("node %d: %+v, %v", i, files, err)
		}
		for _, f := range files {
			want, err := os.ReadFile(filepath.Join(g.base.SinkDir, g.nodes[i].cfg.Pod, f.Name))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(c.OpenSink(t.Context(), f, 0))
			if err != nil || string(got) != string(want) || f.Size != int64(len(want)) || i == 0 && len(want) <= wire.MaxSinkBytes {
				t.Errorf("node %d, %s: %d bytes of %d, %v", i, f.Name, len(got), len(want), err)
			}
			if rest, err := io.ReadAll(c.OpenSink(t.Context(), f, 10)); err != nil || string(rest) != string(want[10:]) {
				t.Errorf("from byte 10: %d bytes, %v", len(rest), err)
			}
		}
	}
	checkLines(t, g, c)
	direct := g.verify(g.base.SinkDir)
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	there, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{NodeSinks: true})
	if err != nil || there.ExitCode() != verify.ExitEqual {
		t.Fatalf("%+v, %v", there, err)
	}
	a, b := direct.Partitions[0].Sink, there.Partitions[0].Sink
	// The second look is later: an entry with the position of the sink may have come.
	if a.Orders != 600 || b.Orders != a.Orders || b.Last < a.Last || b.Repeats < a.Repeats || len(b.Files) != 2 || !slices.Equal(b.SetAside, []string{"g-s0-1/" + filepath.Base(aside)}) {
		t.Errorf("with the directory: %+v; through the nodes: %+v", a, b)
	}
}

// checkLines reads entries from a number on.
func checkLines(t *testing.T, g *grid, c *client.Client) {
	t.Helper()
	var seqs []string
	f := client.SinkFile{Address: g.addrs[1]} // no name: the one that is written to
	err := c.ReadSink(t.Context(), f, 550, func(line []byte) error {
		seq, _, _ := strings.Cut(string(line), "\t")
		seqs = append(seqs, seq)
		return nil
	})
	if err != nil || len(seqs) < 50 || seqs[0] != "550" {
		t.Fatalf("%d lines, %.5q, %v", len(seqs), seqs, err)
	}
	for i, s := range seqs {
		if s != strconv.Itoa(550+i) {
			t.Fatalf("line %d has seq %s", i, s)
		}
	}
	stop := errors.New("enough")
	if err := c.ReadSink(t.Context(), f, 1, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestNoSinkToRead(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	c := g.client()
	if _, err := c.SinkFiles(t.Context(), 0, g.addrs[0]); !errors.Is(err, client.ErrSinkUnreadable) || !strings.Contains(err.Error(), "--sink=hold") {
		t.Errorf("%v", err)
	}
	r, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{NodeSinks: true})
	if err != nil || r.ExitCode() != verify.ExitIncomplete || !strings.Contains(r.Partitions[0].Sink.Error, "no node of the partition has a file sink") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A name must be one of the sink's files; the error does not reveal their directory.
func TestSinkNamesOfStrangers(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	c := g.client()
	submit(t, c, "x", 1)
	g.sunk()
	for _, name := range []string{"../g-s0-0/g-p0.log", "/etc/passwd", "g-p1.log", "g-p0.log.20261121T064229.852000000Z", "\x00", strings.Repeat("a", 255)} {
		_, err := io.ReadAll(c.OpenSink(t.Context(), client.SinkFile{Address: g.addrs[0], Name: name}, 0))
		if !errors.Is(err, client.ErrSinkUnreadable) || strings.Contains(err.Error(), g.base.SinkDir) {
			t.Errorf("%q: %v", name, err)
		}
	}
	submit(t, c, "y", 1)
}

// A client that requests more than is read gets rejections, without an effect on others.
func TestTooManySinkRequests(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	r := dialRaw(t, g.addrs[0])
	const asked = 400
	b := hello(wire.RoleClient, 0, "t", "")
	missing, _ := wire.MakePartitionID(5)
	b = wire.AppendReadSink(b, missing, &wire.ReadSink{ReqID: 1})
	for i := range asked {
		b = wire.AppendRequestOn(b, wire.TypeListSinks, 0, &wire.Request{ReqID: uint64(2 + i)})
	}
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	if f := r.next(); wire.FrameType(f) != wire.TypeWelcome {
		t.Fatalf("got %v", wire.FrameType(f))
	}
	answers := map[wire.Code]int{}
	for range asked + 1 {
		f := r.next()
		if wire.FrameType(f) == wire.TypeSinkFiles {
			answers[0]++
			continue
		}
		var m wire.Reject
		if err := wire.DecodeReject(f, &m); err != nil {
			t.Fatal(err)
		}
		answers[m.Code]++
	}
	if answers[wire.CodeUnsupported] != 1 || answers[0] == 0 || answers[0]+answers[wire.CodeOverloaded] != asked {
		t.Errorf("answers by code: %v", answers)
	}
	submit(t, g.client(), "x", 10)
}

// A file that is replaced while it is read is not mistaken for the same.
func TestSinkReplacedMeanwhile(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Sink, g.base.SinkDir = SinkFile, t.TempDir()
	g.up()
	c := g.client()
	submit(t, c, "x", 400)
	g.sunk()
	in := c.OpenSink(t.Context(), client.SinkFile{Address: g.addrs[0]}, 0)
	b := make([]byte, 100<<10)
	if _, err := in.Read(b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(g.base.SinkDir, "g-s0-0", "g-p0.log")
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path, path+".20261121T064229.852000000Z"), os.WriteFile(path, append(all, all...), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Read(b); !errors.Is(err, client.ErrSinkChanged) {
		t.Errorf("%v", err)
	}
}
