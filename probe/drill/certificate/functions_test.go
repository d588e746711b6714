package certificate

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// recording is good, in a grid whose copies have a record of an audit trail of each order.
func recording() *history.History {
	h := good()
	h.Functions = &history.Functions{Post: []history.PostFunction{{Name: "audit", Audit: true}}}
	for _, l := range h.Logs {
		x := history.Recorded{Where: l.Where, InSync: true, From: 1, Through: uint64(len(l.Entries))}
		for _, e := range l.Entries {
			x.Records = append(x.Records, history.Record{Entry: e.Seq, Function: "audit", Sum: e.Seq, Link: history.Linked})
		}
		h.Functions.Records = append(h.Functions.Records, x)
	}
	return h
}

func TestVerdictOfFunctions(t *testing.T) {
	each := func(h *history.History, do func(x *history.Recorded)) {
		for i := range h.Functions.Records {
			do(&h.Functions.Records[i])
		}
	}
	for name, c := range map[string]struct {
		change       func(h *history.History)
		want         Verdict
		reason, note string
	}{
		"whole": {change: func(*history.History) {}, want: Pass},
		"every call failed": {change: func(h *history.History) {
			each(h, func(x *history.Recorded) {
				for i := range x.Records {
					x.Records[i].Fault, x.Records[i].Link = "out of fuel", history.NoLink
				}
			})
		}, want: Violated, reason: "2000 orders have no record of an audit trail, or one of a call that failed"},
		"one call failed": {change: func(h *history.History) {
			each(h, func(x *history.Recorded) { x.Records[5].Fault, x.Records[6].Link = "trap", history.Anchor })
		}, want: Violated, reason: "2 orders have no record"},
		"begun anew": {change: func(h *history.History) {
			each(h, func(x *history.Recorded) { x.Records[500].Link = history.Anchor })
		}, want: Violated, reason: "2 records of an audit trail are not linked"},
		"begun anew with other grants": {change: func(h *history.History) {
			each(h, func(x *history.Recorded) {
				x.Begun = []history.Begun{{Entry: 500, Post: h.Functions.Post}}
				x.Records = append(x.Records[:499:499], x.Records[500:]...)
				x.Records[499].Link = history.Anchor
			})
			for i := range h.Logs {
				h.Logs[i].Entries[499].Stream = history.NoOrder
			}
			h.Sinks[0].Entries[499].Stream = history.NoOrder
			o := &h.Streams[0].Orders[499]
			o.Seq, o.Epoch, o.Copies, o.Fate = 0, 0, 0, 0
		}, want: Pass, note: "audit begins anew with entry 501: entry 500 changed functions"},
		"taken out of force": {change: func(h *history.History) {
			h.Functions.Post[0].Changed = true
			each(h, func(x *history.Recorded) { x.Records = x.Records[:600] })
		}, want: Pass, note: "audit was not in force during the whole drill"},
		"too few records for a control": {change: func(h *history.History) {
			h.Functions.Post[0].Audit = false
			each(h, func(x *history.Recorded) { x.Records = x.Records[:3] })
		}, want: Invalid, reason: "no negative control of records"},
		"no records were read": {change: func(h *history.History) { h.Functions.Records = nil }, want: Invalid, reason: "no negative control of records"},
		"no records of what was put in force at the end": {change: func(h *history.History) {
			h.Functions.Post[0].Changed = true
			each(h, func(x *history.Recorded) { x.Records = nil })
		}, want: Pass, note: "audit was not in force"},
		"no functions of kind Post": {change: func(h *history.History) { h.Functions.Post, h.Functions.Records = nil, nil }, want: Pass},
	} {
		h := recording()
		c.change(h)
		got, err := New(h, "")
		if err != nil {
			t.Fatal(err)
		}
		reasons, notes := strings.Join(got.Reasons, "\n"), strings.Join(got.Notes, "\n")
		if got.Verdict != c.want || !strings.Contains(reasons, c.reason) || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %s: %q, notes %q, functions %+v", name, got.Verdict, reasons, notes, got.Functions)
		}
		var text strings.Builder
		if err := got.WriteText(&text); err != nil || (len(got.Functions.LeftOut) > 0) != strings.Contains(text.String(), "not judged, since changed: audit") {
			t.Errorf("%s: %v, the text is\n%s", name, err, &text)
		}
	}
}
