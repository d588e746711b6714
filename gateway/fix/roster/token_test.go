package roster

import (
	"crypto/x509"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestTokens: a session with a user is proved by a token of that user, who may in the grid what the session does.
func TestTokens(t *testing.T) {
	risk, err := ParseDropCopy(`{"name": "risk", "session": "FIX.4.4:RISK->GRID"}`)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(write(t, "sessions.json", `{"sessions": [
		{"version": "FIX.4.4", "senderCompID": "T", "targetCompID": "GRID", "user": "bank"},
		{"version": "FIX.4.4", "senderCompID": "N", "targetCompID": "GRID", "user": "bank", "username": "u"},
		{"version": "FIX.4.4", "senderCompID": "C", "targetCompID": "GRID", "user": "bank", "certificate": "bank.example"},
		{"version": "FIX.4.4", "senderCompID": "RISK", "targetCompID": "GRID", "user": "risk"}]}`), Options{Proof: ProofToken, DropCopies: []DropCopy{risk}})
	if err != nil {
		t.Fatal(err)
	}
	id := func(initiator string) fix.ID {
		return fix.ID{Version: fix.FIX44, Acceptor: "GRID", Initiator: initiator}
	}
	if !r.NeedsToken() || r.NeedsPassword() || r.User(id("T")) != "bank" || r.User(id("X")) != "" {
		t.Error("the roster does not have the users of the file")
	}
	for _, c := range []struct {
		session     string
		user        string
		certificate *x509.Certificate
		want        string
	}{
		{"T", "", nil, ""},
		{"T", "whoever", nil, ""},
		{"N", "u", nil, ""},
		{"N", "v", nil, "tag 553 (Username) is not that of the session"},
		{"C", "", &x509.Certificate{DNSNames: []string{"bank.example"}}, ""},
		{"C", "", nil, `not that of "bank.example"`},
	} {
		err := r.Authenticate(id(c.session), c.certificate, []byte(c.user), []byte("s3cret"))
		if (c.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s, user %q: %v, want %q", c.session, c.user, err, c.want)
		}
	}
	for _, c := range []struct {
		session string
		proof   judge.Proof
		want    string
	}{
		{"T", judge.Proof{User: "bank", May: wire.MaySubmit}, ""},
		{"T", judge.Proof{User: "fund", May: wire.MaySubmit}, `the token is of user "fund"; allowed: that of "bank"`},
		{"T", judge.Proof{User: "bank", May: wire.MayRead | wire.MayWatch}, "has not the permission Submit"},
		{"RISK", judge.Proof{User: "risk", May: wire.MayWatch}, ""},
		{"RISK", judge.Proof{User: "risk", May: wire.MaySubmit}, "has not the permission Watch"},
		{"X", judge.Proof{}, `allowed: that of ""`},
	} {
		if err := r.Proves(id(c.session), &c.proof); (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %+v: %v, want %q", c.session, c.proof, err, c.want)
		}
	}
	other, err := Load(write(t, "sessions.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "T", "targetCompID": "GRID", "user": "fund"}]}`), Options{})
	if err != nil || other.sum == r.sum {
		t.Errorf("with another user the roster is the same: %v", err)
	}
	for text, want := range map[string]string{
		`"user": "u", "username": "u", "passwordFile": "p"`: `user is "u" beside passwordFile, allowed: one of them`,
		`"certificate": "c"`: "user is empty, allowed: a user of the grid, since every session has to have a token here (token)",
	} {
		_, err := Load(write(t, "sessions.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", `+text+`}]}`), Options{Proof: ProofToken})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
