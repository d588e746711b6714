package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// days keeps a table ready for each day: those to come, and those of the orders that come. An order of a day without one
// goes to the default partition, so a failure here holds nothing up.
type days struct {
	o     *Options
	mu    sync.Mutex
	known map[int64]bool      // days since 1970 that have a table
	retry map[int64]time.Time // when to try again the others
	look  time.Time           // when to make those ahead again
}

const (
	aheadEvery = time.Hour
	retryAfter = time.Minute
	// maxNewDays bounds the tables made for one batch: times in a log may be anything.
	maxNewDays = 8
)

func (d *days) init(o *Options) {
	d.o, d.known, d.retry = o, map[int64]bool{}, map[int64]time.Time{}
}

// day of a time in nanoseconds since 1970.
func day(unixNs int64) int64 {
	n := unixNs / dayNs
	if unixNs%dayNs < 0 {
		n--
	}
	return n
}

// ahead makes the tables of today and the days to come, if it is time to.
func (d *days) ahead(ctx context.Context, conn *pgx.Conn) {
	now := time.Now()
	d.mu.Lock()
	due := now.After(d.look)
	if due {
		d.look = now.Add(aheadEvery)
	}
	d.mu.Unlock()
	if !due {
		return
	}
	for n := range int64(d.o.DaysAhead) + 1 {
		d.make(ctx, conn, day(now.UnixNano())+n)
	}
}

// cover makes the tables for the orders and executions of a batch.
func (d *days) cover(ctx context.Context, conn *pgx.Conn, b *sink.Batch) {
	d.ahead(ctx, conn)
	var last int64
	none, made := true, 0
	at := func(unixNs int64) {
		if !none && day(unixNs) == last {
			return
		}
		last, none = day(unixNs), false
		if made < maxNewDays && d.make(ctx, conn, last) {
			made++
		}
	}
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Kind.IsOrder() {
			at(e.TimeNs)
		}
	}
	for i := range b.Executions {
		at(b.Executions[i].Received.UnixNano())
	}
}

// make makes the table of a day, unless it is known to be there or failed a moment ago. It reports whether it asked.
func (d *days) make(ctx context.Context, conn *pgx.Conn, n int64) bool {
	d.mu.Lock()
	skip := d.known[n] || time.Now().Before(d.retry[n])
	d.mu.Unlock()
	if skip {
		return false
	}
	date := time.Unix(n*24*3600, 0).UTC()
	_, err := conn.Exec(ctx, "SELECT "+qualified(d.o.Schema, "make_day")+"($1)", date.Format(time.DateOnly))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.known[n] = true
		delete(d.retry, n)
		return true
	}
	d.retry[n] = time.Now().Add(retryAfter)
	d.o.Logger.Warn("there is no table for a day, its orders go to the default partition", "day", date.Format(time.DateOnly), "reason", explain("make_day", err))
	return true
}
