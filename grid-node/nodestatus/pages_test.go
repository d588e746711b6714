package nodestatus_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

func TestClock(t *testing.T) {
	srv := httptest.NewServer(nodestatus.ServeClock("g-s0-0", "00000000000000aa"))
	defer srv.Close()
	r, err := nodestatus.GetClock(t.Context(), nodestatus.NewClient(10*time.Second, nil), strings.TrimPrefix(srv.URL, "http://"))
	if err != nil || r.Pod != "g-s0-0" || r.BootID != "00000000000000aa" {
		t.Fatalf("%+v, %v", r, err)
	}
	// One clock, read here, in the server, and here again.
	if offset, uncertainty := r.Offset(); offset.Abs() > uncertainty {
		t.Errorf("a clock is %v from itself, plus or minus %v", offset, uncertainty)
	}
	if runtime.GOOS == "linux" {
		// The reading of the kernel comes after that of the process, within the request.
		for name, f := range map[string]func() (time.Duration, bool){"wall": r.Shift, "monotonic": r.MonotonicShift} {
			if shift, known := f(); !known || shift > time.Millisecond || shift < -r.Took-time.Second {
				t.Errorf("%s clock: %v from the kernel's (%t), the request took %v", name, shift, known, r.Took)
			}
		}
	}
}

// A large offset from the client's clock, or the kernel's, is detected.
func TestShiftedClock(t *testing.T) {
	c := nodestatus.Clock{UnixNs: 1_000_000_000, KernelUnixNs: 600_000_000, MonotonicNs: 5, KernelMonotonicNs: 7}
	if d, known := c.Shift(); d != 400*time.Millisecond || !known {
		t.Errorf("%v, %t", d, known)
	}
	if d, known := c.MonotonicShift(); d != -2 || !known {
		t.Errorf("%v, %t", d, known)
	}
	r := nodestatus.Reading{Clock: c, Asked: time.Unix(0, 100_000_000), Took: 20 * time.Millisecond}
	if offset, u := r.Offset(); offset != 890*time.Millisecond || u != 10*time.Millisecond {
		t.Errorf("%v plus or minus %v", offset, u)
	}
	if _, known := (&nodestatus.Clock{UnixNs: 1}).Shift(); known {
		t.Error("an unavailable kernel clock counts as known")
	}
}

// pages are the readers of each page, with a valid answer.
var pages = map[string]struct {
	good string
	get  func(t *testing.T, c *http.Client, address string) error
}{
	"peers": {`{"pod":"p","bootID":"b","connections":[{"kind":"peer","pod":"q","tcp":{"rttNs":5}}]}`, func(t *testing.T, c *http.Client, address string) error {
		p, err := nodestatus.GetPeers(t.Context(), c, address)
		if err == nil && (len(p.To("q", "")) != 1 || len(p.To("q", "bulk"))+len(p.To("r", "")) != 0 || p.To("q", "peer")[0].TCP.RTTNs != 5) {
			t.Errorf("%+v", p)
		}
		return err
	}},
	"clock": {`{"pod":"p","bootID":"b","unixNs":1}`, func(t *testing.T, c *http.Client, address string) error {
		_, err := nodestatus.GetClock(t.Context(), c, address)
		return err
	}},
	"takeovers": {`{"pod":"p","bootID":"b","changes":[{"epoch":3}]}`, func(t *testing.T, c *http.Client, address string) error {
		_, err := nodestatus.GetTakeovers(t.Context(), c, address)
		return err
	}},
	"books": {`{"pod":"p","bootID":"b","books":[{"symbol":"IBM","state":"open"}],"calendar":{"phase":"open"}}`, func(t *testing.T, c *http.Client, address string) error {
		b, err := nodestatus.GetBooks(t.Context(), c, address)
		if err == nil && len(b.Books) > 0 && (b.Books[0].State != "open" || b.Calendar.Phase != "open") {
			t.Errorf("%.200v", b)
		}
		return err
	}},
	"arbiter": {`{"pod":"p","bootID":"b","reachable":true}`, func(t *testing.T, c *http.Client, address string) error {
		_, err := nodestatus.GetArbiter(t.Context(), c, address)
		return err
	}},
}

