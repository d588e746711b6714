package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// Journal is about the journals of a node, all partitions together.
type Journal struct {
	Bytes    int64
	Limit    int64 // 0: what the disk has
	Lag      uint64
	Failures uint64
	Aside    uint64
	Full     bool
	Sync     histogram.Histogram
}

var (
	journalSync     = desc("journal_fsync_seconds", "Time of the fsync of one group of entries; absent without a journal.")
	journalBytes    = desc("journal_bytes", "Size of the journals of this node; absent without a journal.")
	journalLimit    = desc("journal_limit_bytes", "What the journals of this node may take, 0 for what the disk has; absent without a journal.")
	journalLag      = desc("journal_lag_entries", "Entries that are stored here and not yet durable; absent without a journal.")
	journalFailures = desc("journal_failures_total", "Groups that could not be written, because the disk was full or failed; the log has the reason. Absent without a journal.")
	journalAside    = desc("journal_set_aside_total", "Journals that this process refused and moved away, see REASON.txt in them; absent without a journal.")
	journalFull     = desc("journal_full", "1 while the journal has only its reserve left and new orders are refused; absent without a journal.")

	journalDescs = []*prometheus.Desc{journalSync, journalBytes, journalLimit, journalLag, journalFailures, journalAside, journalFull}
)

func (e emitter) journal(j *Journal) {
	if j == nil {
		return
	}
	e <- histogram.Metric(journalSync, &j.Sync)
	e.gauge(journalBytes, float64(j.Bytes))
	e.gauge(journalLimit, float64(j.Limit))
	e.gauge(journalLag, float64(j.Lag))
	e.counter(journalFailures, j.Failures)
	e.counter(journalAside, j.Aside)
	full := 0.0
	if j.Full {
		full = 1
	}
	e.gauge(journalFull, full)
}
