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
		"select * from regions.positions where key like 'k%' and version > 7 limit 3":                  true,
		"select expires, expires::text from regions.positions":                                         true,
		"explain select value from regions.positions where key = 'k'":                                  true,
		"select (value->>'at')::timestamptz from regions.positions":                                    false,
		"select key from regions.positions where (value->>'at')::timestamptz::text like '2026%'":       false,
		"select key from regions.positions order by (value->>'at')::timestamptz":                       false,
		"select max((value->>'at')::timestamptz) from regions.positions":                               false,
		"select key from regions.positions where expires < now()":                                      false,
		"insert into regions.positions values ('k', '1')":                                              false,
		"insert into regions.positions (key, value, expires) values ('k', '1', '2026-11-21 20:00')":    false,
		"update regions.positions set value = '2' where key = 'k'":                                     false,
		"delete from regions.positions where key = 'k' and value = '2'":                                false,
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
		if kept && got.Region != nil { // what is kept computes nothing, so it never asks for its environment
			got.Region, want.Region = withoutBinder(got.Region), withoutBinder(want.Region)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: bound later\n%+v, want\n%+v", text, got, want)
		}
	}
}

func withoutBinder(r *Region) *Region {
	c := *r
	c.b = nil
	return &c
}

// lately prepares a statement in the morning in UTC, and binds it in the evening in another zone.
func lately(t *testing.T, text string) *Plan {
	t.Helper()
	s, c, env := world(t)
	all, err := Parse(text, Bounds{}, c)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	env.Now = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	p, err := Prepare(all[0].Statement, s, env, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	evening := *env
	evening.Now, evening.Zone = env.Now.Add(8*time.Hour), time.FixedZone("east", 3*3600)
	plan, err := p.Bind(&evening, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return plan
}

// Lives are counted from when a statement is bound, and texts are times in the zone of then, of changes and of fields.
func TestPreparedStatementsHaveTheClockAndTheZoneOfTheirTime(t *testing.T) {
	row := func(value string, expires time.Time) []view.Value {
		return []view.Value{view.TextValue("k"), view.TextValue(value), view.IntValue(7), view.TimeValue(expires.UnixNano()), view.IntValue(1)}
	}
	const at = `{"at":"2026-11-21 20:00"}` // 17:00 UTC where it is bound
	ends := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"insert into regions.r (key, value, expires) values ('k', '1', now() + interval '1 hour')":       time.Hour,
		"insert into regions.r (key, value, expires) values ('k', '1', '2026-11-21 18:00+00')":           time.Hour,
		"insert into regions.r (key, value, expires) values ('k', '1', '2026-11-21 23:00')":              3 * time.Hour,
		"update regions.r set value = '2' where key = 'k'":                                               time.Hour,
		"update regions.r set expires = now() + interval '2 hours' where key = 'k'":                      2 * time.Hour,
		"update regions.r set expires = expires + interval '1 hour' where key = 'k'":                     2 * time.Hour,
		"update regions.r set expires = '2026-11-21 23:00' where key = 'k'":                              3 * time.Hour,
		"update regions.r set expires = (value->>'at')::timestamptz + interval '1 hour' where key = 'k'": time.Hour,
		"update regions.r set value = '2', expires = null where key = 'k'":                               -1,
	} {
		c := lately(t, text).Change
		e := Entry{}
		if c.Verb == Insert {
			e = c.Entries[0]
		} else if made, err := c.New(row(at, ends)); err != nil {
			t.Errorf("%s: %v", text, err)
		} else {
			e = made
		}
		if e.Life != want {
			t.Errorf("%s: it lives for %s, want %s", text, e.Life, want)
		}
	}
	c := lately(t, "update regions.r set value = (value->>'at')::timestamptz::text where key = 'k'").Change
	if e, err := c.New(row(at, ends)); err != nil || e.Value != "2026-11-21 20:00:00+03" {
		t.Errorf("a value that is made of a time: %q, %v", e.Value, err)
	}
	for text, want := range map[string]string{
		"select (value->>'at')::timestamptz from regions.r":                                           "2026-11-21 20:00:00+03",
		"select ((value->>'at')::timestamptz)::text from regions.r":                                   "2026-11-21 20:00:00+03",
		"select key from regions.r where (value->>'at')::timestamptz = '2026-11-21 17:00+00'":         "k",
		"select key from regions.r where (value->>'at')::timestamptz = now()":                         "k",
		"delete from regions.r where key = 'k' and (value->>'at')::timestamptz = now() returning key": "k",
	} {
		p := lately(t, text)
		has, err := p.Region.Has(row(at, ends))
		if err != nil || !has {
			t.Errorf("%s: no row, %v", text, err)
			continue
		}
		cells, _, err := p.Encode(nil, nil, row(at, ends), []int16{0})
		if err != nil || string(cells[0]) != want {
			t.Errorf("%s: %q, %v, want %q", text, cells[0], err, want)
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
