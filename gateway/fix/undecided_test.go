package fix

import (
	"errors"
	"strings"
	"testing"
)

// undecidedWorld has an Authenticate that says what answer is.
func undecidedWorld(t *testing.T) (w *world, answer *error, asked *int) {
	answer, asked = new(error), new(int)
	*answer = ErrUndecided
	return newWorld(t, Profile{}, Config{Authenticate: func(*Session, *Link, []byte, []byte) error { *asked++; return *answer }}), answer, asked
}

// A Logon that is not decided waits, and what comes behind it; it takes no number, and is counted once.
func TestUndecidedLogonWaits(t *testing.T) {
	w, answer, asked := undecidedWorld(t)
	first := w.message(1, "A", "98=0|108=30|553=u|554=token|")
	in := append(first, w.message(2, "1", "112=behind|")...)
	for range 3 {
		if n := w.link.Receive(w.now, in); n != 0 || len(w.received()) != 0 || !w.link.Busy() {
			t.Fatalf("%d bytes were consumed of a Logon that waits", n)
		}
	}
	if in, out := w.store.Next(); *asked != 1 || in != 1 || out != 1 || w.session.LoggedOn() || w.session.Link() != nil {
		t.Errorf("asked %d times, numbers %d, %d, logged on %t, want 1, 1, 1, false", *asked, in, out, w.session.LoggedOn())
	}
	*answer = nil
	w.link.Decided()
	expect(t, w.raw(in), "|35=A|", "|112=behind|")
	if c := w.acceptor.Counts(); *asked != 2 || w.session.Link() != w.link || c.in[placeOf([]byte("A"))] != 1 {
		t.Errorf("asked %d times, %d Logons counted, want 2, 1", *asked, c.in[placeOf([]byte("A"))])
	}
}

// What is decided in the end counts: it is refused with its reason, and a Logon that waits too long with its own. The time
// is counted from the Logon, once.
func TestUndecidedLogonEnds(t *testing.T) {
	w, answer, _ := undecidedWorld(t)
	in := w.message(1, "A", "98=0|108=30|553=u|554=s3cret|")
	w.link.Receive(w.now, in)
	*answer = &LogonError{Reason: "Full", Err: errors.New("no room")}
	w.link.Decided()
	expect(t, w.raw(in))
	if why, id := LogonFailure(w.link.Err()); why != "Full" || id != w.session.ID() {
		t.Errorf("ended with %s of %s: %v", why, id, w.link.Err())
	}

	w, _, _ = undecidedWorld(t)
	w.pass(w.acceptor.cfg.Limits.LogonTimeout - 1e8)
	w.link.Receive(w.now, in)
	w.pass(w.acceptor.cfg.Limits.LogonTimeout - 1e8)
	if err := w.link.Err(); err != nil {
		t.Fatalf("ended early: %v", err)
	}
	w.pass(2e8)
	why, id := LogonFailure(w.link.Err())
	if why != LogonNotJudged || id != w.session.ID() || !errors.Is(w.link.Err(), ErrLogon) || strings.Contains(w.link.Err().Error(), "s3cret") {
		t.Errorf("ended with %s of %s: %v", why, id, w.link.Err())
	}
	w.link.Decided() // too late
	if n := w.link.Receive(w.now, in); n != len(in) || w.session.LoggedOn() {
		t.Error("a link that has ended logs on")
	}
	for _, e := range w.events {
		if strings.Contains(e, "s3cret") {
			t.Errorf("an event has the password: %s", e)
		}
	}
}

// No text of a refusal has a password or a token.
func TestRefusalsHaveNoSecret(t *testing.T) {
	for _, fields := range []string{"98=0|108=30|554=s3cret|554=s3cret|", "98=0|108=30|553=u|554=s3cret|925=s3cret|925=s3cret|", "98=0|108=30|96=s3cret|96=s3cret|"} {
		w := newWorld(t, Profile{}, Config{})
		w.send("A", fields)
		if len(w.events) == 0 || strings.Contains(strings.Join(w.events, " "), "s3cret") {
			t.Errorf("%s: %q", fields, w.events)
		}
	}
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	for _, got := range w.send("D", w.order("o")+"554=s3cret|554=s3cret|") {
		if strings.Contains(got+strings.Join(w.events, " "), "s3cret") {
			t.Errorf("%s: %q", got, w.events)
		}
	}
}
