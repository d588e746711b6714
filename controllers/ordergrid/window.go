package ordergrid

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // the operator's image has no database of time zones

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// windowAt reports whether spec.rebalance.window is open at a time, and if it is not, when it opens. Start and end are
// local times of its time zone, so a night with a clock change is an hour shorter or longer.
func windowAt(w *api.RebalanceWindow, now time.Time) (open bool, next time.Time, err error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return false, next, fmt.Errorf("spec.rebalance.window.timeZone: %q is not in the database of time zones; use a name such as Europe/Zurich, or leave it out for UTC", w.TimeZone)
	}
	start, err := time.Parse("15:04", w.Start)
	if err != nil {
		return false, next, fmt.Errorf("spec.rebalance.window.start: %q is not a time of day from 00:00 to 23:59; write it as 22:00", w.Start)
	}
	today := now.In(zone)
	for day := -1; day <= 7; day++ { // what opened yesterday may be open
		opens := time.Date(today.Year(), today.Month(), today.Day()+day, start.Hour(), start.Minute(), 0, 0, zone)
		if len(w.Days) > 0 && !slices.Contains(w.Days, api.Weekday(opens.Weekday().String())) {
			continue
		}
		closes := time.Date(opens.Year(), opens.Month(), opens.Day(), start.Hour(), start.Minute(), int(w.Duration.Seconds()), 0, zone)
		switch {
		case opens.After(now):
			return false, opens, nil
		case closes.After(now):
			return true, next, nil
		}
	}
	return false, next, fmt.Errorf("spec.rebalance.window.days: %q are not days of the week; allowed are Monday to Sunday", w.Days)
}
