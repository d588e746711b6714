package sim

import (
	"fmt"
	"hash/fnv"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// fixReport is what a report has of its entry.
func fixReport(seq uint64, timeNs int64, payload []byte) string {
	h := fnv.New64a()
	h.Write(payload) //nolint:errcheck // it never fails
	return fmt.Sprintf("%d/%d/%016x", seq, timeNs, h.Sum64())
}

// copyKey marks a report that is a copy of another's.
const copyKey = "copy"

// reportOf makes the report of an entry again.
func reportOf(entry []byte, slot uint32) fixMsg {
	var e order.Entry
	entry, err := order.DecodeEntry(entry, &e)
	if err != nil {
		return fixMsg{kind: '8', body: err.Error()}
	}
	m := fixMsg{kind: '8', ref: e.ClientSeq, body: fixReport(e.Seq, e.TimeNs, order.Payload(entry))}
	if e.Kind == order.KindDropCopy {
		m.key = copyKey
	}
	if e.Kind != order.KindFix {
		return m
	}
	for rest := order.Payload(entry); len(rest) > 0; {
		var r order.FixRecord
		rest = order.NextFix(rest, &r)
		if r.Slot == slot {
			m.ref, m.key, m.body = r.In-1, "refused", fixReport(e.Seq, e.TimeNs, r.Body)
			if f, executed := order.ParseFixReport(r.Body); executed && !f.State {
				m.key = ""
			}
		}
	}
	return m
}
