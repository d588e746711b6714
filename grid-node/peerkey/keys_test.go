package peerkey

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	a, b := New(), New()
	for name, c := range map[string]struct {
		text string
		keys int
		want string // part of the error
	}{
		"one":            {a.Text(), 1, ""},
		"no newline":     {strings.TrimSpace(a.Text()), 1, ""},
		"two and space":  {"\n" + a.Text() + "\r\n  " + b.Text() + "\n", 2, ""},
		"none":           {"\n", 0, "there are 0 keys"},
		"five":           {a.Text() + b.Text() + New().Text() + New().Text() + New().Text(), 0, "there are 5 keys"},
		"short":          {"c2hvcnQ=\n", 0, "line 1 is not a key"},
		"no base64":      {a.Text() + "what is this?\n", 0, "line 2 is not a key"},
		"zeros":          {Key{}.Text(), 0, "all zeros"},
		"the same twice": {a.Text() + a.Text(), 0, "is a duplicate"},
	} {
		keys, err := Parse(c.text)
		if len(keys) != c.keys || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
		if err != nil && (strings.Contains(err.Error(), "what is this") || strings.Contains(err.Error(), strings.TrimSpace(a.Text()))) {
			t.Errorf("%s: the error shows what is in the file: %v", name, err)
		}
	}
	if keys, _ := Parse(a.Text() + b.Text()); keys[0] != a || keys[1] != b {
		t.Error("other keys than were written, or in another order")
	}
}

func TestKeysAreNotPrinted(t *testing.T) {
	k := New()
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s", k, k, k, k)} {
		if strings.Contains(text, strings.TrimSpace(k.Text())) || strings.Contains(text, fmt.Sprint(k[0], " ", k[1])) {
			t.Error(text)
		}
	}
}

// A file is replaced under a running process; a partial file changes nothing.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peer.key")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("no file: %v", err)
	}
	before, now := New(), New()
	if err := WriteFile(path, before); err != nil {
		t.Fatal(err)
	}
	k, err := Load(path)
	if err != nil || k.Own() != before {
		t.Fatal(err)
	}
	if k.file.Reload() {
		t.Error("the same file is a change")
	}
	if err := os.WriteFile(path, []byte(now.Text()+before.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	if !k.file.Reload() || k.Own() != now || len(k.Accepted()) != 2 {
		t.Error("the second key is not there")
	}
	if err := os.WriteFile(path, []byte(now.Text()[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	if !k.file.Reload() || k.Err() == nil || k.Own() != now {
		t.Errorf("half a file: %v", k.Err())
	}
	if err := WriteFile(path, now); err != nil {
		t.Fatal(err)
	}
	if !k.file.Reload() || k.Err() != nil || len(k.Accepted()) != 1 {
		t.Errorf("the file is whole again: %v", k.Err())
	}
}
