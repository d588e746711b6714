package node

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// rowTable is the last state sent by one end of a liveness connection: a row for each
// partition and process that it is for, in that order. Both ends have the same: one makes
// frames of the changes, the other applies them. It begins empty with the connection.
type rowTable struct {
	rows []wire.HeartbeatRow
	tmp  []wire.HeartbeatRow
}

// byRow orders rows by what they are about.
func byRow(a, b wire.HeartbeatRow) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.To, b.To))
}

// gone is the row that ends another.
func gone(r *wire.HeartbeatRow) wire.HeartbeatRow {
	return wire.HeartbeatRow{Partition: r.Partition, PeerHead: wire.PeerHead{To: r.To}}
}

// changes makes now the table, and appends the rows with which the other end does the same.
// It sorts now.
func (t *rowTable) changes(now, dst []wire.HeartbeatRow) []wire.HeartbeatRow {
	slices.SortFunc(now, byRow)
	was := t.rows
	for i := range now {
		for len(was) > 0 && byRow(was[0], now[i]) < 0 {
			dst, was = append(dst, gone(&was[0])), was[1:]
		}
		if len(was) > 0 && byRow(was[0], now[i]) == 0 {
			same := was[0] == now[i]
			if was = was[1:]; same {
				continue
			}
		}
		dst = append(dst, now[i])
	}
	for i := range was {
		dst = append(dst, gone(&was[i]))
	}
	t.rows = append(t.rows[:0], now...)
	return dst
}

// maxRows is how many rows a node takes from another.
const maxRows = 4096

// take applies the changes that the other end sent.
func (t *rowTable) take(changed []wire.HeartbeatRow) error {
	was := t.rows
	t.tmp = t.tmp[:0]
	for i := range changed {
		if i > 0 && byRow(changed[i-1], changed[i]) >= 0 {
			return fmt.Errorf("heartbeat: a row of %s follows one of %s, allowed: rows in rising order", changed[i].Partition, changed[i-1].Partition)
		}
		for len(was) > 0 && byRow(was[0], changed[i]) < 0 {
			t.tmp, was = append(t.tmp, was[0]), was[1:]
		}
		if len(was) > 0 && byRow(was[0], changed[i]) == 0 {
			was = was[1:]
		}
		if changed[i].Epoch != 0 {
			t.tmp = append(t.tmp, changed[i])
		}
	}
	t.tmp = append(t.tmp, was...)
	if len(t.tmp) > maxRows {
		return fmt.Errorf("heartbeat: %d rows are remembered, allowed: at most %d", len(t.tmp), maxRows)
	}
	t.rows, t.tmp = t.tmp, t.rows
	return nil
}

// appendHeartbeats appends the frames with these rows; at least one, which confirms the
// others.
func appendHeartbeats(dst []byte, t wire.Type, sentNs int64, rows []wire.HeartbeatRow) []byte {
	for {
		n := min(len(rows), wire.MaxHeartbeatRows)
		m := wire.Heartbeat{SentNs: sentNs, Rows: rows[:n]}
		if rows = rows[n:]; len(rows) > 0 {
			m.Flags = wire.FlagMore
		}
		if dst = wire.AppendHeartbeat(dst, t, &m); len(rows) == 0 {
			return dst
		}
	}
}
