package collect

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

const header = "# ordergrid sink v1 grid=dev partition=p1 pod=a columns=seq\n"

var id = fixorder.ID{Run: 3, Probe: 1}

func line(t *testing.T, seq, clOrdID, message string) string {
	t.Helper()
	return strings.Join([]string{seq, "7", "1", "order", "-", "1", "0", "00000000000000ff", clOrdID, message}, "\t") + "\n"
}

func fix(t *testing.T) string {
	t.Helper()
	m, err := fixorder.NewMaker(fixorder.FIX42, id)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(m.Make(4, 1, time.Now(), time.Now())), "\x01", "|")
}

// file is a local sink file.
func file(path string) Open {
	files, _ := Files(func(context.Context) (map[string]string, error) { return map[string]string{"x": path}, nil }).List(context.Background())
	return files["x"]
}

func TestReadSink(t *testing.T) {
	streams := map[fixorder.ID]int{id: 6}
	message := fix(t)
	noop := strings.Join([]string{"1", "7", "1", "noop", "-", "1", "0", "00000000000000fe", "-", "-"}, "\t") + "\n"
	text := header + noop + line(t, "2", id.ClOrdID(4), message) + line(t, "3", "FOREIGN", "x") + line(t, "4", id.ClOrdID(5), message[:40]) + "5\t7\t1\tord"
	path := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := readSink(t.Context(), "a/x.log", file(path), streams, &history.History{})
	if err != nil || l.Partition.String() != "p1" || len(l.Entries) != 4 {
		t.Fatalf("%v, %+v", err, l)
	}
	want := []history.Entry{
		{Seq: 1, Epoch: 7, Lineage: 1, Hash: 0xfe, Stream: history.NoOrder},
		{Seq: 2, Epoch: 7, Lineage: 1, Hash: 0xff, Stream: 6, Index: 4},
		{Seq: 3, Epoch: 7, Lineage: 1, Hash: 0xff, Stream: history.Foreign},
		{Seq: 4, Epoch: 7, Lineage: 1, Hash: 0xff, Stream: 6, Index: 5, Corrupt: true},
	}
	for i, w := range want {
		if l.Entries[i] != w {
			t.Errorf("entry %d is %+v, want %+v", i+1, l.Entries[i], w)
		}
	}
}

func TestReadSinkRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no header":     {"1\t2\n", "allowed: the header of a file sink"},
		"odd partition": {"# ordergrid sink v1 grid=dev partition=x\n", "partition is"},
		"few columns":   {header + "1\t2\t3\n", "3 columns, allowed: 10"},
		"many columns":  {header + strings.Repeat("1\t", 20) + "\n", "columns, allowed: 10"},
		"no number":     {header + line(t, "two", "X", "x"), `column 1 is "two"`},
		"negative":      {header + line(t, "-2", "X", "x"), `column 1 is "-2"`},
		"huge line":     {header + strings.Repeat("x", 2<<20) + "\n", "buffer full"},
	} {
		path := filepath.Join(t.TempDir(), "x.log")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := readSink(t.Context(), "x", file(path), nil, &history.History{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %+v; want %q", name, err, l, c.want)
		}
	}
	if _, err := readSink(t.Context(), "x", file(filepath.Join(t.TempDir(), "none")), nil, &history.History{}); err == nil {
		t.Error("a missing file was read")
	}
}
