//go:build e2e

package drills

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

// exchange runs one suite once against a fresh grid that matches: nothing that sessions were told is lost, and both copies
// have executed what their logs say.
func exchange(name api.DrillSuite) func(context.Context, *field) {
	return func(ctx context.Context, f *field) {
		f.plant(ctx, "testdata/exchange.yaml")
		f.Must(f.Kube.Run(ctx, "wait", "ordergrid/"+grid, "-n", namespace, "--for=condition=InstrumentsLoaded", "--timeout=3m"))
		d, _ := f.run(ctx, string(name), string(name), "--repetitions", "1")
		f.sound(ctx, d)
		f.traded(d, name == api.SuiteKillInAuction)
	}
}

// traded checks what the certificate of a drill of a grid that matches has to have.
func (f *field) traded(d *api.FailoverDrill, auctions bool) {
	f.Helper()
	b, err := os.ReadFile(filepath.Join(f.out, d.Name, certificate.JSONFile))
	if err != nil {
		f.Fatal(err)
	}
	var c certificate.Certificate
	if err := json.Unmarshal(b, &c); err != nil {
		f.Fatal(err)
	}
	x := c.Executions
	if x == nil {
		f.Fatalf("%s: the certificate has no executions", d.Name)
	}
	f.Logf("%s: executions %+v", d.Name, x)
	if x.Lost+x.Different+x.Unsummed != 0 || x.Copies < 2 || x.Trades == 0 || x.Told < x.Orders || auctions && x.Auctions == 0 {
		f.Errorf("%s: a promise about executions was broken, or none were judged", d.Name)
	}
	if x.Control.Result != certificate.ControlPassed {
		f.Errorf("%s: the control of executions: %+v", d.Name, x.Control)
	}
}
