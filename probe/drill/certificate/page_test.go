package certificate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/chromium"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

var screenshots = flag.String("screenshots", "", "directory for screenshots of the browser test, as PNG")

const script = `<script>document.title="broken"</script>`

// hostile is a certificate with hostile text in every field.
func hostile(t *testing.T) *Certificate {
	t.Helper()
	h := good()
	slow(h, 0)
	cut(h, 500, 510, true)
	c := &h.Drill.Context
	c.Drill, c.Suite, c.Spec, c.Versions = script, script, script, map[string]string{script: script}
	f := &h.Drill.Faults[0]
	f.Witness.Message, f.Step.Provider, f.Message, h.Reps[0].What = script, script, script, script+strings.Repeat("long", 200)
	f.Changes = []history.Change{{Partition: script, Cause: script, By: script, Epoch: 2, Proposed: 405 * ms1, Accepted: 406 * ms1}}
	h.Notes, h.Drill.NoSink = []string{script}, script
	f.Step.Type = script
	f.Witness.State = api.Seen
	out, err := New(h, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A browser finds no problem on the page: no console messages, nothing loaded, nothing wider than
// the window, and foreign text is not markup.
func TestPageInABrowser(t *testing.T) {
	path, err := chromium.Find()
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_CHROMIUM") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; the page is not tested", err)
	}
	browser, err := chromium.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = browser.Close() })
	fine, err := New(good(), "0123")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Certificate{"pass": fine, "hostile": hostile(t)} {
		html, err := c.page()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(file, html, 0o600); err != nil {
			t.Fatal(err)
		}
		page, err := browser.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := page.Go("file://" + file); err != nil {
			t.Fatal(err)
		}
		for _, look := range []chromium.Look{{Width: 1280, Height: 900}, {Width: 400, Height: 800, Dark: true}} {
			see(t, page, fmt.Sprintf("%s-%d", name, look.Width), look)
		}
		for _, m := range page.Messages() {
			t.Errorf("%s: browser message: %.500s", name, m)
		}
		if got := page.Requests(); len(got) != 1 {
			t.Errorf("%s: the page requested %v", name, got)
		}
	}
}

func see(t *testing.T, page *chromium.Page, name string, look chromium.Look) {
	t.Helper()
	if err := page.Look(look); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Width    int
		Title    string
		Drawings int
	}
	if err := page.Eval(`({width: document.documentElement.scrollWidth, title: document.title, drawings: document.querySelectorAll('svg').length})`, &got); err != nil {
		t.Fatal(err)
	}
	if got.Width > look.Width || got.Title == "broken" || got.Drawings != 1 {
		t.Errorf("%s: %+v in a window of %d", name, got, look.Width)
	}
	if *screenshots == "" {
		return
	}
	png, err := page.Screenshot()
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
