package load

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// What no row can be loaded without ends a load at once, with what is missing, and not as a grid that takes no rows for now.
func TestMissingPermissionEndsALoad(t *testing.T) {
	const rules = `{"rules": [
		{"subjects": [{"kind": "User", "name": "ordergrid-dev-client"}], "permissions": ["Submit", "Read", "Write", "Watch"]},
		{"subjects": [{"kind": "User", "name": "reader"}], "permissions": ["Submit", "Read"]},
		{"subjects": [{"kind": "User", "name": "writer"}], "permissions": ["Submit", "Write"]},
		{"subjects": [{"kind": "User", "name": "watcher"}], "permissions": ["Watch"]}]}`
	g := testgrid.Run(t, "--tls", "--", "--authorization", write(t, "rules.json", rules), "--regions", write(t, "regions.yaml", "memory: 64Mi\nregions:\n- name: positions\n"))
	all := positions(3000)
	name := write(t, "a.csv", positionsCSV(all))
	as := map[string]*client.Client{}
	for _, user := range []string{"reader", "writer", "watcher"} {
		as[user] = dialAs(t, g, user)
	}
	if n, err := into(t, t.Context(), as["writer"].Region("positions"), Puts{}, name, positionEntries, Options{}); err != nil || n.Accepted != 3000 {
		t.Fatalf("a load that reads nothing: %+v, %v", n, err)
	}
	for _, c := range []struct{ user, region, what string }{
		{"reader", "positions", "a change without Write"},
		{"writer", "positions", "a key that has a value without Read"},
		{"watcher", "positions", "a session without Submit"},
		{"writer", "nowhere", "a region that is not there"},
	} {
		o := Options{State: filepath.Join(t.TempDir(), "state"), Patience: time.Minute}
		begun := time.Now()
		n, err := into(t, t.Context(), as[c.user].Region(c.region), Puts{}, name, positionEntries, o)
		want := client.ErrNotPermitted
		if c.region == "nowhere" {
			want = client.ErrRegionUnknown
		}
		if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), "the permissions Submit, Write and Read") || strings.Contains(fmt.Sprint(err), "was tried for") || n.Rows == 3000 {
			t.Errorf("%s: %+v, %v", c.what, n, err)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s: it took %v to end", c.what, took)
		}
	}
	begun := time.Now()
	_, err := loaded(t, t.Context(), as["watcher"], write(t, "o.csv", csvOf(records(100))), Options{Patience: time.Minute})
	if !errors.Is(err, client.ErrNotPermitted) || !strings.Contains(err.Error(), "the permissions Submit and Read") || time.Since(begun) > 20*time.Second {
		t.Errorf("orders without Submit, after %v: %v", time.Since(begun), err)
	}
}

// dialAs connects with the certificate of a user.
func dialAs(t *testing.T, g *testgrid.Grid, user string) *client.Client {
	t.Helper()
	ca, err := pki.Load(filepath.Join(filepath.Dir(g.TLS.CA), "authority"), "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(t.TempDir(), user, pki.Identity{User: user, ClientOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, DialTimeout: time.Minute, RequestTimeout: time.Minute,
		TLS: client.TLSFiles(client.PEMFiles{Cert: f.Cert, Key: f.Key, CA: f.CA})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
