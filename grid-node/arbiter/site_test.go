package arbiter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

func TestCheckSite(t *testing.T) {
	const hash = "00000000000000ff"
	for name, c := range map[string]struct {
		p      arbiter.Promote
		refuse string
	}{
		"none":                     {arbiter.Promote{}, ""},
		"a token":                  {arbiter.Promote{Term: 2, Seq: 9, Hash: hash}, ""},
		"of an empty log":          {arbiter.Promote{Term: 2}, ""},
		"forced":                   {arbiter.Promote{Term: 2, Forced: true}, ""},
		"no term":                  {arbiter.Promote{Seq: 9, Hash: hash}, "promote.term: value 0"},
		"a term without next":      {arbiter.Promote{Term: arbiter.MaxTerm + 1, Forced: true}, "at most 2147483647"},
		"forced with a token":      {arbiter.Promote{Term: 2, Seq: 9, Hash: hash, Forced: true}, "forced with seq 9"},
		"a hash alone":             {arbiter.Promote{Term: 2, Hash: hash}, "promote.seq: value 0"},
		"a number alone":           {arbiter.Promote{Term: 2, Seq: 9}, "promote.hash"},
		"a hash in capitals":       {arbiter.Promote{Term: 2, Seq: 9, Hash: "00000000000000FF"}, "promote.hash"},
		"a hash of too few digits": {arbiter.Promote{Term: 2, Seq: 9, Hash: "ff"}, "promote.hash"},
	} {
		s := arbiter.Spec{Promote: c.p}
		switch err := s.CheckSite(); {
		case c.refuse == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.refuse != "" && (err == nil || !strings.Contains(err.Error(), c.refuse)):
			t.Errorf("%s: %v, want %q", name, err, c.refuse)
		}
	}
	s := arbiter.Spec{Source: strings.Repeat("s", 121)}
	if s.CheckSite() == nil {
		t.Error("a source of 121 bytes was accepted")
	}
	s = arbiter.Spec{Standby: true, Restore: &arbiter.Restore{Seq: 1, Hash: hash, Epoch: 1, Lineage: 1}}
	if err := s.CheckSite(); err == nil || !strings.Contains(err.Error(), "standby and restore") {
		t.Errorf("a standby that is restored: %v", err)
	}
}

// TestNewDecisionReplaces: a decision has nothing of the one before.
func TestNewDecisionReplaces(t *testing.T) {
	s := arbiter.Spec{Promote: arbiter.Promote{Term: 2, Forced: true}, Demote: arbiter.Demote{Wanted: true, Term: 4}}
	if err := json.Unmarshal([]byte(`{"promote":{"term":3,"seq":9,"hash":"00000000000000ff"},"demote":{"wanted":true}}`), &s); err != nil {
		t.Fatal(err)
	}
	if s.Promote.Forced || s.Promote.Term != 3 || s.Demote.Term != 0 {
		t.Errorf("got %+v, %+v", s.Promote, s.Demote)
	}
	for _, bad := range []string{`{"promote":{"term":3,"froced":true}}`, `{"demote":{"want":true}}`} {
		if json.Unmarshal([]byte(bad), &s) == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
