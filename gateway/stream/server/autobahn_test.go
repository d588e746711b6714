//go:build autobahn

package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// echoing is a Server that sends each message back where it has commands: the Autobahn test suite asks for that. All else,
// from the opening request to the end, is the server's own.
type echoing struct{ *Server }

func (e *echoing) OnFrames(tc *transport.Conn, b []byte) (int, error) {
	if c := tc.Tag.(*conn); c.client != nil {
		return c.decode(b, echo{c})
	}
	return e.Server.OnFrames(tc, b)
}

type echo struct{ *conn }

func (e echo) OnMessage(op ws.Opcode, payload []byte) error {
	if !e.closing {
		e.tc.Spend(commandCost)
		e.write(ws.AppendFrame(e.buffer(), op, payload))
	}
	return errYield
}

// startEchoing serves until the test ends.
func startEchoing(t *testing.T, kind transport.Kind) string {
	t.Helper()
	all, err := topics.ParsePattern(">")
	if err != nil {
		t.Fatal(err)
	}
	const longest = 16 << 20 // of the suite's messages
	s, err := New(Config{Hub: fanout.Config{Lineage: 1, Partitions: 1, RingBytes: 1 << 20}, Kind: kind, Publishing: Publishing{Message: longest},
		Admit: func(*http.Request, *x509.Certificate) (*Grant, error) {
			return &Grant{Client: "autobahn", Topics: []topics.Pattern{all}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	s.limits[0] = ws.Limits{Message: longest, Fragments: 1 << 17}
	s.loop, err = transport.New(kind, transport.Config{MaxInput: longest + 64, Tick: tick, WriteStall: time.Minute}, &echoing{s})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, s)
}

// wstest runs the program of the suite, from the directory that pip has installed it to.
const wstest = `import site, sys
site.addsitedir(sys.argv.pop(1))
from autobahntestsuite.wstest import run
run()`

// The Autobahn test suite itself, version 25.10.1, against the server on either kind of sockets; `make autobahn-check`
// installs it, which takes Python 2.7.
func TestAutobahnSuite(t *testing.T) {
	installed := os.Getenv("ORDERGRID_AUTOBAHN")
	if installed == "" {
		t.Fatal("ORDERGRID_AUTOBAHN is not set, allowed: the directory that the Autobahn test suite is installed in; use `make autobahn-check`")
	}
	type server struct {
		Agent     string   `json:"agent"`
		URL       string   `json:"url"`
		Protocols []string `json:"protocols"`
	}
	var servers []server
	for _, kind := range []transport.Kind{transport.KindEpoll, transport.KindNet} {
		servers = append(servers, server{string(kind), "ws://" + startEchoing(t, kind) + "/stream", []string{JSON}})
	}
	dir := t.TempDir()
	spec, err := json.Marshal(map[string]any{"outdir": dir, "servers": servers, "cases": []string{cmp.Or(os.Getenv("ORDERGRID_AUTOBAHN_CASES"), "*")},
		"exclude-cases": []string{}, "exclude-agent-cases": map[string]any{}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "spec.json"), spec, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("PYTHON2"), "python2.7"), "-c", wstest, installed, "-m", "fuzzingclient", "-s", filepath.Join(dir, "spec.json"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	judgeAutobahn(t, filepath.Join(dir, "index.json"), len(servers), os.Getenv("ORDERGRID_AUTOBAHN_CASES") == "")
}

// judgeAutobahn reads the suite's own verdicts, of all cases or of some.
func judgeAutobahn(t *testing.T, index string, servers int, all bool) {
	t.Helper()
	b, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts map[string]map[string]struct{ Behavior, BehaviorClose string }
	if err := json.Unmarshal(b, &verdicts); err != nil || len(verdicts) != servers {
		t.Fatalf("verdicts on %d servers, %v, want %d", len(verdicts), err, servers)
	}
	for kind, cases := range verdicts {
		counts := map[string]int{}
		var loose, wrong []string
		for number, v := range cases {
			section, _, _ := strings.Cut(number, ".")
			compression := section == "12" || section == "13" // which the server does not offer
			closed := v.BehaviorClose == "OK" || v.BehaviorClose == "INFORMATIONAL"
			switch counts[v.Behavior]++; {
			case v.Behavior == "UNIMPLEMENTED" && compression:
			case compression, !closed:
				wrong = append(wrong, fmt.Sprint(number, " ", v))
			case v.Behavior == "NON-STRICT":
				loose = append(loose, number)
			case v.Behavior != "OK" && v.Behavior != "INFORMATIONAL":
				wrong = append(wrong, fmt.Sprint(number, " ", v))
			}
		}
		slices.Sort(loose)
		slices.Sort(wrong)
		// A text is looked at when its message is there: these want it refused before.
		if late := []string{"6.4.1", "6.4.2", "6.4.3", "6.4.4"}; all && (len(cases) != 517 || !slices.Equal(loose, late)) {
			t.Errorf("%s: %d cases, not strict: %v, want 517 and %v", kind, len(cases), loose, late)
		}
		t.Logf("%s: %d cases, by verdict: %v; not strict: %v", kind, len(cases), counts, loose)
		if len(wrong) > 0 {
			t.Errorf("%s: %d cases are not as they have to be: %q", kind, len(wrong), wrong)
		}
	}
}
