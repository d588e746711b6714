package alerts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// row is the outcome of one alert.
type row struct {
	alert           alert
	how             string
	fired, resolved time.Duration // 0: did not
	problem         error
}

// resolveLimit is how long an alert may fire after its cause has ended.
const resolveLimit = 2 * time.Minute

// trial is one cause, and the alerts that have to fire for it and to resolve after it.
type trial struct {
	alerts []alert
	where  map[string]string // labels of all of them
	how    string
	limit  time.Duration // for firing; 0 is a minute

	cause, undo func(ctx context.Context) error
	problem     func() error // asked at the end; may be nil
}

func (t trial) run(ctx context.Context, o Options, server *prometheus.Server) (rows []row, err error) {
	early, err := firing(ctx, server, t.alerts, t.where)
	if err != nil {
		return nil, err
	}
	if len(early) > 0 {
		return nil, fmt.Errorf("%v fires before its condition was caused", early)
	}
	began := time.Now()
	if err := t.cause(ctx); err != nil {
		return nil, fmt.Errorf("cause %v: %w", t.alerts, err)
	}
	fired := await(ctx, server, t.alerts, t.where, true, max(t.limit, time.Minute))
	ended := time.Now()
	if err := t.undo(ctx); err != nil {
		return nil, fmt.Errorf("end the cause of %v: %w", t.alerts, err)
	}
	var problem error
	if t.problem != nil {
		problem = t.problem()
	}
	resolved := await(ctx, server, t.alerts, t.where, false, resolveLimit)
	for i, a := range t.alerts {
		r := row{alert: a, how: t.how, problem: problem}
		if !fired[i].IsZero() {
			r.fired = fired[i].Sub(began)
		}
		if !resolved[i].IsZero() {
			r.resolved = max(resolved[i].Sub(ended), time.Millisecond)
		}
		o.Say("%v fired after %v, resolved after %v", a, r.fired.Round(100*time.Millisecond), r.resolved.Round(100*time.Millisecond))
		rows = append(rows, r)
	}
	return rows, nil
}

// firing are those of the alerts that fire now, with the labels of where.
func firing(ctx context.Context, server *prometheus.Server, wanted []alert, where map[string]string) (found []alert, err error) {
	now, err := server.Alerts(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range wanted {
		if slices.ContainsFunc(now, func(p prometheus.Alert) bool {
			return p.State == "firing" && p.Labels["alertname"] == a.name && has(p.Labels, a.labels) && has(p.Labels, where)
		}) {
			found = append(found, a)
		}
	}
	return found, nil
}

func has(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// await waits until each of the alerts fires, or none does any more, and says
// when that was; a zero time: not within the limit.
func await(ctx context.Context, server *prometheus.Server, wanted []alert, where map[string]string, fires bool, limit time.Duration) []time.Time {
	when, left := make([]time.Time, len(wanted)), len(wanted)
	for end := time.Now().Add(limit); left > 0 && time.Now().Before(end) && ctx.Err() == nil; _ = clock.Wait(ctx, 200*time.Millisecond) {
		now, err := firing(ctx, server, wanted, where)
		if err != nil {
			continue // no answer is inconclusive
		}
		for i, a := range wanted {
			is := slices.ContainsFunc(now, func(b alert) bool { return a.String() == b.String() })
			if when[i].IsZero() && is == fires {
				when[i] = time.Now()
				left--
			}
		}
	}
	return when
}
