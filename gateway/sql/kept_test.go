package sql

import (
	"reflect"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// A statement that is the same at each Bind is planned once, and no other is: none has the time, the zone, a setting or
// the user of the one that prepared it.
func TestPlansThatAreKept(t *testing.T) {
	s, c, _ := world(t)
	env := func(zone *time.Location, hour int) *Env {
		return &Env{Zone: zone, Now: time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC), User: "u" + zone.String(), Database: "grid",
			Setting: func(string) (string, bool) { return "setting " + zone.String(), true }}
	}
	east := time.FixedZone("east", 3*3600)
	for text, kept := range map[string]bool{
		"select clordid, price from orders where clordid = 'A-1'":                                  true,
		"select * from orders where account in ('A', 'B') and price > 1.5 order by price limit 10": true,
		"select symbol, count(*) from orders where state = 'new' group by symbol order by 2 desc":  true,
		"explain select clordid from orders where clordid = 'A-1'":                                 true,
		"select key, value from regions.positions where key = 'k'":                                 true,
		"select 1, 'text', true":                                                                       true,
		"select received from orders where clordid = 'A-1'":                                            true,
		"select clordid from orders where clordid = $1":                                                false,
		"select clordid from orders where received > '2026-11-21 09:00'":                               false,
		"select clordid from orders where received > now() - interval '1 hour'":                        false,
		"select clordid from orders where account = current_user":                                      false,
		"select clordid from orders where account = current_setting('application_name')":               false,
		"select clordid from orders where received between 'today' and 'now'":                          false,
		"select clordid from orders where clordid = 'A-1' and received > timestamp '2026-11-21 09:00'": false,
	} {
		all, err := Parse(text, Bounds{}, c)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		p, err := Prepare(all[0].Statement, s, env(time.UTC, 9), nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if (p.plan != nil) != kept {
			t.Errorf("%s: kept: %t, want %t", text, p.plan != nil, kept)
		}
		var raw [][]byte
		if len(p.Params) > 0 {
			raw = [][]byte{[]byte("x")}
		}
		later := env(east, 17)
		got, err := p.Bind(later, raw, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := Prepare(all[0].Statement, s, later, nil)
		if err != nil {
			t.Fatal(err)
		}
		again.plan = nil
		want, err := again.Bind(later, raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.env != later {
			t.Errorf("%s: the zone of its answer is that of the statement that prepared it", text)
		}
		got.env, want.env = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: bound later\n%+v, want\n%+v", text, got, want)
		}
	}
}

// The answer of a kept plan is in the zone of the connection as it is then.
func TestKeptPlanHasTheZoneOfItsTime(t *testing.T) {
	s, c, env := world(t)
	all, err := Parse("select received from orders where clordid = 'A-1'", Bounds{}, c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(all[0].Statement, s, env, nil)
	if err != nil || p.plan == nil {
		t.Fatalf("%v, kept %v", err, p.plan)
	}
	at := []view.Value{view.TimeValue(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixNano())}
	for zone, want := range map[*time.Location]string{time.UTC: "2026-11-21 09:00:00+00", time.FixedZone("east", 3*3600): "2026-11-21 12:00:00+03"} {
		plan, err := p.Bind(&Env{Zone: zone, Now: env.Now, Setting: env.Setting}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		row, _, err := plan.Encode(nil, nil, at, []int16{0})
		if err != nil || string(row[0]) != want {
			t.Errorf("%s: %q, %v, want %q", zone, row[0], err, want)
		}
	}
}
