package regionfile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/limits"
)

func TestParse(t *testing.T) {
	want := &File{Memory: 64 << 20, Regions: []Region{{Name: "positions"}, {Name: "quotes", MaxBytes: 1 << 20, Life: 10 * time.Minute, Source: &limits.Source{Grid: "g", Object: "r", SinceMs: 5, Generation: 2}}}}
	for _, text := range []string{"memory: 64Mi\nregions:\n- name: positions\n- {name: quotes, maxBytes: 1Mi, life: 10m, source: {grid: g, object: r, sinceMs: 5, generation: 2}}\n", want.Text()} {
		f, err := Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(f, want) {
			t.Errorf("%s: read %+v, %v", text, f, err)
		}
	}
	if f, err := Parse([]byte((&File{}).Text())); err != nil || f.Memory != 0 || len(f.Regions) != 0 {
		t.Errorf("an empty file is %+v, %v", f, err)
	}
	for text, want := range map[string]string{
		"memory: -1":                           `memory: value "-1"`,
		"regions: [{name: a, maxBytes: much}]": `a.maxBytes: value "much"`,
		"regions: [{name: a, life: 10}]":       `a.life: value "10"`,
		"regions: [{name: a, life: -1s}]":      `a.life: value "-1s"`,
		"regions: [{name: a, max: 1}]":         `unknown field`,
		strings.Repeat(" ", Most+1):            `allowed: at most 1048576`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error is %v, want one with %q", text, err, want)
		}
	}
}
