package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/node"
)

func TestRegionFlags(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "regions.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	cfg := node.Config{}
	f := regionFlags{file: file("memory: 64Mi\nregions:\n- name: positions\n- {name: quotes, maxBytes: 1Mi, life: 10m}\n")}
	if err := f.apply(&cfg); err != nil {
		t.Fatal(err)
	}
	if x := cfg.Regions; x.Memory != 64<<20 || len(x.Regions) != 2 || x.Regions[1].Name != "quotes" || x.Regions[1].MaxBytes != 1<<20 || x.Regions[1].LifeNs != int64(10*time.Minute) {
		t.Errorf("read %+v", x)
	}
	if _, digest, err := cfg.ReadRegions(); err != nil || len(digest) != 64 {
		t.Errorf("digest %q, %v", digest, err)
	}
	const sourced = "regions:\n- {name: positions, source: {grid: g, object: r, sinceMs: 5, generation: 2}}\n"
	if err := os.WriteFile(f.file+".sourced", []byte(sourced), 0o600); err != nil {
		t.Fatal(err)
	}
	if x, _, err := cfg.ReadRegions(); err != nil || len(x.Regions) != 1 || x.Regions[0].Source.String() != "generation 2 of r, since 5" {
		t.Errorf("with a file of the operator: %+v, %v", x, err)
	}
	if err := os.Remove(f.file + ".sourced"); err != nil {
		t.Fatal(err)
	}
	f.memory = "1Gi"
	if err := f.apply(&cfg); err != nil || cfg.Regions.Memory != 1<<30 {
		t.Errorf("read %+v, %v; the flag wins", cfg.Regions, err)
	}
	if cfg = (node.Config{}); (&regionFlags{}).apply(&cfg) != nil || cfg.Regions != nil {
		t.Error("regions without a file")
	}
	for want, f := range map[string]regionFlags{
		"memory is not set":              {file: file("regions: []")},
		`memory: value "-1"`:             {file: file("memory: -1")},
		`--regions-memory: value "much"`: {file: file("regions: []"), memory: "much"},
		"with --regions only":            {memory: "1Gi"},
		"no such file":                   {file: "/nowhere"},
	} {
		if err := f.apply(&cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want one with %q", f, err, want)
		}
	}
}
