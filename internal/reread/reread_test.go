package reread

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rising takes numbers that only grow.
func rising(content []byte, before int) (int, error) {
	n, err := strconv.Atoi(string(content))
	if err == nil && n < before {
		err = errors.New("it fell")
	}
	return n, err
}

// A content that is wrong changes nothing and is reported; one that is right again is used.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "number")
	f := Open("file of a number", path, 4, rising)
	if f.Err() == nil || !f.At().IsZero() {
		t.Fatalf("no file: %v, read at %v", f.Err(), f.At())
	}
	for _, c := range []struct {
		text    string
		changed bool
		value   int
		err     string
	}{
		{"1", true, 1, ""},
		{"1", false, 1, ""},
		{"7", true, 7, ""},
		{"x", true, 7, `file of a number ` + path + `: strconv.Atoi: parsing "x"`},
		{"x", false, 7, "strconv.Atoi"},
		{"3", true, 7, "it fell"},
		{"12345", true, 7, "more than 4 bytes, allowed: at most 4"},
		{"7", true, 7, ""},
		{"1234", true, 1234, ""},
	} {
		at := f.At()
		write(t, path, c.text)
		changed, err := f.Reload(), text(f.Err())
		if changed != c.changed || f.Value() != c.value || !strings.Contains(err, c.err) || (err == "") != (c.err == "") {
			t.Errorf("%q: changed %t, value %d, error %q, want %+v", c.text, changed, f.Value(), err, c)
		}
		if c.err != "" && f.At() != at {
			t.Errorf("%q: At is of a content that is not in use", c.text)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !f.Reload() || f.Value() != 1234 || f.Err() == nil {
		t.Errorf("a file that is gone: value %d, error %v", f.Value(), f.Err())
	}
}

// A name that is a symbolic link is followed anew each time, as mounted ConfigMaps need it.
func TestWatchFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "number")
	put := func(n string) {
		t.Helper()
		write(t, filepath.Join(dir, n), n)
		if err := errors.Join(os.Symlink(n, path+".new"), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	f := Open("file of a number", path, 4, rising)
	ctx, cancel := context.WithCancel(t.Context())
	changed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		f.Watch(ctx, time.Millisecond, func() { changed <- struct{}{} })
		close(ended)
	}()
	put("2")
	if <-changed; f.Value() != 2 || f.Err() != nil {
		t.Errorf("value %d, error %v, want 2", f.Value(), f.Err())
	}
	cancel()
	<-ended
}
