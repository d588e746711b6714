package preview

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
)

var window = Window{From: time.Unix(1000, 0), To: time.Unix(1060, 0), Step: 2 * time.Second, Scrape: time.Second}

// server answers queries by what they contain.
func server(t *testing.T, answers map[string]string) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question := r.URL.Path + "?" + r.URL.Query().Get("query") + r.URL.Query().Get("match[]")
		for part, text := range answers {
			if strings.Contains(question, part) {
				_, _ = w.Write([]byte(text))
				return
			}
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"status":"error","error":"no such thing: ` + r.URL.Path + `"}`))
	}))
	t.Cleanup(s.Close)
	return &Client{Context: t.Context(), URL: s.URL}
}

const (
	matrix = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1000,"NaN"],[1002.5,"0.25"]]}]}}`
	nans   = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1000,"NaN"],[1002,"+Inf"]]}]}}`
	none   = `{"status":"success","data":{"resultType":"matrix","result":[]}}`
	native = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1000,{"count":"3","sum":"0.1","buckets":[[0,"0.5","1","2"],[0,"1","2","1"]]}]]}]}}`
	blank  = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1000,{"count":"0","sum":"0"}]]}]}}`
)

func board(expr ...string) *grafana.Dashboard {
	d := &grafana.Dashboard{Panels: []grafana.Panel{{ID: 1, Type: "timeseries", Title: "one"}}}
	for _, e := range expr {
		d.Panels[0].Targets = append(d.Panels[0].Targets, grafana.Target{Expr: e, LegendFormat: "of {{pod}}"})
	}
	return d
}

// TestWhatCountsAsAnAnswer: the check must detect an empty panel.
func TestWhatCountsAsAnAnswer(t *testing.T) {
	c := server(t, map[string]string{"number": matrix, "nothing": none, "undefined": nans, "histogram": native, "uncounted": blank})
	for _, test := range []struct{ expr, fails string }{
		{"number", ""}, {"histogram", ""}, {"nothing", "empty answer: 0 series"}, {"undefined", "empty answer: 1 series, none with a number"},
		{"uncounted", "empty answer"}, {"syntax(", "no such thing"}, {"rate(x[$__unknown])", "unknown variable: $__unknown"},
	} {
		a := AskBoard(c, board(test.expr), window.builtins(), window)
		if len(a) != 1 || (a[0].Err == nil) != (test.fails == "") || test.fails != "" && !strings.Contains(a[0].Err.Error(), test.fails) {
			t.Errorf("%s: %+v, want an error with %q", test.expr, a, test.fails)
		}
	}
}

func TestAnswers(t *testing.T) {
	c := server(t, map[string]string{"number": matrix, "histogram": native})
	a := AskBoard(c, board("number"), nil, window)[0]
	s, v := a.Last()
	if a.Name(s) != "of a" || v.Value != 0.25 || !v.At.Equal(time.UnixMilli(1002500)) {
		t.Errorf("%q %+v", a.Name(s), v)
	}
	h := AskBoard(c, board("histogram"), nil, window)[0].Series[0].Samples[0]
	if h.Value != 3 || len(h.Histogram) != 2 || h.Histogram[1] != (Bucket{1, 2, 1}) {
		t.Errorf("%+v", h)
	}
}

// TestVariables: each limited by the choices before it, and Grafana's own.
func TestVariables(t *testing.T) {
	d := board(`rate(number{namespace=~"$namespace",pod=~"${pod}"}[$__rate_interval])`)
	add := func(name, query string) {
		d.Templating.List = append(d.Templating.List, grafana.Variable{Name: name, Type: "query", AllValue: ".*", Query: map[string]any{"query": query}})
	}
	add("namespace", "label_values(up, namespace)")
	add("pod", `label_values(up{namespace=~"$namespace"}, pod)`)
	c := server(t, map[string]string{
		`label/namespace/values?up`:                    `{"status":"success","data":["n1","n2"]}`,
		`label/pod/values?up{namespace=~"(n1|n2)"}`:    `{"status":"success","data":["p"]}`,
		`number{namespace=~".*",pod=~".*"}[4000ms]`:    matrix,
		`number{namespace=~"(n1|n2)",pod=~"(p)"}[4000`: matrix,
	})
	all, chosen, err := Choose(c, d, window)
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []map[string]string{all, chosen} {
		if a := AskBoard(c, d, values, window); a[0].Err != nil {
			t.Errorf("%s: %v", a[0].Expr, a[0].Err)
		}
	}
	add("gone", "label_values(down, gone)")
	if _, _, err := Choose(server(t, map[string]string{"label/": `{"status":"success","data":[]}`}), d, window); err == nil || !strings.Contains(err.Error(), "variable namespace has no value") {
		t.Errorf("a variable without a value: %v", err)
	}
}

func TestHostileAnswers(t *testing.T) {
	for _, text := range []string{"", "{", `{"status":"success"}`, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1]]}]}}`, `{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"x"]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"histograms":[[1,{"count":"1","buckets":[[1]]}]]}]}}`} {
		c := server(t, map[string]string{"q": text})
		if a := AskBoard(c, board("q"), nil, window); a[0].Err == nil {
			t.Errorf("%q is accepted as an answer: %+v", text, a[0].Series)
		}
	}
	gone := &Client{Context: t.Context(), URL: "http://127.0.0.1:1"}
	if _, err := gone.Instant("up", window); err == nil || errors.Is(err, http.ErrNotSupported) {
		t.Errorf("no server: %v", err)
	}
}
