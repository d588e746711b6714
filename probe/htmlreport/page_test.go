package htmlreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

func write(t testing.TB, reports ...*report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, reports, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var svg = regexp.MustCompile(`(?s)<svg.*?</svg>`)

// The page without its drawings, which have goldens of their own.
func TestGoldenPage(t *testing.T) {
	page := write(t, build(t, fixture(t, "stac-pair", quick())))
	golden.Bytes(t, "testdata/pair.html", svg.ReplaceAll(page, []byte("<svg/>")))
	if again := write(t, build(t, fixture(t, "stac-pair", quick()))); !bytes.Equal(page, again) {
		t.Error("the same result gave two different pages")
	}
}

func TestGoldenFigures(t *testing.T) {
	o := quick()
	o.Rates = []int{100, 1000, 3000}
	for _, f := range Figures(build(t, fixture(t, "stac-pair", o))) {
		golden.Bytes(t, "testdata/"+f.Name+".svg", []byte(f.Draw(Wide).Inline()))
	}
}

// Parts without data are not drawn.
func TestFiguresFollowTheData(t *testing.T) {
	names := func(r *report.Result) (out []string) {
		for _, f := range Figures(build(t, r)) {
			out = append(out, f.Name)
		}
		return out
	}
	full := fixture(t, "stac-pair", quick())
	if got, want := names(full), strings.Fields("rates histograms percentiles stages first-seconds whole-run spikes cpu"); !slices.Equal(got, want) {
		t.Errorf("figures %v, want %v", got, want)
	}
	bare := fixture(t, "stac-pair", quick())
	for i := range bare.Probes {
		for j := range bare.Probes[i].Steps {
			bare.Probes[i].Steps[j].Series, bare.Probes[i].Steps[j].Spikes = nil, nil
		}
	}
	for i := range bare.Conditions {
		bare.Conditions[i].Nodes = nil
	}
	if got, want := names(bare), strings.Fields("rates histograms percentiles stages"); !slices.Equal(got, want) {
		t.Errorf("figures without series, spikes and nodes: %v, want %v", got, want)
	}
	if got := names(fixture(t, "flow-hawkes", quick())); !slices.Contains(got, "rates") || !slices.Contains(got, "whole-run") {
		t.Errorf("figures of flow-hawkes: %v", got)
	}
	scale := fixture(t, "stac-scale", scenario.Options{Rates: []int{100, 500}})
	if got := names(scale); !slices.Contains(got, "scaling") {
		t.Errorf("figures of stac-scale: %v, want scaling among them", got)
	}
}

// The same figures in text, JSON and HTML: every line of every table of the text
// is a row of a table of the page, and every figure of the JSON is in its cell.
func TestFormatsAgree(t *testing.T) {
	noisy := fixture(t, "stac-pair", quick())
	noisy.Conditions[1].ForeignPct = 40
	noisy.Probes[0].Steps[2].Ledger.Lost = 1
	for name, r := range map[string]*report.Result{
		"pair": fixture(t, "stac-pair", quick()), "single": fixture(t, "stac-single", quick()), "hawkes": fixture(t, "flow-hawkes", quick()), "noisy": noisy, "write": fixture(t, "gs-write", quick()),
		"scale": fixture(t, "stac-scale", scenario.Options{Rates: []int{100, 500}}),
	} {
		t.Run(name, func(t *testing.T) {
			rep := build(t, r)
			var text, js bytes.Buffer
			if err := rep.Text(&text, report.TextOptions{PerRun: true}); err != nil {
				t.Fatal(err)
			}
			if err := rep.JSON(&js); err != nil {
				t.Fatal(err)
			}
			doc, err := html.Parse(bytes.NewReader(write(t, rep)))
			if err != nil {
				t.Fatal(err)
			}
			checkText(t, text.String(), doc)
			var decoded report.Report
			if err := json.Unmarshal(js.Bytes(), &decoded); err != nil {
				t.Fatal(err)
			}
			checkJSON(t, decoded.Rows, doc)
		})
	}
}

func checkText(t *testing.T, text string, doc *html.Node) {
	t.Helper()
	rows := map[string]bool{}
	each(doc, "tr", func(tr *html.Node) {
		var cells []string
		for c := tr.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.ElementNode {
				cells = append(cells, words(c))
			}
		}
		rows[strings.Join(strings.Fields(strings.Join(cells, " ")), " ")] = true
	})
	checked, inTable := 0, false
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" || !strings.HasPrefix(line, " ") {
			inTable = strings.TrimSpace(line) != "" && strings.Contains(line, "-to-end") || strings.HasPrefix(line, "every run")
			continue
		}
		fields := strings.Fields(line)
		if !inTable || strings.Trim(fields[0], "0123456789,") != "" || strings.Contains(line, ": ") {
			continue // a heading, or a remark below the table
		}
		checked++
		if want := strings.Join(fields, " "); !rows[want] {
			t.Errorf("no row of the page reads %q", want)
		}
	}
	if checked < 10 {
		t.Errorf("only %d lines of the text were recognised as rows:\n%s", checked, text)
	}
}

