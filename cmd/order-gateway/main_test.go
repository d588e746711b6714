package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What would not protect the sessions is refused before anything listens.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password := file("password", "s3cret\n")
	byPassword := file("p.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "username": "u", "passwordFile": "`+password+`"}]}`)
	byCertificate := file("c.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "certificate": "c"}]}`)
	byGridToken := file("g.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B", "user": "u"}]}`)
	open := file("o.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "A", "targetCompID": "B"}]}`)
	byToken := file("t.json", `{"clients": [{"name": "a", "tokenFile": "`+file("token", "s3cret-s3cret-s3cret")+`", "topics": ["orders.>"]}]}`)
	byName := file("n.json", `{"clients": [{"name": "a", "certificate": "a", "topics": ["orders.>"]}]}`)
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "nothing is to be served, allowed: --sessions FILE for FIX"},
		{"--sessions " + byPassword, "--fix-tls-cert, --fix-insecure-plain: both or none is given"},
		{"--sessions " + byPassword + " --fix-insecure-plain --fix-tls-cert x", "both or none is given"},
		{"--sessions " + byCertificate + " --fix-insecure-plain", "a session has a certificate, and FIX is served without TLS; allowed: TLS"},
		{"--sessions " + open + " --fix-insecure-plain", "a session without would be open to everybody"},
		{"--sessions " + byPassword + " --fix-tls-cert x --fix-tls-key y --fix-tls-ca z", "--fix-tls-cert, --fix-tls-key, --fix-tls-ca"},
		{"--sessions " + byPassword + " --fix-insecure-plain --endpoint 127.0.0.1:1 --dial-timeout 100ms", "dial [127.0.0.1:1]"},
		{"--sessions " + byPassword + " --fix-insecure-plain --log-level loud", "--log-level: value \"loud\""},
		{"--sessions " + byGridToken + " --fix-insecure-plain", "a session has a user, and FIX is served without TLS; allowed: TLS"},
		{"--sessions " + byGridToken + " --fix-insecure-plain --fix-grid-tokens", "--fix-grid-tokens: --fix-insecure-plain is given too, allowed: TLS"},
		{"--sessions " + byPassword + " --fix-insecure-plain --fix-auth token", "user is empty, allowed: a user of the grid"},
		{"--websocket 127.0.0.1:0 --websocket-insecure-plain", "--websocket-clients, --websocket-rules"},
		{"--websocket 127.0.0.1:0 --websocket-insecure-plain --websocket-clients /nowhere", "no such file"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken, "--websocket-tls-cert, --websocket-insecure-plain: both or none"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-tls-cert x", "both or none"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byName + " --websocket-insecure-plain", "allowed: TLS (--websocket-tls-cert"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-regions Positions", `--websocket-regions: value "Positions", allowed: names of regions`},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-publish-regions a,*", "--websocket-publish-regions: 2 values, allowed: at most 64 names, or * alone"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-tls-cert x --websocket-tls-key y --websocket-tls-ca z", "--websocket-tls-key, --websocket-tls-ca"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-queued-bytes 1", "--websocket-queued-bytes: value 1, allowed: 1024 or more"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --endpoint 127.0.0.1:1 --dial-timeout 100ms", "dial [127.0.0.1:1]"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-peer a:1", "--websocket-peer, --websocket-peer-token: one of them is given"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-peer a --websocket-peer-token x", "--websocket-peer: value \"a\", allowed: HOST:PORT"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-peer a:1 --websocket-peer-token " + password, "token of other gateways: the first line of"},
		{"--websocket 127.0.0.1:0 --websocket-clients " + byToken + " --websocket-insecure-plain --websocket-publish-message-bytes 2097152", "value 2097152, allowed: 1 to 1048576"},
		{"--websocket 127.0.0.1:0 --websocket-grid-tokens --websocket-insecure-plain", "such a token is good for more than this gateway"},
		{"--websocket 127.0.0.1:0 --websocket-insecure-plain --websocket-clients " + byToken + " --websocket-tokens " + dir, "allowed: the name of a file in"},
		{"--postgresql 127.0.0.1:0", "--postgresql-tls-cert, --postgresql-insecure-plain: both or none is given"},
		{"--postgresql 127.0.0.1:0 --postgresql-insecure-plain --postgresql-tls-cert x", "both or none is given"},
		{"--postgresql 127.0.0.1:0 --postgresql-insecure-plain --postgresql-users " + password, "allowed: these with TLS"},
		{"--postgresql 127.0.0.1:0 --postgresql-tls-cert x --postgresql-tls-key y --postgresql-users " + password, "--postgresql-rules is empty"},
		{"--postgresql 127.0.0.1:0 --postgresql-tls-cert x --postgresql-tls-key y --postgresql-tls-ca z", "--postgresql-tls-cert, --postgresql-tls-key, --postgresql-tls-ca"},
		{"--postgresql 127.0.0.1:0 --postgresql-insecure-plain --postgresql-column 5001:number", "allowed: TAG:KIND"},
		{"--postgresql 127.0.0.1:0 --postgresql-insecure-writes --postgresql-tls-cert x --postgresql-tls-key y", "--postgresql-insecure-writes: --postgresql-insecure-plain is not given"},
		{"--postgresql 127.0.0.1:0 --postgresql-insecure-plain --endpoint 127.0.0.1:1 --dial-timeout 100ms", "dial [127.0.0.1:1]"},
		{"--sessions " + byPassword + " --fix-insecure-plain --log-format xml", "--log-format: value \"xml\""},
		{"--sessions " + byPassword + " --fix-insecure-plain --fix-auth both", "certificate is empty, allowed: a name, since every session has to have a certificate here (both)"},
		{"--sessions " + byPassword + " --fix-insecure-plain --fix-auth some", "the proof is \"some\", allowed: any, password, certificate, both, token"},
		{"--sessions " + byPassword + " --fix-insecure-plain --passwords " + dir, "allowed: the name of a file there"},
		{"--sessions " + byPassword + " --fix-insecure-plain --max-sessions -1", "MaxSessions is -1, allowed: 1 or more"},
		{"more", "argument \"more\", allowed: flags only"},
		{"--nothing", "unknown flag: --nothing"},
	} {
		cmd := rootCommand()
		cmd.SetArgs(strings.Fields(c.args))
		var said bytes.Buffer
		cmd.SetOut(&said)
		cmd.SetErr(&said)
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("order-gateway %s: %v, expected an error with %q", c.args, err, c.want)
		}
		if err != nil && strings.Contains(err.Error()+said.String(), "s3cret") {
			t.Errorf("order-gateway %s printed a password", c.args)
		}
	}
}
