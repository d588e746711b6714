package roster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Files that have not changed are not read, and every way to change one is seen.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := put("sessions.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "username": "u", "passwordFile": "now"}]}`)
	put("first", "one")
	put("second", "two")
	link := filepath.Join(dir, "now")
	if err := os.Symlink("first", link); err != nil {
		t.Fatal(err)
	}
	r, err := Load(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	settle := func() { // as if its files had been looked at later
		for path, x := range r.read {
			x.at += int64(settled)
			r.read[path] = x
		}
	}
	if r.read.same() {
		t.Error("files that were written just now may be written again without another time, and are not read again")
	}
	next, err := r.Reload()
	if next != r || err != nil {
		t.Errorf("files that say the same are another roster: %v", err)
	}
	if settle(); !r.read.same() {
		t.Error("files that have not changed are read again")
	}
	changes := []struct {
		name string
		do   func() error
	}{
		{"a link is replaced", func() error {
			return errors.Join(os.Symlink("second", link+"~"), os.Rename(link+"~", link))
		}},
		{"a password of the same length, at the same time", func() error {
			info, err := os.Stat(link)
			return errors.Join(err, os.WriteFile(link, []byte("six"), 0o600), os.Chtimes(link, info.ModTime(), info.ModTime()))
		}},
		{"the file of the sessions", func() error {
			return os.WriteFile(file, []byte(`{"sessions": [{"version": "FIX.4.2", "senderCompID": "A", "targetCompID": "B", "username": "u", "passwordFile": "now"}]}`), 0o600)
		}},
	}
	for _, c := range changes {
		time.Sleep(20 * time.Millisecond) // longer than what a file system counts in
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		next, err := r.Reload()
		if err != nil || next == r || next.sum == r.sum {
			t.Fatalf("%s: not seen: %v", c.name, err)
		}
		r = next
		settle()
	}
	if err := os.Chmod(link, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reload(); err == nil {
		t.Error("a password that all can read is taken")
	}
}
