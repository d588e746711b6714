package nodestatus_test

import (
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
	// One clock, read here, there, and here again.
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

// What is far from the clock of the asker, or of the kernel, is seen.
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
		t.Error("a kernel that does not tell is known")
	}
}

// pages are the readers of each page, with an answer that is good.
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
				`{"pod":"p","bootID":"b","connections":[` + strings.Repeat(`{},`, 300) + `{}],"changes":[` + strings.Repeat(`{},`, 300) + `{}]}`} {
				if err := ask(body); err == nil && !strings.HasPrefix(body, `{"pod":"p"`) {
					t.Errorf("%.60q is taken for the page", body)
				}
			}
		})
	}
	many := `{"pod":"p","bootID":"b","connections":[` + strings.Repeat(`{},`, 300) + `{}],"changes":[` + strings.Repeat(`{},`, 300) + `{}]}`
	for _, name := range []string{"peers", "takeovers"} {
		if err := pages[name].get(t, &http.Client{Transport: answers(many)}, "node:9400"); err == nil {
			t.Errorf("%s: more than a node has is taken", name)
		}
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
