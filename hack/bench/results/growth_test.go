package results

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/internal/plot"
)

var sizes = []float64{1e4, 1e5, 1e6, 1e7, 2e7}

func TestJudgeGrowth(t *testing.T) {
	const worse, fine = true, false
	for _, c := range []struct {
		name string
		f    func(n float64) float64
		want bool
	}{
		{"constant", func(float64) float64 { return 80 }, fine},
		{"falling", func(n float64) float64 { return 100 - 5*math.Log10(n) }, fine},
		{"logarithmic", func(n float64) float64 { return 10 * math.Log(n) }, fine},
		{"a constant and a logarithm", func(n float64) float64 { return 60 + 4*math.Log2(n) }, fine},
		{"log log", func(n float64) float64 { return 50 * math.Log(math.Log(n)) }, fine},
		{"a step where the cache ends", func(n float64) float64 { return map[bool]float64{true: 80, false: 95}[n < 1e6] }, fine},
		{"linear", func(n float64) float64 { return n / 1e4 }, worse},
		{"a constant and a line", func(n float64) float64 { return 80 + n/1e6 }, worse},
		{"n log n", func(n float64) float64 { return n * math.Log(n) / 1e5 }, worse},
		{"square root", func(n float64) float64 { return math.Sqrt(n) }, worse},
		{"fourth root", func(n float64) float64 { return math.Pow(n, 0.25) }, worse},
		{"quadratic", func(n float64) float64 { return 1 + n*n/1e10 }, worse},
		{"a line too flat to be told from noise", func(n float64) float64 { return 80 + n/4e6 }, fine},
	} {
		for _, wobble := range []float64{0, 0.02, -0.02} { // each second point is off by so much
			var cost []float64
			for i, n := range sizes {
				cost = append(cost, c.f(n)*(1+wobble*float64(i%2)))
			}
			v, err := JudgeGrowth(sizes, cost)
			if err != nil || v.Worse != c.want {
				t.Errorf("%s, wobble %v: %+v (%v), %v", c.name, wobble, v, v, err)
			}
			if strings.HasPrefix(v.String(), "WORSE") != c.want {
				t.Errorf("%s: %s", c.name, v)
			}
		}
	}
	if _, err := JudgeGrowth(sizes[:3], []float64{1, 2, 3}); err == nil {
		t.Error("three points are enough")
	}
}

// rows of one curve of orders held, whose cost at n is f(n) microseconds.
func rows(load string, f func(n float64) float64) (out []Row) {
	for i, name := range []string{"10k", "100k", "1m", "10m", "20m"} {
		v := f(sizes[i])
		r := Row{Case: "growth/held-" + name + "-" + load, System: "grid", Rounds: 1, Valid: i != 3, BytesPerOrder: 380, GoHeap: 9 << 20}
		r.Figures = Figures{P50: v, P99: 2 * v, OrdersPerS: 1e6 / v, CPU: v / 3}
		r.Min, r.Max = Figures{P50: 0.9 * v, OrdersPerS: 0.9e6 / v}, Figures{P50: 1.1 * v, OrdersPerS: 1.1e6 / v}
		out = append(out, r)
	}
	return out
}

func TestCurves(t *testing.T) {
	all := append(rows("rate-6000", func(float64) float64 { return 80 }), rows("pipe-64x4", func(n float64) float64 { return n / 1e6 })...)
	all = append(all, Row{Case: "lo/repl/pingpong", System: "grid", Rounds: 1}, Row{Case: "growth/partitions-01", System: "grid"})
	for i, n := range []string{"64", "01", "08"} { // in any order
		for _, s := range []string{"floor-go", "grid"} {
			all = append(all, Row{Case: "growth/connections-" + n, System: s, Rounds: 1, Valid: true, Figures: Figures{OrdersPerS: float64(1000 * (3 - i))}})
		}
	}
	curves := Curves(all)
	if len(curves) != 3 {
		t.Fatalf("%d curves: %+v", len(curves), curves)
	}
	for i, worse := range []bool{false, true} {
		v, err := curves[i].Verdicts()
		if err != nil || len(v) != 1 || v["grid"].Worse != worse {
			t.Errorf("%s: %+v, %v", curves[i].Name, v, err)
		}
	}
	c := &curves[2]
	if v, err := c.Verdicts(); v != nil || err != nil || c.Name != "connections" || len(c.Series) != 2 || c.Figure != cases.HighRate {
		t.Errorf("%+v: %v, %v", c, v, err)
	}
	if p := c.Series[1].Points; p[0].X != 1 || p[1].X != 8 || p[2].X != 64 {
		t.Errorf("not in order: %+v", p)
	}
	var text bytes.Buffer
	for i := range curves {
		if err := curves[i].Table(&text); err != nil {
			t.Fatal(err)
		}
	}
	golden.Bytes(t, "testdata/tables.md", text.Bytes())
}

// A plot is well-formed, asks the network for nothing, and keeps all it draws
// within its frame.
func TestSVG(t *testing.T) {
	c := Curves(rows("rate-6000", func(n float64) float64 { return 70 + math.Log(n) }))[0]
	c.Series[0].System = `<script>"&`
	var b bytes.Buffer
	if err := c.SVG(&b); err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "testdata/plot.svg", b.Bytes())
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local == "script" || e.Name.Local == "image" {
			t.Errorf("element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			if a.Name.Local == "href" || a.Name.Local != "xmlns" && strings.Contains(a.Value, "//") {
				t.Errorf("%s = %s", a.Name.Local, a.Value)
			}
			if a.Name.Local != "d" {
				continue
			}
			for _, at := range strings.FieldsFunc(a.Value, func(r rune) bool { return strings.ContainsRune("MLZ ", r) }) {
				var x, y float64
				if _, err := fmt.Sscanf(at, "%f,%f", &x, &y); err != nil || x < 0 || x > plot.LinesWidth || y < 0 || y > plot.LinesHeight {
					t.Errorf("%s is outside, or no place (%v)", at, err)
				}
			}
		}
	}
	if !strings.Contains(b.String(), "prefers-color-scheme:dark") {
		t.Error("not readable on black")
	}
	if err := (&Curve{Name: "empty"}).SVG(io.Discard); err == nil {
		t.Error("a curve without points was drawn")
	}
}
