package system

import (
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// What a machine has no room for is said before anything starts, with what to change.
func TestSessionsFit(t *testing.T) {
	exact := sessionsOf(scenario.Exact)
	if exact.most() != 120_000 || exact.gateways != 12 {
		t.Errorf("%+v", exact)
	}
	for _, c := range []struct {
		hard uint64
		mib  int64
		want string
	}{
		{200_000, 64_000, ""},
		{200_000, 0, ""},     // not known
		{20_000, 64_000, ""}, // by threads
		{8_000, 64_000, "ulimit -Hn 11400"},
		{200_000, 4_000, "MiB available"},
	} {
		if err := exact.fits(c.hard, c.mib); err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d descriptors, %d MiB: %v, want %q", c.hard, c.mib, err, c.want)
		}
	}
	for _, m := range []scenario.Mode{scenario.Scaled, scenario.Quick} {
		p := sessionsOf(m)
		if err := p.fits(20_000, 16_000); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// Each verdict has its reason.
func TestSessionsShape(t *testing.T) {
	p := sessionsPlan{users: []int{10, 20}, gateways: 1, rate: 100}
	driven := func(perS float64, took time.Duration) *fixdoor.Driven {
		return &fixdoor.Driven{PerS: perS, Took: []time.Duration{took}}
	}
	good := func() []*crowded {
		return []*crowded{{10, driven(100, time.Millisecond), driven(5000, 0), 1000}, {20, driven(100, time.Millisecond), driven(4900, 0), 1050}}
	}
	for _, c := range []struct {
		name   string
		change func(all []*crowded)
		want   Verdict
		why    string
	}{
		{"as it has to be", func([]*crowded) {}, Pass, ""},
		{"slower", func(all []*crowded) { all[1].fast.PerS = 4700 }, Fail, "4700 orders/s of 20 users"},
		{"larger", func(all []*crowded) { all[1].kib = 1070 }, Fail, "7.0 KiB"},
		{"later", func(all []*crowded) { all[0].rate.Took[0] = 11 * time.Millisecond }, Fail, "p99 11.0"},
		{"not reported", func(all []*crowded) { all[1].rate.PerS = 80 }, Fail, "80 orders/s reported of 100"},
		{"the probe itself", func(all []*crowded) { all[1].rate.Busy, all[1].rate.Late = 0.9, time.Second }, Invalid, "90 % of its core"},
	} {
		all, r := good(), &Report{Verdict: Pass}
		c.change(all)
		sessionsShape(r, p, all)
		if r.Verdict != c.want || !strings.Contains(strings.Join(r.Reasons, "; "), c.why) {
			t.Errorf("%s: %s %v, want %s %s", c.name, r.Verdict, r.Reasons, c.want, c.why)
		}
	}
}
