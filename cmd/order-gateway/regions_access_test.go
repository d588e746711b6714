package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// TestGridRegionTopics: who may read which region and key, positions, last, filters, events, and what is refused with the
// reason.
func TestGridRegionTopics(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g := withRegions(t)
	c := clientOf(t, g)
	positions, secret := c.Region("positions"), c.Region("secret")
	at := startGateway(t, g, "127.0.0.1:0", "--websocket-regions", "positions,secret,later", "--websocket-clients",
		regionReader(t, "region.positions.>", "region.secret.K1", "region.other.>", "region.later.>", "orders.>"))
	k := talkTo(t, ctx, at)
	for command, want := range map[string][]string{
		`{"op":"subscribe","id":9,"topics":"region.secret.>"}`:                                               {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"region.secret.*"}`:                                               {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"region.*.K1"}`:                                                   {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"region.>"}`:                                                      {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":">"}`:                                                             {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"region.other.>"}`:                                                {`"code":"invalid"`, "regions that the gateway streams"},
		`{"op":"subscribe","id":9,"topics":"region.positions.>","filter":[{"field":"account","equal":"A"}]}`: {`"code":"invalid"`, "account"},
		`{"op":"subscribe","id":9,"topics":"region.positions.>","last":1,"resume":"1.p0:0"}`:                 {`"code":"invalid"`, "0 with a token"},
		`{"op":"publish","id":9,"topic":"region.positions.K","data":1}`:                                      {`"code":"not-permitted"`},
	} {
		k.says(command, append(want, `"op":"error"`)...)
	}
	k.says(`{"op":"subscribe","id":1,"topics":"region.positions.>"}`, `"op":"subscribed"`)
	k.says(`{"op":"subscribe","id":2,"topics":"region.secret.K1"}`, `"op":"subscribed"`)
	k.says(`{"op":"subscribe","id":3,"topics":"region.later.>"}`, `"op":"subscribed"`) // the grid may get it
	for _, key := range []string{"K2", "K11", "K1", "k1"} {
		if _, err := secret.Put(ctx, []byte(key), []byte(`"hidden"`)); err != nil {
			t.Fatal(err)
		}
	}
	k.says("", `"id":2,`, `"topic":"region.secret.K1"`, `"value":"hidden"`)
	r, err := positions.Put(ctx, []byte("ACC-1.IBM"), []byte(`{"qty": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	k.says("", `"id":1,`, fmt.Sprintf(`"partition":%d,"at":"%d","topic":"region.positions.ACC-1%%2EIBM"`, r.Partition, r.Seq), `"key":"ACC-1.IBM","value":{"qty":7}`)
	k.says(`{"op":"subscribe","id":4,"topics":"region.positions.*","last":5}`, `"op":"subscribed"`)
	k.says("", `"id":4,`, `"key":"ACC-1.IBM"`)
	k.says("", `"op":"live"`)
	k.says(`{"op":"subscribe","id":5,"topics":"region.positions.>","filter":[{"field":"key","prefix":"B"}]}`, `"op":"subscribed"`)
	k.says(`{"op":"unsubscribe","id":4}`, `"op":"unsubscribed"`)
	k.says(`{"op":"unsubscribe","id":1}`, `"op":"unsubscribed"`)
	for _, key := range []string{"A-1", "B-1"} {
		if _, err := positions.Put(ctx, []byte(key), nil); err != nil {
			t.Fatal(err)
		}
	}
	k.says("", `"id":5,`, `"key":"B-1","base64":""`)
	readEvents(t, ctx, at, "topics=region.positions.%3E&last=10", `"topic":"region.positions.B-1"`)

	k = talkTo(t, ctx, startGateway(t, g, "127.0.0.1:0", "--websocket-clients", regionReader(t, "region.positions.>", "orders.>", ">")))
	k.says(`{"op":"subscribe","id":1,"topics":"region.positions.>"}`, `"code":"invalid"`, "--websocket-regions")
	k.says(`{"op":"subscribe","id":2,"topics":">","last":10}`, `"op":"subscribed"`)
	k.says("", `"op":"live"`) // nothing of regions
}

// A grid that matches has no regions, and says so.
func TestGridThatMatchesHasNoRegionTopics(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	at := startGateway(t, testgrid.Matching(t), "127.0.0.1:0", "--websocket-regions", "positions", "--websocket-clients", regionReader(t, "region.positions.>"))
	talkTo(t, ctx, at).says(`{"op":"subscribe","id":1,"topics":"region.positions.>"}`, `"code":"invalid"`, "a grid that matches has no regions")
}

// Keys and values of full length, with a client that does not read: it is told how many it lacks, and no other one lacks any.
func TestGridRegionsOfFullLength(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g := withRegions(t)
	c := clientOf(t, g)
	at := startGateway(t, g, "127.0.0.1:0", "--websocket-regions", "*", "--websocket-clients", regionReader(t, "region.positions.>"))
	open := func(policy string) *websocket.Conn {
		w, _, err := websocket.Dial(ctx, "ws://"+at.addr+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + testToken}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.CloseNow() })
		w.SetReadLimit(1 << 20)
		if err := w.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"op":"subscribe","id":1,"topics":"region.positions.>","policy":%q}`, policy)); err != nil {
			t.Fatal(err)
		}
		if _, b, err := w.Read(ctx); err != nil || !strings.Contains(string(b), `"subscribed"`) {
			t.Fatalf("%s: %v", b, err)
		}
		return w
	}
	slow, fast := open("drop"), open("drop")
	const puts = 240
	for i := range puts { // the next one when the one who reads has this
		key, value := fmt.Appendf(nil, "%d", i), make([]byte, 65_000)
		if i%2 == 1 {
			key, value = fmt.Appendf(key, "%065000d", 0), nil
		}
		if _, err := c.Region("positions").Put(ctx, key, value); err != nil {
			t.Fatal(err)
		}
		if got, gaps := regionReads(t, ctx, fast, 1); got != 1 || gaps != 0 {
			t.Fatalf("the client that reads lacks put %d", i)
		}
	}
	if _, err := c.Region("positions").Put(ctx, []byte("the end"), nil); err != nil {
		t.Fatal(err)
	}
	got, gaps := regionReads(t, ctx, slow, puts+1)
	if got+gaps != puts+1 || gaps == 0 {
		t.Errorf("the client that did not read got %d, and is told that it lacks %d, of %d", got, gaps, puts+1)
	}
	text := metricsOf(t, at)
	if dropped := regexp.MustCompile(`\nordergrid_stream_dropped_total (\d+)\n`).FindStringSubmatch(text); dropped == nil || dropped[1] != strconv.Itoa(gaps) || !strings.Contains(text, "\nordergrid_stream_unpublished_total 0\n") {
		t.Errorf("%v are counted as dropped, told were %d, or messages were not published", dropped, gaps)
	}
}

// regionReads counts what comes, up to so many with those that are told to be missing.
func regionReads(t *testing.T, ctx context.Context, w *websocket.Conn, most int) (got, missing int) {
	t.Helper()
	for got+missing < most {
		_, b, err := w.Read(ctx)
		var m struct {
			Op     string
			Ranges []struct{ Count int }
		}
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		switch {
		case err != nil:
			t.Fatalf("behind %d messages and gaps of %d: %v", got, missing, err)
		case m.Op == "message":
			got++
		case m.Op == "gap":
			for _, r := range m.Ranges {
				missing += r.Count
			}
		default:
			t.Fatalf("%.200s", b)
		}
	}
	return got, missing
}

// A gateway that may not read regions says what it lacks, and accepts clients when it may.
func TestGridRegionsTakeRead(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.json")
	may := func(permissions string) {
		text := `{"rules": [{"subjects": [{"kind": "User", "name": "ordergrid-dev-client"}], "permissions": ["Submit", "Read", "Write", "Watch"]},
			{"subjects": [{"kind": "User", "name": "gateway"}], "permissions": [` + permissions + `]}]}`
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	may(`"Watch"`)
	regions := filepath.Join(dir, "regions.yaml")
	if err := os.WriteFile(regions, []byte("memory: 16Mi\nregions: [{name: positions}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testgrid.Run(t, "--tls", "--", "--authorization", rules, "--regions", regions)
	ca, err := pki.Load(filepath.Join(filepath.Dir(g.TLS.CA), "authority"), "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(dir, "gateway", pki.Identity{User: "gateway", ClientOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testgrid.Program(t, "order-gateway"), "--endpoint", strings.Join(g.Endpoints, ","), "--http", "127.0.0.1:0", "--websocket", "127.0.0.1:0", "--websocket-insecure-plain",
		"--tls-cert", f.Cert, "--tls-key", f.Key, "--tls-ca", f.CA, "--websocket-regions", "positions", "--websocket-publish-regions", "*", "--websocket-clients", regionPublisher(t, "region.positions.>", "region.>"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	at := &process{cmd: cmd}
	t.Cleanup(at.kill)
	stuck := time.AfterFunc(time.Minute, at.kill)
	lacks := false
	lines := bufio.NewScanner(out)
	for at.addr == "" && lines.Scan() {
		if !lacks && strings.Contains(lines.Text(), "--websocket-regions takes the permission Read in the grid") {
			lacks = true
			may(`"Watch", "Read"`)
		}
		if m := acceptedAt.FindStringSubmatch(lines.Text()); m != nil {
			at.addr = m[1]
		}
	}
	if stuck.Stop(); !lacks || at.addr == "" {
		t.Fatalf("what the gateway lacks is said: %v, then it accepts clients at %q", lacks, at.addr)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k := talkTo(t, ctx, at)
	k.says(`{"op":"subscribe","id":1,"topics":"region.*.>"}`, `"op":"subscribed"`)
	k.says(`{"op":"publish","id":2,"topic":"region.positions.a","data":1,"replicated":true}`, `"code":"not-stored"`, "the permissions Submit and Write")
}
