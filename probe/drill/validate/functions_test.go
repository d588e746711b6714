package validate

import (
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// called is a history of ten orders, entries 3 to 12, in two copies that have a record of an audit
// trail of each; entry 8 is no order.
func called() *history.History {
	h := &history.History{Partitions: []wire.PartitionID{0}, Bases: []history.Base{{Seq: 2}}, Functions: &history.Functions{Pre: []string{"limit"}, Stamp: 10002, Sets: []uint32{10002}, Chains: []string{"0123456789abcdef99"},
		Post: []history.PostFunction{{Name: "audit", Audit: true}}}}
	for _, where := range []string{"a", "b"} {
		l := history.Log{Where: where, InSync: true}
		r := history.Recorded{Where: where, InSync: true, From: 3, Through: 12}
		for seq := uint64(3); seq <= 12; seq++ {
			e := history.Entry{Seq: seq, Index: int64(seq)}
			if seq == 8 {
				e.Stream = history.NoOrder
			} else {
				r.Records = append(r.Records, history.Record{Entry: seq, Function: "audit", Sum: 100 + seq, Link: history.Linked})
			}
			l.Entries = append(l.Entries, e)
		}
		h.Logs = append(h.Logs, l)
		h.Functions.Records = append(h.Functions.Records, r)
		h.Functions.Decided = append(h.Functions.Decided, history.Decided{Where: where, InSync: true, Orders: 9, Values: []history.SetValue{{Tag: 10002, Value: "0123456789abcdef", Orders: 9}}})
	}
	return h
}

func TestTakeFunctions(t *testing.T) {
	records := func(h *history.History, copy int) *[]history.Record { return &h.Functions.Records[copy].Records }
	for name, c := range map[string]struct {
		change                             func(h *history.History)
		unstamped, different, missing, bad int64
		unread                             int
		notes                              string
		left                               bool
	}{
		"whole": {change: func(*history.History) {}},
		"one is not in sync and behind": {change: func(h *history.History) {
			h.Functions.Records[1].InSync, h.Functions.Decided[1].InSync = false, false
			*records(h, 1) = (*records(h, 1))[:3]
			h.Functions.Decided[1].Values[0].Value = ""
		}},
		"one is behind": {change: func(h *history.History) {
			h.Functions.Records[1].Through = 5
			*records(h, 1) = (*records(h, 1))[:3]
		}},
		"one is not read to what it had committed": {change: func(h *history.History) {
			h.Logs[1].Committed = 12
			h.Functions.Records[1].Through = 5
			*records(h, 1) = (*records(h, 1))[:3]
		}, unread: 1},
		"one holds the last only": {change: func(h *history.History) {
			h.Functions.Records[1].From = 10
			*records(h, 1) = (*records(h, 1))[6:]
			(*records(h, 1))[0].Link = history.Anchor
		}, notes: "p0: b holds records from entry 10 on only, the drill began behind entry 2"},
		"the function began later": {change: func(h *history.History) {
			for i := range 2 {
				*records(h, i) = (*records(h, i))[4:]
			}
		}},
		"one is not read":  {change: func(h *history.History) { h.Functions.Records[0].Error = "refused" }, unread: 1},
		"no record at all": {change: func(h *history.History) { *records(h, 0), *records(h, 1) = nil, nil }, unread: 1},
		"of no partition": {change: func(h *history.History) {
			h.Logs[0].Entries, h.Logs[1].Entries = nil, nil
			*records(h, 0), *records(h, 1) = nil, nil
		}},
		"not in both": {change: func(h *history.History) { *records(h, 0) = slices.Delete(*records(h, 0), 4, 5) }, different: 1, missing: 1},
		"in none": {change: func(h *history.History) {
			for i := range 2 {
				*records(h, i) = slices.Delete(*records(h, i), 4, 5)
			}
		}, missing: 2},
		"other bytes":   {change: func(h *history.History) { (*records(h, 1))[4].Sum++ }, different: 1},
		"another fault": {change: func(h *history.History) { (*records(h, 1))[4].Fault = "trap" }, different: 1, missing: 1},
		"all calls failed": {change: func(h *history.History) {
			for i := range 2 {
				for k := range *records(h, i) {
					(*records(h, i))[k].Fault, (*records(h, i))[k].Link = "out of fuel", history.NoLink
				}
			}
		}, missing: 18},
		"one call failed, and the next could not be linked": {change: func(h *history.History) {
			for i := range 2 {
				(*records(h, i))[3].Fault, (*records(h, i))[3].Link = "out of fuel", history.NoLink
				(*records(h, i))[4].Link = history.Anchor
			}
		}, missing: 2},
		"begun anew": {change: func(h *history.History) {
			for i := range 2 {
				(*records(h, i))[4].Link = history.Anchor
			}
		}, bad: 2},
		"begun anew long after a change": {change: func(h *history.History) {
			for i := range 2 {
				h.Functions.Records[i].Begun = []history.Begun{{Entry: 4, Post: h.Functions.Post}}
				(*records(h, i))[4].Link = history.Anchor
			}
		}, bad: 2},
		"begun anew with a change": {change: func(h *history.History) {
			for i := range 2 {
				h.Functions.Records[i].Begun = []history.Begun{{Entry: 8, Post: h.Functions.Post}}
				(*records(h, i))[5].Link = history.Anchor
			}
		}, notes: "p0: audit begins anew with entry 9: entry 8 changed functions"},
		"taken out as nodes told": {change: func(h *history.History) {
			h.Functions.Post[0].Changed = true
			for i := range 2 {
				*records(h, i) = (*records(h, i))[:5]
			}
		}, left: true},
		"taken out and put in again": {change: func(h *history.History) {
			h.Functions.Records[0].Begun = []history.Begun{{Entry: 5}, {Entry: 8, Post: h.Functions.Post}}
			for i := range 2 {
				*records(h, i) = slices.Delete(*records(h, i), 3, 4)
				(*records(h, i))[3].Link = history.Anchor
			}
		}, left: true},
		"replaced under its name": {change: func(h *history.History) {
			h.Functions.Post = append(h.Functions.Post, history.PostFunction{Name: "audit", SHA256: "ff", Changed: true})
			for i := range 2 {
				for k := 5; k < 9; k++ {
					(*records(h, i))[k].Link = history.Broken
				}
			}
		}, left: true},
		"one more": {change: func(h *history.History) {
			*records(h, 1) = append(*records(h, 1), history.Record{Entry: 12, Function: "other"})
		}, different: 1},
		"not linked":          {change: func(h *history.History) { (*records(h, 0))[4].Link = history.Broken }, bad: 1},
		"of a stranger":       {change: func(h *history.History) { h.Functions.Decided[0].Values[0].Value = "ffffffffffffffff" }, unstamped: 9},
		"the stamp cut short": {change: func(h *history.History) { h.Functions.Decided[0].Values[0].Value = "0123" }, unstamped: 9},
		"none was to stamp":   {change: func(h *history.History) { h.Functions.Stamp = 0; h.Functions.Decided[0].Values[0].Value = "" }},
		"changed meanwhile":   {change: func(h *history.History) { h.Functions.Chains = []string{"ffff", "0123456789abcdef99"} }},
	} {
		h := called()
		c.change(h)
		a := TakeFunctions(h, 5)
		if a.Unstamped != c.unstamped || a.Different != c.different || a.Missing != c.missing || a.Broken != c.bad || len(a.Unread) != c.unread {
			t.Errorf("%s: %+v", name, a)
		}
		if text := strings.Join(a.Notes, "\n"); c.left && (!slices.Equal(a.LeftOut, []string{"audit"}) || a.Linked != 0 || !strings.Contains(text, "not judged")) || !c.left && (text != c.notes || a.LeftOut != nil) {
			t.Errorf("%s: left out %q, notes %q", name, a.LeftOut, text)
		}
		if found := c.unstamped + c.different + c.missing + c.bad; (found > 0) != (len(a.Words) > 0) {
			t.Errorf("%s: %d found, in words %q", name, found, a.Words)
		}
		if name != "no record at all" && name != "of no partition" && !a.Control.OK() {
			t.Errorf("%s: the control is %+v", name, a.Control)
		}
	}
	if TakeFunctions(&history.History{}, 1) != nil {
		t.Error("a grid without functions has an account of them")
	}
	if a := TakeFunctions(called(), 1); a.Records != 9 || a.Linked != 9 || a.Copies != 2 || a.Decided != 9 || strings.Join(a.Post, " ") != "audit" || len(a.Values) != 1 || a.Values[0].Orders != 9 {
		t.Errorf("%+v", a)
	}
}
