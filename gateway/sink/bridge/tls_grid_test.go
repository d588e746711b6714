package bridge_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/sink/bridge"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// guarded starts a grid with TLS in which each user may do what its list says.
func guarded(t *testing.T, args []string, may map[string][]string) *testgrid.Grid {
	t.Helper()
	type subject struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	}
	type rule struct {
		Subjects    []subject `json:"subjects"`
		Permissions []string  `json:"permissions"`
	}
	var list struct {
		Rules []rule `json:"rules"`
	}
	for user, permissions := range may {
		list.Rules = append(list.Rules, rule{[]subject{{"User", user}}, permissions})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return testgrid.Run(t, append(append([]string{"--tls"}, args...), "--authorization", file)...)
}

// issued is a certificate of a user by the authority of a grid's clients.
func issued(t *testing.T, g *testgrid.Grid, user string) pki.Files {
	t.Helper()
	ca, err := pki.Load(filepath.Join(filepath.Dir(g.TLS.CA), "authority"), "")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Save(t.TempDir(), user, pki.Identity{User: user, ClientOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func flags(prefix string, f pki.Files) []string {
	return []string{"--" + prefix + "tls-cert", f.Cert, "--" + prefix + "tls-key", f.Key, "--" + prefix + "tls-ca", f.CA}
}

// TestGridTLS: a bridge between two grids that ask everyone for a certificate, with one of its own for each and no more rights
// than it is said to need, while primaries of both are killed, and the bridge.
func TestGridTLS(t *testing.T) {
	dev, args := []string{"Submit", "Read", "Admin", "Watch"}, both(t)
	g := guarded(t, args, map[string][]string{"ordergrid-dev-client": dev, "source": {"Watch", "Sink"}})
	other := guarded(t, args, map[string][]string{"ordergrid-dev-client": dev, "target": {"Read", "Write", "Submit"}, "reader": {"Read", "Submit"}})
	c, to := downstream.Dial(t, g), downstream.Dial(t, other)
	source, target := issued(t, g, "source"), issued(t, other, "target")
	begin := func(to pki.Files) *downstream.Sink {
		return downstream.StartSink(t, g, "bridge", "bridge", append(append(flags("", source), flags("to-", to)...), "--to", strings.Join(other.Endpoints, ","), "--to-grid", "dev")...)
	}
	s := begin(target)
	acked, last := downstream.KillUnderLoad(t, c, g, 2, 100, func(i int) {
		if i == 0 {
			downstream.WaitForCopies(t, to)
			downstream.KillPrimary(t, to, other, to.Table()[0].ID)
			return
		}
		s.Kill()
		s = begin(target)
	})
	awaits(t, to, last).check(t, acked)
	s.Stop()
	// Without a right to write nothing is put, and it is said what is missing.
	reader := issued(t, other, "reader")
	cfg := client.Config{Endpoints: other.Endpoints, Grid: "dev", DialTimeout: time.Minute, RequestTimeout: time.Minute, TLS: client.TLSFiles(client.PEMFiles{Cert: reader.Cert, Key: reader.Key, CA: reader.CA})}
	may, err := client.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	x, err := bridge.New(bridge.Options{Source: c, To: may, Grid: "dev", Sink: "another", Region: bridge.DefaultRegion})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close() //nolint:errcheck // it never fails
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := x.Open(ctx, 0); err == nil || !strings.Contains(err.Error(), "permissions Read, Write and Submit") {
		t.Errorf("a client without Write: %v", err)
	}
	// A certificate of the other grid's authority is none here.
	cfg.TLS, cfg.DialTimeout = client.TLSFiles(client.PEMFiles{Cert: source.Cert, Key: source.Key, CA: target.CA}), 2*time.Second
	if stranger, err := client.Dial(t.Context(), cfg); err == nil {
		_ = stranger.Close()
		t.Error("a certificate of another authority was accepted")
	}
}
