package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Each scenario against real processes, in its smallest size: every order is right, and the control was found.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("starts grids: run it without -short")
	}
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Mode: scenario.Quick, GridNode: testgrid.Program(t, "grid-node"), Plugin: testgrid.Program(t, "kubectl-ordergrid"), Link: testgrid.Program(t, "grid-link"), Gateway: testgrid.Program(t, "order-gateway"), Say: t.Logf}
	names := []string{published.LoadScenario, published.QueryScenario, published.UpdateScenario}
	if os.Getenv("ORDERGRID_SYSTEM_SCENARIOS") != "" { // make scenarios-check
		names = published.SystemScenarios()
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), d, name, o)
			if err != nil {
				t.Fatal(err)
			}
			var text, object bytes.Buffer
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			t.Log(text.String())
			if r.Verdict == Wrong || r.Verdict == Invalid && r.Disturbed == "" || r.Control == "" || len(r.Rows) < 2 {
				t.Errorf("verdict %s, control %q, %d rows: %v", r.Verdict, r.Control, len(r.Rows), r.Reasons)
			}
			again := &Report{}
			if err := r.WriteJSON(&object); err != nil || json.Unmarshal(object.Bytes(), again) != nil || again.Verdict != r.Verdict || len(again.Rows) != len(r.Rows) {
				t.Errorf("%v, %s", err, object.String())
			}
			for _, row := range r.Rows {
				if len(row) != len(r.Columns) {
					t.Errorf("row %v has %d cells, there are %d columns", row, len(row), len(r.Columns))
				}
			}
		})
	}
}

// What a certificate says of a run becomes the verdict.
func TestJudgeDurability(t *testing.T) {
	right := certificate.Certificate{Verdict: certificate.Pass, Replicas: 2, Orders: certificate.Orders{Created: 100, Acknowledged: 100}, Ledger: certificate.Ledger{Downstream: 100}}
	for want, change := range map[Verdict]func(*certificate.Certificate){
		Pass:             func(*certificate.Certificate) {},
		Wrong:            func(c *certificate.Certificate) { c.Ledger.Lost = 1 },
		Wrong + " twice": func(c *certificate.Certificate) { c.Ledger.Duplicated = 1 },
		Wrong + " guarantee": func(c *certificate.Certificate) {
			c.Verdict, c.Reasons, c.Violations = certificate.Violated, []string{"1 guarantees"}, []string{"order 7 went back"}
		},
		Wrong + " sink": func(c *certificate.Certificate) { c.Ledger.Downstream = 99 },
		Invalid:         func(c *certificate.Certificate) { c.Verdict = certificate.Invalid },
	} {
		c, r := right, &Report{Verdict: Pass}
		change(&c)
		judgeDurability(r, 1, &c)
		if !strings.HasPrefix(string(want), string(r.Verdict)) {
			t.Errorf("%s: verdict %s: %v", want, r.Verdict, r.Reasons)
		}
		if n := len(c.Violations); n > 0 && !strings.HasSuffix(r.Reasons[0], "1 guarantees; order 7 went back") {
			t.Errorf("reasons %v, want the violation", r.Reasons)
		}
	}
	// A worse verdict stays.
	r := &Report{Verdict: Pass}
	r.judge(Wrong, "lost")
	r.judge(Fail, "shape")
	if r.Verdict != Wrong || len(r.Reasons) != 2 {
		t.Errorf("%s: %v", r.Verdict, r.Reasons)
	}
}

func TestUnknownScenario(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), d, "stac-pair", Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("there are ", strings.Join(published.SystemScenarios(), ", "))) {
		t.Errorf("%v", err)
	}
	if _, err := devgrid.Find("/nonexistent/grid-node", "grid-node"); err == nil {
		t.Error("a program that is not there was found")
	}
}

// The parameters of each size can be read, and the larger one is larger.
func TestParameters(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	sizes := func(read func(published.Scenario, scenario.Mode) (int, error), name string) (n [3]int) {
		s, _ := d.Scenario(name)
		for i, mode := range []scenario.Mode{scenario.Quick, scenario.Scaled, scenario.Exact} {
			var err error
			if n[i], err = read(s, mode); err != nil {
				t.Fatalf("%s, %s: %v", name, mode, err)
			}
		}
		return n
	}
	ofCaches := func(name string) [3]int {
		return sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := cachesOf(d, s, m)
			return p.Rows * p.Caches, err
		}, name)
	}
	ofUsers := func(name string) [3]int {
		return sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := usersOf(s, m)
			return p.Users[0], err
		}, name)
	}
	for name, n := range map[string][3]int{
		"queries": ofCaches(published.QueryScenario), "types": ofCaches(published.TypesScenario), "clients": ofCaches(published.ClientScenario),
		"thin": ofUsers(published.ThinScenario), "ski": ofUsers(published.SkiScenario), "reads": ofUsers(published.ReadScenario),
		"workers": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, lasts, err := workersOf(s, m)
			return p.Executions * int(lasts), err
		}, published.AsyncScenario),
		"updates": ofCaches(published.UpdateScenario), "drops": ofCaches(published.DropScenario),
		"durability": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := durabilityOf(s, m)
			return p.Rate * p.TotalS, err
		}, published.DurabilityScenario),
		"failover": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := failoverOf(d, s, m)
			return p.Rows * p.TotalS, err
		}, published.FailoverScenario),
		"projection": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := projectionOf(s, m)
			return p.Rows, err
		}, published.ProjectionScenario),
		"topologies": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			_, n, err := topologiesOf(s, m)
			return n, err
		}, published.TopologiesScenario),
		"loads": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := loadsOf(s, m)
			return p.Rows[0], err
		}, published.LoadScenario),
		"roads": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := wanOf(s, m)
			return p.Rows * p.Caches, err
		}, published.WANScenario),
	} {
		if n[0] >= n[1] || n[1] >= n[2] {
			t.Errorf("%s: quick, scaled, exact are %v", name, n)
		}
	}
	if got := d.WANRate(100, 1000); got != 83 {
		t.Errorf("published rate of batch 100 and a delay of 1 s: %v, want 83", got)
	}
	if got := d.LoadRatio(3); got < 0.88 || got > 0.89 {
		t.Errorf("published rate of 3 M rows is %v of that of 1 M, want 0.89", got)
	}
}

