package host

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTakeOnThisMachine(t *testing.T) {
	a, err := Take([]int{os.Getpid(), 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(50 * time.Millisecond); time.Now().Before(deadline); {
	}
	b, err := Take([]int{os.Getpid(), 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	u := Between(a, b, true)
	if a.Total <= 0 || a.Busy <= 0 || b.Own <= a.Own || u.Elapsed <= 0 || u.Cores < 1 || u.Foreign < 0 {
		t.Errorf("%+v\n%+v\n%+v", a, b, u)
	}
}

func TestBetween(t *testing.T) {
	a := Sample{At: time.Unix(0, 0), Pressure: 0}
	b := Sample{
		At: time.Unix(10, 0), Total: 20 * time.Second, Busy: 12 * time.Second, Steal: time.Second,
		Pressure: 3 * time.Second, Own: 4 * time.Second, Others: 5 * time.Second,
	}
	u := Between(a, b, true)
	if u.Busy != 60 || u.Steal != 5 || u.Pressure != 30 || u.Own != 20 || u.Foreign != 15 {
		t.Errorf("%+v", u)
	}
	if u := Between(a, b, false); u.Foreign != -1 {
		t.Errorf("foreign use is reported without the processes: %v", u.Foreign)
	}
	b.Pressure = -1
	if u := Between(a, b, true); u.Pressure != -1 {
		t.Errorf("pressure is reported without the file: %v", u.Pressure)
	}
	if u := Between(a, a, true); u.Busy != 0 || u.Foreign != -1 {
		t.Errorf("no time has passed: %+v", u)
	}
}

func TestParsers(t *testing.T) {
	var s Sample
	// What ticks found busy counts for nothing: two cores, 5 s, of which 0.9 s were idle and 0.8 s taken away.
	for _, ticks := range []string{"10 20 30", "400 20 30"} {
		if err := s.cpu([]byte("cpu  "+ticks+" 40 50 60 70 80 5 5\ncpu0 1\ncpu1 1\nintr 9\n"), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if s.Busy != 8300*time.Millisecond || s.Steal != 800*time.Millisecond || s.Total != 10*time.Second {
			t.Errorf("%+v", s)
		}
	}
	for _, bad := range []string{"", "cpu", "cpu 1 2 3", "cpu a b c d e f g h\ncpu0 1", "intr 1 2 3 4 5 6 7 8 9", "cpu  10 20 30 40 50 60 70 80 5 5\nintr 9\n"} {
		if err := s.cpu([]byte(bad), time.Second); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
	if p := pressure([]byte("some avg10=1.00 avg60=0.00 avg300=0.00 total=2500\nfull total=9\n")); p != 2500*time.Microsecond {
		t.Errorf("pressure %v", p)
	}
	for _, bad := range []string{"", "some", "some total=x", "full total=3", "some total=-4"} {
		if p := pressure([]byte(bad)); p != -1 {
			t.Errorf("%q gives %v", bad, p)
		}
	}
	if d := processTime([]byte("12 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0")); d != 2*time.Second {
		t.Errorf("process time %v", d)
	}
	for _, bad := range []string{"", "12 (a", "12 (a) S 1", "12 (a) S 1 2 3 4 5 6 7 8 9 10 x y"} {
		if d := processTime([]byte(bad)); d != 0 {
			t.Errorf("%q gives %v", bad, d)
		}
	}
	if m, v := cpuinfo("model name\t: Fast CPU\nflags\t\t: fpu hypervisor sse\n"); m != "Fast CPU" || !v {
		t.Errorf("%q %v", m, v)
	}
	if m, v := cpuinfo(""); m != "unknown" || v {
		t.Errorf("%q %v", m, v)
	}
	if n := memory("MemTotal:       2048 kB\n", "MemTotal:"); n != 2 {
		t.Errorf("memory %d", n)
	}
}

func TestScrape(t *testing.T) {
	body := "# HELP x\nprocess_cpu_seconds_total 12.5\ngo_gc_duration_seconds{quantile=\"0\"} 1\ngo_gc_duration_seconds_count 7\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	defer srv.Close()
	s, err := Scrape(context.Background(), srv.URL)
	if err != nil || s.CPU != 12.5 || s.Collections != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	body = "process_cpu_seconds_total NaN\ngo_gc_duration_seconds_count -1\n" + strings.Repeat("x", 2<<20)
	if s, err := Scrape(context.Background(), srv.URL); err != nil || s.CPU >= 0 || s.Collections >= 0 {
		t.Errorf("hostile metrics: %+v, %v", s, err)
	}
	if _, err := Scrape(context.Background(), srv.URL+"/elsewhere"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v", err)
	}
}

func TestManifestKnowsThisMachine(t *testing.T) {
	m := Manifest()
	if m.Kernel == "" || m.CPU == "" || m.Cores < 1 || m.MemoryMiB < 1 || m.GoVersion == "" || m.Version == "" {
		t.Errorf("%+v", m)
	}
}
