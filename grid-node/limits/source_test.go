package limits

import (
	"strings"
	"testing"
)

// TestSupersedes: within a grid the later RiskProfile, then the later generation; a profile of another grid, or without a
// source, gives way to any, and one without a source to none that has one.
func TestSupersedes(t *testing.T) {
	at := func(grid string, since, generation int64) *Source {
		return &Source{Grid: grid, Object: "u", SinceMs: since, Generation: generation}
	}
	for name, c := range map[string]struct {
		next, have *Source
		want       bool
	}{
		"neither has one":               {nil, nil, true},
		"the first that has one":        {at("g", 1, 1), nil, true},
		"a file kept by hand":           {nil, at("g", 1, 1), false},
		"later generation":              {at("g", 1, 2), at("g", 1, 1), true},
		"the same":                      {at("g", 1, 2), at("g", 1, 2), false},
		"earlier generation":            {at("g", 1, 1), at("g", 1, 2), false},
		"another RiskProfile":           {at("g", 2, 1), at("g", 1, 7), true},
		"the RiskProfile before":        {at("g", 1, 7), at("g", 2, 1), false},
		"another grid, however early":   {at("h", 1, 1), at("g", 2, 7), true},
		"and from there on as in any":   {at("h", 1, 1), at("h", 1, 2), false},
		"switched back to the one of 1": {at("g", 3, 7), at("g", 2, 1), true},
	} {
		if got := c.next.Supersedes(c.have); got != c.want {
			t.Errorf("%s: %v over %v: %t, want %t", name, c.next, c.have, got, c.want)
		}
	}
}

// TestSourceOfAProfile: it is a part of the canonical text, Plain has none, and what is no source is refused by name.
func TestSourceOfAProfile(t *testing.T) {
	const text = `{"name":"desk-a","maxOrderVolume":"10","source":{"grid":"g","object":"u","sinceMs":1795435380000,"generation":7}}`
	p, err := ParseProfile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if string(p.Canonical()) != text || string(p.Plain().Canonical()) != `{"name":"desk-a","maxOrderVolume":"10"}` || p.Source == nil {
		t.Errorf("%s, plain %s", p.Canonical(), p.Plain().Canonical())
	}
	for _, bad := range []string{
		`{"grid":"","object":"u","sinceMs":1,"generation":1}`,
		`{"grid":"g","object":"","sinceMs":1,"generation":1}`,
		`{"grid":"g","object":"u","sinceMs":0,"generation":1}`,
		`{"grid":"g","object":"u","sinceMs":1,"generation":0}`,
		`{"grid":"g","object":"u","sinceMs":1,"generation":-3}`,
		`{"grid":"g","object":"` + strings.Repeat("u", maxUID+1) + `","sinceMs":1,"generation":1}`,
		`{}`,
	} {
		if _, err := ParseProfile([]byte(`{"source":` + bad + `}`)); err == nil || !strings.Contains(err.Error(), "limits: source ") || !strings.Contains(err.Error(), "allowed: grid and object of 1..64 bytes") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
