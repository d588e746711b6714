package htmlreport

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/chromium"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

var (
	screenshots = flag.String("screenshots", "", "directory for the output of the browser test, as PNG and PDF")
	htmlFile    = flag.String("html", "", "an HTML report for the browser test instead of its own")
)

func startBrowser(t *testing.T) *chromium.Browser {
	t.Helper()
	path, err := chromium.Find()
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_CHROMIUM") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; the report is not tested", err)
	}
	b, err := chromium.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// clipped are texts of drawings that reach beyond the drawing, or are too small to read.
const clipped = `(() => {
  const out = [];
  for (const svg of document.querySelectorAll('svg.plot')) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    for (const text of svg.querySelectorAll('text')) {
      const r = text.getBoundingClientRect();
      if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
        out.push('beyond its drawing: ' + text.textContent + ' in ' + svg.getAttribute('aria-label').slice(0, 40));
      if (r.height < 9) out.push('too small: ' + text.textContent);
    }
  }
  return out;
})()`

// tooWide are elements that reach beyond the window.
const tooWide = `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 8).map(e => e.tagName + '.' + e.getAttribute('class') + ' ' + e.textContent.slice(0, 40))`

// A browser finds no problem in the report: no console messages, nothing loaded, nothing wider than
// the window, in both themes, on a telephone, on paper.
func TestReportInABrowser(t *testing.T) {
	browser := startBrowser(t)
	invalid := fixture(t, "stac-pair", quick())
	for i := range invalid.Conditions {
		invalid.Conditions[i].ForeignPct = 40
	}
	poisoned := fixture(t, "stac-pair", quick())
	poison(reflect.ValueOf(poisoned).Elem())
	single, pair := build(t, fixture(t, "stac-single", quick())), build(t, fixture(t, "stac-pair", quick()))
	var both bytes.Buffer
	if err := Write(&both, []*report.Report{single, pair}, report.ReplicationCost(single, pair)); err != nil {
		t.Fatal(err)
	}
	pages := map[string][]byte{"pair": write(t, pair), "both": both.Bytes(), "hawkes": write(t, build(t, fixture(t, "flow-hawkes", quick()))), "write": write(t, build(t, fixture(t, "gs-write", quick()))),
		"scale": write(t, build(t, fixture(t, "stac-scale", scenario.Options{Rates: []int{100, 500}}))), "invalid": write(t, build(t, invalid)), "hostile": write(t, build(t, poisoned))}
	if *htmlFile != "" {
		given, err := os.ReadFile(*htmlFile)
		if err != nil {
			t.Fatal(err)
		}
		pages = map[string][]byte{"given": given}
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) { lookAt(t, browser, name, page) })
	}
}

func lookAt(t *testing.T, browser *chromium.Browser, name string, html []byte) {
	file := filepath.Join(t.TempDir(), name+".html")
	if err := os.WriteFile(file, html, 0o644); err != nil {
		t.Fatal(err)
	}
	page, err := browser.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := page.Go("file://" + file); err != nil {
		t.Fatal(err)
	}
	for _, look := range []chromium.Look{{Width: 1280, Height: 900}, {Width: 1280, Height: 900, Dark: true}, {Width: 400, Height: 800}, {Width: 400, Height: 800, Dark: true}, {Width: 720, Height: 1000, Print: true}} {
		t.Run(fmt.Sprintf("%dpx,dark=%t,print=%t", look.Width, look.Dark, look.Print), func(t *testing.T) {
			if err := page.Look(look); err != nil {
				t.Fatal(err)
			}
			var width int
			if err := page.Eval("document.documentElement.scrollWidth", &width); err != nil {
				t.Fatal(err)
			}
			if width > look.Width {
				var wide []string
				if err := page.Eval(tooWide, &wide); err != nil {
					t.Error(err)
				}
				t.Errorf("the page is %d pixels wide in a window of %d: %q", width, look.Width, wide)
			}
			var wrong []string
			if err := page.Eval(clipped, &wrong); err != nil {
				t.Fatal(err)
			}
			for _, w := range wrong {
				t.Error(w)
			}
			var background string
			if err := page.Eval("getComputedStyle(document.body).backgroundColor", &background); err != nil {
				t.Fatal(err)
			}
			if isDark := !strings.Contains(background, "255"); isDark != (look.Dark && !look.Print) {
				t.Errorf("background %s", background)
			}
			save(t, fmt.Sprintf("%s-%d-dark=%t-print=%t.png", name, look.Width, look.Dark, look.Print), page.Screenshot)
		})
	}
	pdf, err := page.PDF()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || len(pdf) < 10_000 {
		t.Errorf("the PDF has %d bytes and begins with %.8q", len(pdf), pdf)
	}
	save(t, name+".pdf", func() ([]byte, error) { return pdf, nil })
	for _, m := range page.Messages() {
		t.Errorf("browser messages: %.2000s", m)
	}
	for _, url := range page.Requests() {
		if url != "file://"+file && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page requested %s", url)
		}
	}
	if len(page.Requests()) == 0 {
		t.Error("no request was seen, not even the page's own: the test observes nothing")
	}
}

func save(t *testing.T, name string, take func() ([]byte, error)) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	b, err := take()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The checks themselves: a page with every problem is detected.
func TestTheBrowserTestSees(t *testing.T) {
	browser := startBrowser(t)
	page, err := browser.Open()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bad.html")
	bad := `<!doctype html><title>bad</title><div style="width:3000px">x</div><img src="http://127.0.0.1:1/x.png"><script>console.error("here")</script>
<svg class="plot" aria-label="a" width="50" height="50"><text x="40" y="20">far beyond</text></svg>`
	if err := os.WriteFile(file, []byte(bad), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := page.Go("file://" + file); err != nil {
		t.Fatal(err)
	}
	var width int
	var wrong []string
	if err := page.Eval("document.documentElement.scrollWidth", &width); err != nil {
		t.Fatal(err)
	}
	if err := page.Eval(clipped, &wrong); err != nil {
		t.Fatal(err)
	}
	if width < 3000 || len(wrong) == 0 || len(page.Messages()) == 0 || len(page.Requests()) < 2 {
		t.Errorf("width %d, clipped %v, messages %v, requests %v", width, wrong, page.Messages(), page.Requests())
	}
}
