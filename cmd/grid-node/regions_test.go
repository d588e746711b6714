package main

import (
	"strings"
	"testing"
	"time"
)

func TestParseRegions(t *testing.T) {
	x, err := parseRegions([]byte("memory: 64Mi\nregions:\n- name: positions\n- {name: quotes, maxBytes: 1Mi, life: 10m}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if x.Memory != 64<<20 || len(x.Regions) != 2 || x.Regions[1].Name != "quotes" || x.Regions[1].MaxBytes != 1<<20 || x.Regions[1].LifeNs != int64(10*time.Minute) {
		t.Errorf("read %+v", x)
	}
	for text, want := range map[string]string{
		"regions: []": `memory: value ""`,
		"memory: -1":  `memory: value "-1"`,
		"memory: 1Mi\nregions: [{name: a, life: 10}]":  `a.life: value "10"`,
		"memory: 1Mi\nregions: [{name: a, life: -1s}]": `a.life: value "-1s"`,
		"memory: 1Mi\nregions: [{name: a, max: 1}]":    `unknown field`,
	} {
		if _, err := parseRegions([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want one with %q", text, err, want)
		}
	}
}
