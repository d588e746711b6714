package desk

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestTargetWithoutCopiesIsTold: while the grid does not take the sources of a session, it gets no
// copies: that is said once, with what the grid says, and that it does once they are taken.
func TestTargetWithoutCopiesIsTold(t *testing.T) {
	var log bytes.Buffer
	d := &Desk{cfg: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	x := &door{d: d, l: newLine(d, 3), f: &fix.Session{}, state: open, target: true}
	at := func(seconds int64) fix.Now { return fix.Now{Mono: seconds * 1e9} }
	if !x.getsCopies(at(10), 1) {
		t.Fatal("the logon is refused")
	}
	x.l.doors[0] = x
	x.nameSources()
	x.l.rejected(at(11), &wire.Reject{ForType: wire.TypeFixStep, RequestID: x.named, Code: wire.CodeOverloaded, Text: []byte("a copy does not know it")})
	if x.named != 0 || !x.naming {
		t.Fatal("the sources are not named again")
	}
	x.l.look(at(14))
	if log.Len() > 0 {
		t.Fatalf("said too early: %s", &log)
	}
	x.l.look(at(15))
	x.l.look(at(20))
	if s := log.String(); strings.Count(s, "level=WARN") != 1 || !strings.Contains(s, "a copy does not know it") || !strings.Contains(s, "partition=p3") {
		t.Errorf("want one warning with the reason: %s", s)
	}
	log.Reset()
	x.nameSources()
	if x.stepped(at(21), &wire.FixStepped{ReqID: x.named, Entry: 7}, &wire.FixNumber{}); x.naming || !strings.Contains(log.String(), "entry=7") {
		t.Errorf("naming: %v, %s", x.naming, &log)
	}
}

// TestSessionsBeginWithTheLowestForm: a session begins with the lowest form that has what it is configured with, so
// that in an update a gateway of the release before takes it over; what is refused there is what it does not have.
func TestSessionsBeginWithTheLowestForm(t *testing.T) {
	for _, c := range []struct {
		name   string
		target bool
		mode   fix.CancelMode
		want   uint8
	}{
		{"orders only", false, fix.CancelNever, 5},
		{"cancel on disconnect", false, fix.CancelOnLoss, 6},
		{"drop copies", true, fix.CancelNever, 7},
	} {
		d := &Desk{}
		x := &door{d: d, l: newLine(d, 0), f: &fix.Session{}, id: client.FixSession{1, 2}, state: opening, target: c.target}
		x.f.Profile().CancelOnDisconnect = c.mode
		x.open(fix.Now{})
		var m wire.FixOpen
		if err := wire.DecodeFixOpen(x.l.out, &m); err != nil || m.Form != c.want {
			t.Errorf("%s: begins with form %d (%v), want %d", c.name, m.Form, err, c.want)
		}
	}
}

// TestTooManySourcesAskNothing: a session whose sources are too many is refused before the grid is
// asked for it, which would take it from where it is open.
func TestTooManySourcesAskNothing(t *testing.T) {
	d := &Desk{}
	var list []fix.Source
	for range 513 {
		list = append(list, fix.Source{ID: fix.ID{Version: fix.FIX44, Acceptor: "G", Initiator: "B"}})
	}
	x := &door{d: d, l: newLine(d, 0), f: &fix.Session{}, state: opening, target: true}
	if _, x.tooMany = encodeSources(0, list); x.tooMany == nil || !strings.Contains(x.tooMany.Error(), "512") {
		t.Fatal(x.tooMany)
	}
	if x.open(fix.Now{}); len(x.l.out) > 0 || len(x.l.asking) > 0 {
		t.Errorf("%d bytes for the grid, want none", len(x.l.out))
	}
}