func TestPagesRefuseWhatIsNone(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			ask := func(body string) error {
				return page.get(t, &http.Client{Transport: answers(body)}, "node:9400")
			}
			if err := ask(page.good); err != nil {
				t.Fatal(err)
			}
			for _, body := range []string{``, `{}`, `[]`, `null`, `<html>`, `{"status":"ok"}`, `{"pod":5}`, `{"pod":"p","bootID":"` + strings.Repeat("x", 1<<20) + `"}`,
				`{"pod":"p","bootID":"b","connections":[` + strings.Repeat(`{},`, 300) + `{}],"changes":[` + strings.Repeat(`{},`, 4200) + `{}]}`} {
				if err := ask(body); err == nil && !strings.HasPrefix(body, `{"pod":"p"`) {
					t.Errorf("%.60q is taken for the page", body)
				}
			}
		})
	}
	many := `{"pod":"p","bootID":"b","connections":[` + strings.Repeat(`{},`, 300) + `{}],"changes":[` + strings.Repeat(`{},`, 4200) + `{}]}`
	for _, name := range []string{"peers", "takeovers"} {
		if err := pages[name].get(t, &http.Client{Transport: answers(many)}, "node:9400"); err == nil {
			t.Errorf("%s: more than a node has is taken", name)
		}
	}
}

// A node with the maximum of partitions, names and numbers stays within the limit.
func TestPagesOfManyPartitions(t *testing.T) {
	const big = 1<<64 - 1
	pod := strings.Repeat("p", 63)
	member := pod + "/00000000000000aa"
	text := strings.Repeat("c", 64)
	members := []string{member, member, member, member}
	n := nodestatus.Node{Grid: text, Pod: pod, BootID: "00000000000000aa"}
	c := nodestatus.Takeovers{Pod: pod, BootID: n.BootID}
	m := nodestatus.Memory{Pod: pod, BootID: n.BootID}
	for range nodestatus.MaxPartitions {
		n.Partitions = append(n.Partitions, nodestatus.Partition{Record: pod, Partition: "p1023", Member: member, BootID: n.BootID, Role: "claiming",
			Suspended: true, Draining: true, Epoch: big, Lineage: big, ChangeID: text, Primary: member, InSync: members, LastSeq: big, FreedSeq: big,
			Bytes: 1<<63 - 1, CommitSeq: big, CursorSeq: big, DataSeq: big, SinkSeq: big})
		for range 3 {
			m.Sinks = append(m.Sinks, nodestatus.Sink{Name: pod, Partition: "p1023", Seq: big, LagEntries: big, LagSeconds: 1e9, Error: strings.Repeat("e", 300)})
		}
	}
	for range nodestatus.MaxChanges {
		c.Changes = append(c.Changes, nodestatus.Change{Record: pod, Partition: "p1023", Member: member, ChangeID: text, Epoch: big, Lineage: big,
			Cause: nodestatus.CauseUnknown, Outcome: nodestatus.OutcomeOvertaken, Proposed: true, Attempts: 1 << 30, Role: "claiming", Primary: member,
			InSync: members, Lost: members[:2], Reset: true, SilentNs: 1 << 60, SuspectedAgoNs: 1 << 60, ProposedAgoNs: 1 << 60, AcceptedAgoNs: 1 << 60,
			ServingAgoNs: 1 << 60, FirstOrderAgoNs: 1 << 60})
	}
	answer := func(v any) *http.Client {
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Client{Transport: answers(body)}
	}
	if got, err := nodestatus.Get(t.Context(), answer(n), "node:9400"); err != nil || len(got.Partitions) != nodestatus.MaxPartitions || got.Partitions[1023].Bytes != 1<<63-1 {
		t.Errorf("/status: %v", err)
	}
	if got, err := nodestatus.GetTakeovers(t.Context(), answer(c), "node:9400"); err != nil || len(got.Changes) != nodestatus.MaxChanges {
		t.Errorf("/takeovers: %v", err)
	}
	if got, err := nodestatus.GetMemory(t.Context(), answer(m), "node:9400"); err != nil || len(got.Sinks) != len(m.Sinks) {
		t.Errorf("/memory: %v", err)
	}
}

func FuzzPages(f *testing.F) {
	for _, page := range pages {
		f.Add([]byte(page.good))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &http.Client{Transport: answers(body)}
		if p, err := nodestatus.GetPeers(t.Context(), c, "n:1"); err == nil && (p.Pod == "" || p.BootID == "") {
			t.Errorf("%+v", p)
		}
		if r, err := nodestatus.GetClock(t.Context(), c, "n:1"); err == nil && r.UnixNs == 0 {
			t.Errorf("%+v", r)
		}
		if p, err := nodestatus.GetTakeovers(t.Context(), c, "n:1"); err == nil && p.BootID == "" {
			t.Errorf("%+v", p)
		}
		if a, err := nodestatus.GetArbiter(t.Context(), c, "n:1"); err == nil && a.Pod == "" {
			t.Errorf("%+v", a)
		}
	})
}
