package certificate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// write stores a drill like the recorder.
func write(t *testing.T, h *history.History) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, HistoryFile)
	if err := h.Save(path); err != nil {
		t.Fatal(err)
	}
	sum, err := FileSum(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(h, sum)
	if err != nil {
		t.Fatal(err)
	}
	json, text, page, err := Render(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, json, text, page); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVerify(t *testing.T) {
	change := func(name string, f func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), f(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	again := func(f func(*history.History)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			h := good()
			f(h)
			if err := h.Save(filepath.Join(dir, HistoryFile)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		tamper func(*testing.T, string)
		want   string // "": agrees
	}{
		"untouched":              {func(*testing.T, string) {}, ""},
		"no certificate":         {func(_ *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, JSONFile)) }, ""},
		"a byte of the history":  {change(HistoryFile, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), "history"},
		"the end of the history": {change(HistoryFile, func(b []byte) []byte { return b[:len(b)-1] }), "history"},
		"a lost order is taken out of the ledger, too": {again(func(h *history.History) {
			cut(h, 999, 1000, true)
			h.Streams[0].Orders = h.Streams[0].Orders[:999]
		}), "is not the one the certificate was made from"},
		"a fate is changed": {again(func(h *history.History) { h.Streams[0].Orders[3].Fate = load.Unknown }), "is not the one the certificate was made from"},
		"the verdict":       {change(JSONFile, func(b []byte) []byte { return bytes.Replace(b, []byte(`"Pass"`), []byte(`"Missed"`), 1) }), "verdict"},
		"a count": {change(JSONFile, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"created": 1000`), []byte(`"created": 1001`), 1)
		}), "orders"},
		"white space": {change(JSONFile, func(b []byte) []byte { return append(b, '\n') }), "sha256"},
		"not JSON":    {change(JSONFile, func([]byte) []byte { return []byte("{") }), "not a certificate"},
		"the sums":    {change(SumsFile, func(b []byte) []byte { b[0] ^= 1; return b }), "in SHA256SUMS it is"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, good())
			c.tamper(t, dir)
			k, err := Verify(dir)
			problem := ""
			if err != nil {
				problem = err.Error()
			} else {
				problem = strings.Join(k.Trouble, "\n")
			}
			if (c.want == "") != (problem == "") || !strings.Contains(problem, c.want) {
				t.Fatalf("%q, want %q", problem, c.want)
			}
		})
	}
	if _, err := Verify(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing history was judged")
	}
	h := good()
	h.Drill = nil
	if _, err := New(h, ""); err == nil || !strings.Contains(err.Error(), "not of a drill") {
		t.Errorf("a history of a scenario: %v", err)
	}
}
