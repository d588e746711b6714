package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
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
	names := []string{published.LoadScenario}
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
		Wrong + " sink":  func(c *certificate.Certificate) { c.Ledger.Downstream = 99 },
		Invalid:          func(c *certificate.Certificate) { c.Verdict = certificate.Invalid },
	} {
		c, r := right, &Report{Verdict: Pass}
		change(&c)
		judgeDurability(r, 1, &c)
		if !strings.HasPrefix(string(want), string(r.Verdict)) {
			t.Errorf("%s: verdict %s: %v", want, r.Verdict, r.Reasons)
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
	if _, err := find("/nonexistent/grid-node", "grid-node"); err == nil {
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
	for name, n := range map[string][3]int{
		"durability": sizes(func(s published.Scenario, m scenario.Mode) (int, error) {
			p, err := durabilityOf(s, m)
			return p.Rate * p.TotalS, err
		}, published.DurabilityScenario),
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