// The rows of a cache are what questions count, however many there are.
func TestCacheRows(t *testing.T) {
	for _, p := range []published.Caches{{Rows: 10_000, Caches: 6}, {Rows: 20_000, Caches: 2}} {
		k := &caches{p: p}
		n := map[string]int{}
		for i := range p.Rows * p.Caches {
			fix := k.row(nil, i)
			if i < 100 {
				var o order.Order
				if err := order.Parse(fix, &o); err != nil {
					t.Fatalf("%v: %q", err, fix)
				}
			}
			field := func(tag string) string {
				_, v, _ := bytes.Cut(fix, []byte("\x01"+tag+"="))
				v, _, _ = bytes.Cut(v, []byte{1})
				return string(v)
			}
			cache := field("5001")
			for _, tag := range []string{"1", "64", "75", "5002", "5003"} {
				n[cache+" "+field(tag)]++
			}
			n["key "+field("11")]++
		}
		if len(n) == 0 || n["key "+rowID("A", 0, 0)] != 1 {
			t.Fatalf("keys: %d", n["key "+rowID("A", 0, 0)])
		}
		for name, want := range map[string]int{"P0 K": 914, "P0 D0": positionDates * p.Rows / perMillion, "A0 S0": 147, "A0 D0": tradeDates * p.Rows / perMillion, "A0 X": 1000} {
			if n[name] != want {
				t.Errorf("%+v: %s has %d rows, want %d", p, name, n[name], want)
			}
		}
		if got := n["P0 PA0"] + n["P0 PA1"] + n["P0 PA2"]; got != 914 {
			t.Errorf("accounts of positions: %d rows", got)
		}
		if got := n["A0 AA0"] + n["A0 AA1"] + n["A0 AA2"]; got != 37 {
			t.Errorf("accounts of activities: %d rows", got)
		}
	}
}

// each ends with the first error, and calls for every number else.
func TestEach(t *testing.T) {
	var n atomic.Int64
	if err := each(t.Context(), 1000, func(context.Context, int) error { n.Add(1); return nil }); err != nil || n.Load() != 1000 {
		t.Errorf("%d calls, %v", n.Load(), err)
	}
	bad := errors.New("bad")
	if err := each(t.Context(), 1000, func(_ context.Context, i int) error {
		if i == 7 {
			return bad
		}
		return nil
	}); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
}

// Users keep to their times, and all of them do something, also more than have requests under way otherwise.
func TestUsersDo(t *testing.T) {
	var seen [2 * together]atomic.Int64
	times, err := usersDo(t.Context(), len(seen), 300*time.Millisecond, 100*time.Millisecond, func(_ context.Context, u, _ int) error {
		seen[u].Add(1)
		return nil
	})
	if err != nil || len(times) != 3*len(seen) || !slices.IsSorted(times) {
		t.Errorf("%d times, want %d: %v", len(times), 3*len(seen), err)
	}
	for u := range seen {
		if n := seen[u].Load(); n != 3 {
			t.Errorf("user %d: %d times, want 3", u, n)
		}
	}
	bad := errors.New("bad")
	if _, err := usersDo(t.Context(), 3, time.Minute, 0, func(context.Context, int, int) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
}

// More users with registrations of their own cost orders; sharing them does not.
func TestThinShape(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	p := published.Users{Users: []int{100, 500}}
	for name, c := range map[string]struct {
		own, shared []float64
		want        Verdict
	}{
		"as published":     {[]float64{2000, 1000}, []float64{3000, 2900}, Pass},
		"own is flat":      {[]float64{2000, 2000}, []float64{3000, 3000}, Fail},
		"sharing it costs": {[]float64{2000, 1000}, []float64{3000, 2000}, Fail},
	} {
		r := &Report{Verdict: Pass}
		thinShape(d, r, p, map[bool][]float64{false: c.own, true: c.shared})
		if r.Verdict != c.want || len(r.Figures) != 1 || r.Figures[0].Published < 0.59 || r.Figures[0].Published > 0.61 {
			t.Errorf("%s: %s, %+v", name, r.Verdict, r.Figures)
		}
	}
	r := &Report{Verdict: Pass}
	r.judgeTold("one missing", &notified{tally: tally{expected: 5, received: 4, missing: 1}})
	if r.Verdict != Wrong {
		t.Errorf("one missing: %s", r.Verdict)
	}
}
