package instrument

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/grid-node/match"
)

func fromYAML(t *testing.T, text string) []byte {
	t.Helper()
	b, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse(t *testing.T) {
	list, err := Parse(fromYAML(t, "- {symbol: IBM, tick: \"0.05\", lot: \"10\", low: \"0\", high: \"500\", reference: \"125.5\"}\n- {symbol: OIL, tick: \"1\", lot: \"0.001\", low: \"-50\", high: \"50\", state: call}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Instrument{
		{Instrument: match.Instrument{Tick: 5, Lot: 10, High: 50_000, Ref: 12_550}, Symbol: "IBM", PriceDigits: 2, State: match.Open},
		{Instrument: match.Instrument{Tick: 1, Lot: 1, Low: -50, High: 50, Ref: -50}, Symbol: "OIL", QtyDigits: 3, State: match.Call},
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("instrument %d is %+v, want %+v", i, list[i], want[i])
		}
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                            "no instrument",
		"{symbol: IBM}":                 "a list of objects",
		"- {symbol: IBM, ticks: \"1\"}": "unknown field",
		"- {symbol: IBM, tick: \"0.05\", lot: \"1\", low: \"0\", high: \"1.001\"}":                                                         "high is",
		"- {symbol: IBM, tick: \"0\", lot: \"1\", low: \"0\", high: \"1\"}":                                                                "tick 0",
		"- {symbol: IBM, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\", state: halted}":                                                 "state is",
		"- {symbol: IBM, tick: \"0.000001\", lot: \"1\", low: \"0\", high: \"1000\"}":                                                      "prices",
		"- {symbol: IBM, tick: \"0.0000000000001\", lot: \"1\", low: \"0\", high: \"0\"}":                                                  "12 digits",
		"- {symbol: \"\", tick: \"1\", lot: \"1\", low: \"0\", high: \"9\", reference: \"10\"}":                                            "symbol",
		"- {symbol: A, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\", reference: \"10\"}":                                               "reference price 10",
		"- {symbol: A, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\"}\n- {symbol: A, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\"}": "twice",
	} {
		if _, err := Parse(fromYAML(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestFileGrowsOnly: further instruments are taken; a file in which one is gone or changed is not, and says so.
func TestFileGrowsOnly(t *testing.T) {
	const a, b, other = "- {symbol: A, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\"}\n", "- {symbol: B, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\"}\n", "- {symbol: A, tick: \"1\", lot: \"1\", low: \"0\", high: \"8\"}\n"
	path := filepath.Join(t.TempDir(), "instruments.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path, yaml.YAMLToJSONStrict); err == nil {
		t.Fatal("a file that is not there is opened")
	}
	write(a)
	f, err := Open(path, yaml.YAMLToJSONStrict)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text string
		n    int
		news bool
		err  string
	}{
		{a, 1, false, ""}, {b + a, 2, true, ""}, {b, 2, true, `instrument "A" is gone`}, {other + b, 2, true, `instrument "A" is changed`},
		{"nonsense", 2, true, "a list of objects"}, {a + b, 2, true, ""},
	} {
		write(step.text)
		before := f.SHA256()
		news := f.file.Reload()
		if len(f.List()) != step.n || news != step.news || (step.err == "") != (f.Err() == nil) || f.Err() != nil && !strings.Contains(f.Err().Error(), step.err) {
			t.Errorf("%q: %d instruments, changed %v, error %v; want %d, %v, %q", step.text, len(f.List()), news, f.Err(), step.n, step.news, step.err)
		}
		if step.err != "" && f.SHA256() != before {
			t.Errorf("%q: the digest is that of a content that is not in use", step.text)
		}
	}
}
