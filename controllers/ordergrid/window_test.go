package ordergrid

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestWindowAt: when moves may begin, in local time of the window's time zone.
func TestWindowAt(t *testing.T) {
	night := api.RebalanceWindow{Start: "22:00", Duration: metav1.Duration{Duration: 6 * time.Hour}}
	in := func(zone string, days ...api.Weekday) api.RebalanceWindow {
		w := night
		w.TimeZone, w.Days = zone, days
		return w
	}
	always := api.RebalanceWindow{Start: "00:00", Duration: metav1.Duration{Duration: 24 * time.Hour}, TimeZone: "Europe/Zurich"}
	for name, c := range map[string]struct {
		window api.RebalanceWindow
		now    string
		next   string // "open", or when it opens
	}{
		"before":                       {night, "2026-11-23T18:48:00Z", "2026-11-23T22:00:00Z"},
		"as it opens":                  {night, "2026-11-23T22:00:00Z", "open"},
		"after midnight":               {night, "2026-11-24T03:59:59Z", "open"},
		"as it closes":                 {night, "2026-11-24T04:00:00Z", "2026-11-24T22:00:00Z"},
		"in another zone":              {in("Europe/Zurich"), "2026-11-23T20:59:59Z", "2026-11-23T21:00:00Z"},
		"ahead of UTC's day":           {in("Pacific/Kiritimati"), "2026-11-23T08:30:00Z", "open"}, // 22:30 there
		"on its day":                   {in("UTC", "Monday"), "2026-11-23T23:00:00Z", "open"},
		"the night after its day":      {in("UTC", "Monday"), "2026-11-24T03:00:00Z", "open"},
		"not on that day":              {in("UTC", "Monday"), "2026-11-24T22:00:00Z", "2026-11-30T22:00:00Z"},
		"the next of two days":         {in("UTC", "Saturday", "Wednesday"), "2026-11-24T22:00:00Z", "2026-11-25T22:00:00Z"},
		"a week to go":                 {in("UTC", "Monday"), "2026-11-24T04:00:00Z", "2026-11-30T22:00:00Z"},
		"the clocks go back: longer":   {in("Europe/Zurich"), "2026-10-25T02:59:00Z", "open"},                 // 03:59 there, 7 h after 22:00
		"the clocks go forth: shorter": {in("Europe/Zurich"), "2026-03-29T02:00:00Z", "2026-03-29T20:00:00Z"}, // 04:00 there
		"whole days, 25 hours":         {always, "2026-10-25T22:59:59Z", "open"},
		"whole days, at midnight":      {always, "2026-10-25T23:00:00Z", "open"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		open, next, err := windowAt(&c.window, now)
		got := "open"
		if !open {
			got = next.UTC().Format(time.RFC3339)
		}
		if err != nil || got != c.next {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.next)
		}
	}
	for _, c := range []struct {
		window api.RebalanceWindow
		want   string
	}{
		{in("Europe/Zurihc"), `spec.rebalance.window.timeZone: "Europe/Zurihc" is not in the database of time zones; use a name such as Europe/Zurich`},
		{in("UTC", "Someday"), `spec.rebalance.window.days: ["Someday"] are not days of the week`},
		{api.RebalanceWindow{Start: "midnight"}, `spec.rebalance.window.start: "midnight" is not a time of day`},
	} {
		if open, _, err := windowAt(&c.window, time.Now()); open || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("open %v, %v, want %s", open, err, c.want)
		}
	}
}