func checkJSON(t *testing.T, rows []report.Row, doc *html.Node) {
	t.Helper()
	cells := map[string]string{}
	each(doc, "td", func(td *html.Node) {
		if a := attributes(td); a["data-metric"] != "" {
			cells[strings.Join([]string{a["data-metric"], a["data-pairs"], a["data-rate"], a["data-arrival"] + a["data-record"], a["data-probe"], a["data-run"], a["data-part"]}, "|")] = words(td)
		}
	})
	checked := 0
	for _, row := range rows {
		key := fmt.Sprintf("%s|%d|%d|%s|%s|%d|", row.Metric, row.Pairs, row.Rate, row.Arrival+row.Record, row.Probe, row.Run)
		got, ok := cells[key+"here"]
		if !ok || row.Verdict != report.OK || row.Metric == "c2e mean vs 1 pair" { // per cent, with a sign
			continue
		}
		checked++
		if want := numtext.Short(*row.Here); got != want {
			t.Errorf("%s here: page %q, JSON %v (%s)", key, got, *row.Here, want)
		}
		if row.Ratio != nil {
			if want := fmt.Sprintf("%.2f", *row.Ratio); cells[key+"ratio"] != want {
				t.Errorf("%s ratio: page %q, JSON %s", key, cells[key+"ratio"], want)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d figures of the JSON are in the page", checked)
	}
}

const hostile = `"'></title></style></script><script>alert(1)</script><img src=//x.example onerror=alert(1)><a href=javascript:alert(1)>{{.}}`

// A result comes from other machines: its text is always escaped.
func TestHostileWordsStayWords(t *testing.T) {
	r := fixture(t, "stac-pair", quick())
	poison(reflect.ValueOf(r).Elem())
	rep := build(t, r)
	page := write(t, rep)
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode {
			switch n.Data {
			case "script", "img", "iframe", "object", "embed", "form", "base", "a":
				t.Errorf("the page has an element %s", n.Data)
			}
			for name, value := range attributes(n) {
				if strings.HasPrefix(name, "on") || name == "src" || name == "href" && value != "data:," {
					t.Errorf("element %s has %s=%q", n.Data, name, value)
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	if !strings.Contains(words(doc), "<script>alert(1)</script>") {
		t.Error("the hostile text is not in the page: the test proves nothing")
	}
	for _, f := range Figures(rep) {
		var b bytes.Buffer
		if err := f.File(rep).SVG(&b); err != nil {
			t.Fatal(err)
		}
		if s := b.String(); strings.Contains(s, "<script") || strings.Contains(s, "<img") {
			t.Errorf("figure %s has markup of the result", f.Name)
		}
	}
}

// poison puts the hostile text into every text of a result that is not a key.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Name != "Schema" && f.Name != "Scenario" && f.Name != "Times" {
				poison(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf(hostile), reflect.ValueOf(hostile))
		}
	case reflect.String:
		v.SetString(hostile)
	}
}

// Numbers of a result may be any JSON number.
func FuzzFigures(f *testing.F) {
	f.Add(1.0, 2.0, int64(3), 50.0)
	f.Add(-1.0, 1e300, int64(-1), 0.0)
	f.Add(1e-300, 1e18, int64(1)<<62, 1e-9)
	o := quick()
	o.Rates = []int{100, 500}
	base := fixture(f, "stac-pair", o)
	f.Fuzz(func(t *testing.T, a, b float64, n int64, width float64) {
		raw, err := json.Marshal(base)
		if err != nil {
			t.Fatal(err)
		}
		r, err := report.ParseResult(raw)
		if err != nil {
			t.Fatal(err)
		}
		s := &r.Probes[0].Steps[0]
		s.Series.FirstBucketMs, s.Series.WholeBucketMs = width, a
		s.Series.First[0] = report.Bucket{AtMs: a, Orders: n, CreateToEnd: report.Moments{MeanUs: b, MaxUs: a}}
		s.Spikes[0].Orders[0] = report.SpikeOrder{AtMs: a, CreateToEndUs: b, Thread: int(n)}
		s.Spikes[0].StallFromMs, s.Spikes[0].StallToMs = b, a
		s.Spikes[0].Pauses[0].AtMs, s.Spikes[0].Pauses[0].Us = a, b
		s.Spikes[0].Descents[0].FromMs, s.Spikes[0].Descents[0].Thread = b, int(n)
		r.Conditions[0].Nodes[0].CPUCores = a
		rep, err := report.New(data(t), r)
		if err != nil {
			return // nothing to show
		}
		for _, fig := range Figures(rep) {
			if out := fig.Draw(Narrow).Inline(); strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
				t.Errorf("%s has a position that is not a number", fig.Name)
			}
		}
	})
}

func each(n *html.Node, element string, fn func(*html.Node)) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == element {
			fn(d)
		}
	}
}

func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func attributes(n *html.Node) map[string]string {
	out := map[string]string{}
	for _, a := range n.Attr {
		out[a.Key] = a.Val
	}
	return out
}
