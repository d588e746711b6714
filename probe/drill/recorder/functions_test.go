package recorder

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// answering returns nodes of which each answers with one of these; that of nil has an error.
func answering(t *testing.T, status ...*nodestatus.Node) *nodes {
	t.Helper()
	var c Config
	for _, n := range status {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n == nil {
				http.Error(w, "starting", http.StatusServiceUnavailable)
				return
			}
			named := *n
			named.Pod, named.BootID = "grid-s0-0", "1"
			_ = json.NewEncoder(w).Encode(&named)
		}))
		t.Cleanup(s.Close)
		c.NodeHTTP = append(c.NodeHTTP, strings.TrimPrefix(s.URL, "http://"))
	}
	return newNodes(c)
}

// noted are the functions and the notes of a drill whose nodes answer so in its beginning and its end.
func noted(t *testing.T, first, last []*nodestatus.Node) (*history.Functions, string) {
	t.Helper()
	known, before := answering(t, first...).askFunctions(t.Context(), nil, nil)
	f, after := answering(t, last...).askFunctions(t.Context(), nil, known)
	h := &history.History{Functions: f}
	noteFunctions(h, before, after)
	return f, strings.Join(h.Notes, "\n")
}

func TestAskFunctions(t *testing.T) {
	none := &nodestatus.Node{}
	audit := &nodestatus.Node{Posts: []nodestatus.PostFunction{{Name: "audit", SHA256: "aa"}}}
	other := &nodestatus.Node{Posts: []nodestatus.PostFunction{{Name: "audit", SHA256: "bb"}}}
	type list = []*nodestatus.Node
	for name, c := range map[string]struct {
		first, last list
		changed     string   // digests
		notes       []string // each is in them; none: there are none
	}{
		"no functions":                   {first: list{none, none}, last: list{none}},
		"none, and one does not answer":  {first: list{nil, none}, last: list{none, nil}},
		"the same":                       {first: list{audit, none}, last: list{none, audit}},
		"no node answered":               {first: list{nil}, last: list{nil, nil}, notes: []string{"in the beginning no node told", "at the end no node told", "503"}},
		"no address":                     {notes: []string{"in the beginning no node told", "at the end no node told", "--node-port"}},
		"not in the beginning":           {first: list{nil, nil}, last: list{audit, audit}, notes: []string{"in the beginning no node told", "was not told by"}},
		"not at the end":                 {first: list{audit}, last: list{nil}, notes: []string{"at the end no node told", "was not told by"}},
		"one did not in the beginning":   {first: list{nil, audit}, last: list{audit}, notes: []string{"was not told by"}},
		"taken out":                      {first: list{audit}, last: list{none}, changed: "aa", notes: []string{"audit of kind Post, module aa, was in force only in the beginning"}},
		"put in force":                   {first: list{none}, last: list{audit}, changed: "aa", notes: []string{"audit of kind Post, module aa, was in force only at the end"}},
		"replaced under its name":        {first: list{audit}, last: list{other}, changed: "aa bb", notes: []string{"module aa, was in force only in the b", "module bb, was in force only at the e"}},
		"replaced, begun before":         {first: list{audit, other}, last: list{other}, changed: "aa", notes: []string{"module aa"}},
		"told by one, then by the other": {first: list{audit, nil}, last: list{nil, audit}, notes: []string{"was not told by"}},
	} {
		f, notes := noted(t, c.first, c.last)
		var changed []string
		if f != nil {
			for _, p := range f.Post {
				if p.Changed {
					changed = append(changed, p.SHA256)
				}
			}
		}
		if strings.Join(changed, " ") != c.changed || (notes == "") != (len(c.notes) == 0) {
			t.Errorf("%s: changed %q, notes %q", name, changed, notes)
		}
		for _, want := range c.notes {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: notes %q, want %q", name, notes, want)
			}
		}
	}
}

// TestEveryTagThatMayBeSet: as many as a chain can be granted are known, so that no order is taken for
// corrupt in which one is.
func TestEveryTagThatMayBeSet(t *testing.T) {
	n := &nodestatus.Node{Functions: &nodestatus.Functions{Stamp: 10000}}
	for i := range uint32(8) {
		pre := nodestatus.Function{Name: fmt.Sprint("f", i)}
		for k := range uint32(16) {
			pre.Tags = append(pre.Tags, 10001+16*i+k)
		}
		n.Functions.Pre = append(n.Functions.Pre, pre)
	}
	f, _ := answering(t, n, n).askFunctions(t.Context(), nil, nil)
	if f == nil || len(f.Sets) != 8*16+1 {
		t.Errorf("%+v, want all of 8 functions of 16 tags, and the stamp", f)
	}
}
