package file

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	name := Name("g", "p1")
	for _, n := range []string{name, name + ".20261121T064229.852000000Z", name + ".20251121T064229.852000000Z",
		// Not of this sink:
		"g-p11.log", "g-p1.log.bak", "g-p1.log.20261121T064229.8520000x0Z", "x" + name} {
		write(t, filepath.Join(dir, n), "some")
	}
	if err := os.Mkdir(filepath.Join(dir, name+".20241121T064229.852000000Z"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := List(dir, name)
	want := []Info{{name + ".20251121T064229.852000000Z", 4, true}, {name + ".20261121T064229.852000000Z", 4, true}, {name, 4, false}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("file %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if got, err := List(filepath.Join(dir, "none"), name); got != nil || err != nil {
		t.Errorf("a directory that is not there: %v, %v", got, err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	name := Name("g", "p1")
	aside := name + ".20261121T064229.852000000Z"
	write(t, filepath.Join(dir, name), "0123456789")
	write(t, filepath.Join(dir, aside), "old")
	b := make([]byte, 4)
	for _, c := range []struct {
		file   string
		offset int64
		want   string
		size   int64
	}{{"", 0, "0123", 10}, {name, 8, "89", 10}, {name, 10, "", 10}, {name, 1 << 40, "", 10}, {aside, 0, "old", 3}} {
		p, err := Read(dir, name, c.file, c.offset, b)
		if err != nil || string(b[:p.N]) != c.want || p.Size != c.size {
			t.Errorf("%q from %d: %q of %d, %v", c.file, c.offset, b[:p.N], p.Size, err)
		}
	}
	before, _ := Read(dir, name, name, 0, b)
	if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, aside)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name), "another one, longer")
	moved, _ := Read(dir, name, aside, 0, b)
	if after, _ := Read(dir, name, name, 0, b); before.ID == 0 || after.ID == before.ID || moved.ID != before.ID {
		t.Errorf("%+v was set aside to %+v; under its name there is now %+v", before, moved, after)
	}
}

// The client names a file: only files of the sink are accepted.
func TestReadFileStaysInTheSink(t *testing.T) {
	dir := t.TempDir()
	name := Name("g", "p1")
	aside := name + ".20261121T064229.852000000Z"
	write(t, filepath.Join(dir, "secret"), "secret")
	if err := os.Symlink("secret", filepath.Join(dir, aside)); err != nil {
		t.Fatal(err)
	}
	fifo := name + ".20271121T064229.852000000Z"
	if err := syscall.Mkfifo(filepath.Join(dir, fifo), 0o600); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	for _, file := range []string{"secret", "../secret", "/etc/passwd", name + "/../secret", aside, fifo, name, strings.Repeat("x", 255), "g-p1.log.............................", "\x00"} {
		if p, err := Read(dir, name, file, 0, b); err == nil {
			t.Errorf("%q gives %q", file, b[:p.N])
		}
	}
}
