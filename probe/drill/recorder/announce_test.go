package recorder

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// Where a drill is announced is checked before it begins, and a token goes over TLS or stays on the machine.
func TestAnnounceIsChecked(t *testing.T) {
	token := client.TokenSource(func() (string, error) { return "0123456789abcdef", nil })
	for url, says := range map[string]string{
		"wss://desk-gateway:7441": "", "ws://127.0.0.1:7441": "", "ws://localhost:7441/": "", "ws://[::1]:7441": "",
		"":                      "must be wss://HOST:PORT",
		"desk-gateway:7441":     "must be wss://HOST:PORT",
		"https://desk:7441":     "must be wss://HOST:PORT",
		"wss://desk-gateway":    "must be wss://HOST:PORT",
		"wss://desk:7441/other": "must be wss://HOST:PORT",
		"ws://desk:7441":        "in the clear",
		"ws://10.0.0.7:7441":    "in the clear",
	} {
		err := (&Announce{URL: url, Drill: "kill", Token: token}).check()
		if got := ""; err != nil {
			got = err.Error()
			if says == "" || !strings.Contains(got, says) {
				t.Errorf("%q: %s", url, got)
			}
		} else if says != "" {
			t.Errorf("%q is allowed, want an error with %q", url, says)
		}
	}
	for name, a := range map[string]*Announce{
		"--announce-token-file": {URL: "wss://desk:7441", Drill: "kill"},
		"--announce-name":       {URL: "wss://desk:7441", Drill: "a.b", Token: token},
	} {
		if err := a.check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An announcement is bounded, whatever the names of faults are.
func TestAnnouncementIsBounded(t *testing.T) {
	r := &Recorder{cfg: Config{Announce: &Announce{Drill: "kill"}}, phase: api.Failed, failure: strings.Repeat("ä", maxText)}
	a := r.announcement()
	if a.Phase != api.Failed || len(a.Error) > announcedText+len("…") || !strings.HasPrefix(a.Error, "ää") || a.Steps == nil {
		t.Errorf("%+v", a)
	}
	if got := short(strings.Repeat("x", announcedText)); len(got) != announcedText {
		t.Errorf("a text of %d bytes is cut", len(got))
	}
	for i := range 20 {
		s := &step{index: i, closed: true}
		s.rep = history.Rep{What: strings.Repeat("x", maxText)}
		r.steps = append(r.steps, s)
	}
	if a = r.announcement(); len(a.Steps) != announcedSteps || a.Steps[announcedSteps-1].Index != 19 || len(a.Steps[0].What) > announcedText+len("…") {
		t.Errorf("%d steps", len(a.Steps))
	}
}
