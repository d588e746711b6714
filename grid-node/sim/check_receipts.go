package sim

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// receiptKey is an order's id with the hash of its receipt.
type receiptKey struct{ seq, hash uint64 }

// checkReceipt is I17 for an acknowledgement: the receipt has the hash of the order's
// entry, and no receipt of another order, of whatever lineage, has the same.
func (w *world) checkReceipt(r *request, m *wire.Ack, lineage uint64) {
	switch t := w.timeline(lineage); {
	case m.Hash == 0: // freed
	case uint64(m.Lineage) != lineage:
		w.violation("I17", "the receipt of order %s has lineage %d; it was given in lineage %d", r.key, m.Lineage, lineage)
	case m.Seq <= uint64(len(t.hashes)) && m.Hash != t.hashes[m.Seq-1]:
		w.violation("I17", "the receipt of order %s, at %d, has hash %016x; the entry has %016x", r.key, m.Seq, m.Hash, t.hashes[m.Seq-1])
	default:
		w.checkNamed(receiptKey{m.Seq, m.Hash}, r.key)
	}
}

// checkAnswered is I17 for an answer: an entry at the place of a receipt, with the hash
// of that receipt, is its order, whatever was lost in between.
func (w *world) checkAnswered(entry []byte) {
	key := receiptKey{order.Seq(entry), order.Hash(entry)}
	if _, known := w.check.receipts[key]; known {
		w.checkNamed(key, string(order.ClOrdID(entry)))
	}
}

func (w *world) checkNamed(key receiptKey, clOrdID string) {
	if was, known := w.check.receipts[key]; known && was != clOrdID {
		w.violation("I17", "order %d with hash %016x is %s; an earlier receipt or answer has %s", key.seq, key.hash, clOrdID, was)
		return
	}
	w.check.receipts[key] = clOrdID
}
