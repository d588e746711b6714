package roster

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuthenticate(t *testing.T) {
	password := write(t, "password", "s3cret\n")
	r, err := Load(write(t, "sessions.json", `{"sessions": [
		{"version": "FIX.4.4", "senderCompID": "P", "targetCompID": "GRID", "username": "u", "passwordFile": "`+password+`", "nextExpected": true},
		{"version": "FIX.4.2", "senderCompID": "C", "targetCompID": "GRID", "certificate": "bank.example"},
		{"version": "FIXT.1.1", "senderCompID": "C", "targetCompID": "GRID", "certificate": "bank.example"},
		{"version": "FIX.4.4", "senderCompID": "B", "targetCompID": "GRID", "certificate": "bank.example", "username": "u", "passwordFile": "`+password+`"}]}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	bank := &x509.Certificate{DNSNames: []string{"bank.example"}}
	named := &x509.Certificate{Subject: pkix.Name{CommonName: "bank.example"}}
	other := &x509.Certificate{DNSNames: []string{"other.example"}, Subject: pkix.Name{CommonName: "x"}}
	id := func(v fix.Version, initiator string) fix.ID {
		return fix.ID{Version: v, Acceptor: "GRID", Initiator: initiator}
	}
	for _, c := range []struct {
		id             fix.ID
		certificate    *x509.Certificate
		user, password string
		want           string
	}{
		{id(fix.FIX44, "P"), nil, "u", "s3cret", ""},
		{id(fix.FIX44, "P"), nil, "u", "s3cre", "tags 553 (Username) and 554"},
		{id(fix.FIX44, "P"), nil, "v", "s3cret", "tags 553 (Username) and 554"},
		{id(fix.FIX44, "P"), bank, "", "", "tags 553 (Username) and 554"},
		{id(fix.FIX42, "C"), bank, "", "", ""},
		{id(fix.FIX42, "C"), named, "", "", ""},
		{id(fix.FIXT11, "C"), bank, "", "", ""},
		{id(fix.FIX42, "C"), other, "", "", `not that of "bank.example"`},
		{id(fix.FIX42, "C"), nil, "", "", `not that of "bank.example"`},
		{id(fix.FIX44, "B"), bank, "u", "s3cret", ""},
		{id(fix.FIX44, "B"), nil, "u", "s3cret", `not that of "bank.example"`},
		{id(fix.FIX44, "B"), bank, "u", "", "tags 553 (Username) and 554"},
		{id(fix.FIX44, "C"), bank, "", "", "not in the file"},
	} {
		err := r.Authenticate(c.id, c.certificate, []byte(c.user), []byte(c.password))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, user %q, password %q: %v, expected %q", c.id, c.user, c.password, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cre") {
			t.Errorf("the error has a password: %v", err)
		}
	}
	if len(r.Profiles()) != 4 || !r.NeedsPassword() || !r.NeedsCertificate() {
		t.Errorf("the roster has %d sessions", len(r.Profiles()))
	}
}

func TestLoadRefuses(t *testing.T) {
	empty := write(t, "password", "\n")
	for text, want := range map[string]string{
		`{}`: "sessions is empty",
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B"}]}`:                                                                                                           "sessions[0]: passwordFile, certificate and user are empty",
		`{"sessions": [{"version": "FIX.5.0", "senderCompID": "A", "targetCompID": "B", "certificate": "c"}]}`:                                                                                       `version is "FIX.5.0", allowed: FIX.4.2, FIX.4.4, FIXT.1.1 (FIX 5.0 SP2)`,
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "certificate": "c"}]}`:                                                                                                            "targetCompID is empty",
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "passwordFile": "` + empty + `"}]}`:                                                                          "username is empty",
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "username": "u", "passwordFile": "` + empty + `"}]}`:                                                         "is empty, allowed: a password",
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "username": "u", "passwordFile": "/does/not/exist"}]}`:                                                       "passwordFile: stat /does/not/exist",
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "password": "x"}]}`:                                                                                          `unknown field "password"`,
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "certificate": "c"}, {"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "certificate": "c"}]}`: "sessions[1]: session FIX.4.4:A->B is there twice",
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "certificate": "c", "cancelOnDisconnect": {"mode": "Always"}}]}`:                                             `cancelOnDisconnect.mode is "Always"`,
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "certificate": "c", "cancelOnDisconnect": {"mode": "OnDisconnect", "grace": "61s"}}]}`:                       `cancelOnDisconnect.grace is "61s", allowed: 1s to 1m0s`,
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "certificate": "c", "cancelOnDisconnect": {"mode": "OnDisconnect", "grace": "900ms"}}]}`:                     `cancelOnDisconnect.grace is "900ms"`,
		`{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "certificate": "c", "cancelOnDisconnect": {"mode": "None", "grace": "2s"}}]}`:                                `mode "None" and grace "2s"`,
	} {
		if _, err := Load(write(t, "sessions.json", text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected an error with %q", text, err, want)
		}
	}
}

// A session has the cancels of its entry, or else those of the options.
func TestCancelOnDisconnect(t *testing.T) {
	r, err := Load(write(t, "sessions.json", `{"sessions": [
		{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "G", "certificate": "c"},
		{"version": "FIX.4.4", "senderCompID": "B", "targetCompID": "G", "certificate": "c", "cancelOnDisconnect": {"mode": "None"}},
		{"version": "FIX.4.4", "senderCompID": "C", "targetCompID": "G", "certificate": "c", "cancelOnDisconnect": {"mode": "OnDisconnectOrLogout", "grace": "1500ms"}}]}`),
		Options{Cancel: &Cancel{Mode: "OnDisconnect"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Profiles() {
		want := map[string]fix.Profile{
			"A": {CancelOnDisconnect: fix.CancelOnLoss, CancelGrace: 10 * time.Second}, "B": {},
			"C": {CancelOnDisconnect: fix.CancelOnLogout, CancelGrace: 1500 * time.Millisecond},
		}[p.Initiator]
		if p.CancelOnDisconnect != want.CancelOnDisconnect || p.CancelGrace != want.CancelGrace {
			t.Errorf("%s has %q, %s", p.ID, p.CancelOnDisconnect, p.CancelGrace)
		}
	}
}

// Passwords are read from their directory alone, and only if others cannot read them; the proof that is asked for has to
// be there.
func TestPasswordFiles(t *testing.T) {
	dir := t.TempDir()
	passwords := filepath.Join(dir, "passwords")
	if err := os.Mkdir(passwords, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"passwords/own": 0o600, "passwords/group": 0o440, "passwords/open": 0o644, "beside": 0o600} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("s3cret\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		file    string
		options Options
		want    string
	}{
		"own":          {"own", Options{Passwords: passwords}, ""},
		"group":        {"group", Options{Passwords: passwords, Proof: ProofPassword}, ""},
		"beside":       {"beside", Options{}, ""},
		"open":         {"open", Options{Passwords: passwords}, "has mode 0644, allowed: none for others"},
		"above":        {"../beside", Options{Passwords: passwords}, "is not below the directory of the passwords"},
		"absolute":     {filepath.Join(dir, "beside"), Options{Passwords: passwords}, "is not below the directory of the passwords"},
		"no such file": {"none", Options{Passwords: passwords}, "no such file"},
		"certificate":  {"own", Options{Passwords: passwords, Proof: ProofOfIdentity}, "certificate is empty, allowed: a name"},
		"other proof":  {"own", Options{Proof: "x"}, `the proof is "x"`},
	} {
		sessions := filepath.Join(dir, "sessions.json")
		text := `{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "username": "u", "passwordFile": "` + c.file + `"}]}`
		if err := os.WriteFile(sessions, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(sessions, c.options)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error has a password: %v", name, err)
		}
	}
}

// TestDropCopyFiles: a drop copy is for a session of the file, of others of it.
func TestDropCopyFiles(t *testing.T) {
	file := write(t, "sessions.json", `{"sessions": [
		{"version": "FIX.4.4", "senderCompID": "RISK", "targetCompID": "GRID", "certificate": "r"},
		{"version": "FIXT.1.1", "senderCompID": "NEW", "targetCompID": "GRID", "certificate": "r"},
		{"version": "FIX.4.4", "senderCompID": "DESK", "targetCompID": "GRID", "certificate": "r", "segment": "IBM"},
		{"version": "FIX.4.2", "senderCompID": "BANK", "targetCompID": "GRID", "certificate": "r", "segment": "OIL"},
		{"version": "FIX.4.4", "senderCompID": "CANCELS", "targetCompID": "GRID", "certificate": "r", "cancelOnDisconnect": {"mode": "OnDisconnect"}},
		{"version": "FIX.4.4", "senderCompID": "`+strings.Repeat("L", 60)+`", "targetCompID": "GRID", "certificate": "r"}]}`)
	load := func(texts ...string) (*Roster, error) {
		var o Options
		for _, text := range texts {
			c, err := ParseDropCopy(text)
			if err != nil {
				return nil, err
			}
			o.DropCopies = append(o.DropCopies, c)
		}
		return Load(file, o)
	}
	const risk = `{"name": "risk", "session": "FIX.4.4:RISK->GRID", `
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{[]string{risk + `"sessions": ["FIX.4.2:BANK->GRID", "FIX.4.4:GONE->GRID"]}`}, ""},
		{[]string{risk + `"partition": 1, "sessions": ["FIX.4.2:BANK->GRID"]}`}, ""},
		{[]string{`{"name": "x"}`}, `drop copy "x": session is ""`},
		{[]string{`risk`}, "allowed: JSON such as"},
		{[]string{`{"name": "risk", "target": "x"}`}, "allowed: JSON such as"},
		{[]string{`{"session": "FIX.4.4:RISK->GRID"}`}, "name is empty"},
		{[]string{`{"name": "risk", "session": "FIX.4.2:BANK->GRID"}`}, "session is of FIX.4.2, allowed: FIX.4.4, FIXT.1.1"},
		{[]string{`{"name": "risk", "session": "FIXT.1.1:NEW->GRID", "sessions": ["FIX.4.2:BANK->GRID"]}`}, ""},
		{[]string{risk + `"sessions": ["FIXT.1.1:NEW->GRID"]}`}, ""},
		{[]string{`{"name": "risk", "session": "FIX.4.4:NONE->GRID"}`}, "session FIX.4.4:NONE->GRID is not in the file"},
		{[]string{risk + `"partition": -1}`}, "partition is -1, allowed: 0 or more"},
		{[]string{`{"name": "desk", "session": "FIX.4.4:DESK->GRID", "partition": 1, "sessions": ["FIX.4.2:BANK->GRID"]}`}, `partition is 1 and session FIX.4.4:DESK->GRID has segment "IBM"`},
		{[]string{risk + `"sessions": ["FIX.4.4:RISK->GRID"]}`}, "the session that gets the copies, allowed: other ones"},
		{[]string{risk + `"sessions": ["FIX.4.2:BANK->GRID", "FIX.4.2:BANK->GRID"]}`}, "twice, allowed: once"},
		{[]string{risk + `"sessions": ["BANK"]}`}, `session is "BANK", allowed: version, SenderCompID and TargetCompID`},
		{[]string{risk + `"sessions": ["FIX.4.4:DESK->GRID"]}`, `{"name": "desk", "session": "FIX.4.4:DESK->GRID", "sessions": ["FIX.4.2:BANK->GRID"]}`}, "FIX.4.4:DESK->GRID gets drop copies itself"},
		{[]string{risk + `"sessions": ["FIX.4.2:BANK->GRID"]}`, risk + `"sessions": ["FIX.4.4:DESK->GRID"]}`}, "has a drop copy already"},
		{[]string{`{"name": "c", "session": "FIX.4.4:CANCELS->GRID", "sessions": ["FIX.4.2:BANK->GRID"]}`}, "has cancelOnDisconnect, allowed: none"},
		{[]string{`{"name": "risk", "session": "FIX.4.4:RISK->GRID"}`}, "have 64 bytes, allowed: together at most 62"},
	} {
		if _, err := load(c.texts...); (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.texts, err, c.want)
		}
	}
	r, err := load(risk + `"partition": 1, "sessions": ["FIX.4.4:GONE->GRID", "FIX.4.4:DESK->GRID", "FIX.4.2:BANK->GRID"]}`)
	if err != nil {
		t.Fatal(err)
	}
	id := func(v fix.Version, initiator string) fix.ID {
		return fix.ID{Version: v, Acceptor: "GRID", Initiator: initiator}
	}
	want := fix.Home{Partition: 1, DropCopy: true, Sources: []fix.Source{{ID: id(fix.FIX42, "BANK"), Segment: "OIL"}, {ID: id(fix.FIX44, "DESK"), Segment: "IBM"}}}
	if got := r.Home(id(fix.FIX44, "RISK")); !got.Equal(&want) {
		t.Errorf("the session is %+v, want %+v", got, want)
	}
	if got, want := r.Home(id(fix.FIX44, "DESK")), (fix.Home{Segment: "IBM", Partition: -1}); !got.Equal(&want) {
		t.Errorf("another session is %+v, want %+v", got, want)
	}
}
