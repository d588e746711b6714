package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// example is a program in which main spends 10 itself, 30 in parse, and 60 in
// send, half of it in a call inlined into send. Names need escaping.
func example() *profile.Profile {
	fn := func(id uint64, name string) *profile.Function { return &profile.Function{ID: id, Name: name} }
	main, parse, send, inlined := fn(1, "example.org/a/main.main"), fn(2, "example.org/a/order.parse[go.shape.<&>]"), fn(3, "x.send"), fn(4, "x.copy")
	loc := func(id uint64, f ...*profile.Function) *profile.Location {
		l := &profile.Location{ID: id, Address: id}
		for _, f := range f {
			l.Line = append(l.Line, profile.Line{Function: f})
		}
		return l
	}
	m, p, s, in := loc(1, main), loc(2, parse), loc(3, send), loc(4, inlined, send)
	sample := func(v int64, path ...*profile.Location) *profile.Sample {
		return &profile.Sample{Value: []int64{1, v}, Location: path}
	}
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{sample(10, m), sample(10, p, m), sample(20, p, m), sample(30, s, m), sample(30, in, m)},
		Location:   []*profile.Location{m, p, s, in},
		Function:   []*profile.Function{main, parse, send, inlined},
	}
}

func TestTree(t *testing.T) {
	root, err := callTree(example(), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *callNode, path string, got map[string]int64)
	walk = func(n *callNode, path string, got map[string]int64) {
		path += "/" + n.Name
		got[path] += n.Value
		for _, c := range n.Children {
			walk(c, path, got)
		}
	}
	got := map[string]int64{}
	walk(root, "", got)
	want := map[string]int64{
		"/all": 100, "/all/main.main": 100, "/all/main.main/order.parse[go.shape.<&>]": 30,
		"/all/main.main/x.send": 60, "/all/main.main/x.send/x.copy": 30,
	}
	for path, v := range want {
		if got[path] != v {
			t.Errorf("%s is %d, want %d", path, got[path], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("paths %v, want %v", got, want)
	}
	if _, err := callTree(example(), "wall"); err == nil || !strings.Contains(err.Error(), "samples, cpu") {
		t.Errorf("an unknown sample type: %v", err)
	}
}

func TestWriteIsAnImage(t *testing.T) {
	var prof, svg bytes.Buffer
	if err := example().Write(&prof); err != nil {
		t.Fatal(err)
	}
	if err := writeFlameGraph(&svg, &prof, "cpu", "primary <1>"); err != nil {
		t.Fatal(err)
	}
	boxes := 0
	for d := xml.NewDecoder(bytes.NewReader(svg.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg.String())
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "g" {
			boxes++
		}
	}
	if boxes != 5 {
		t.Errorf("%d boxes, want 5", boxes)
	}
	if !strings.Contains(svg.String(), "<title>x.send: 60.00 %</title>") {
		t.Errorf("send and its part are not there:\n%s", svg.String())
	}
	if err := writeFlameGraph(io.Discard, strings.NewReader("no profile"), "cpu", ""); err == nil {
		t.Error("no profile: no error")
	}
	var empty bytes.Buffer
	if err := (&profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu"}}}).Write(&empty); err != nil {
		t.Fatal(err)
	}
	if err := writeFlameGraph(io.Discard, &empty, "cpu", ""); err != nil {
		t.Errorf("a profile without samples: %v", err)
	}
}
