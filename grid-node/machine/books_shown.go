package machine

import "github.com/ordergrid/ordergrid/grid-node/match"

// What books show order by order is read beside the state, and named by the entry that each order began with: it is the
// same at all copies, lasts as long as the order, and says nothing of its owner.

// Watch has changes of what a book shows noted from the next entry on, or no more.
func (b *Books) Watch(book uint16, on bool) {
	if b.tap == nil {
		b.tap = &match.Tap{}
	}
	if b.tap.Watch(book, on); b.tap.None() {
		b.tap = nil
	}
	b.engine.Tap(b.tap)
}

// Shown returns what the last entry changed in the books that are watched. It is valid until the next.
func (b *Books) Shown() []match.Change {
	if b.tap == nil {
		return nil
	}
	return b.tap.Changes
}

// Orders is that of match.Engine, with the first entries of the orders; the place has their ids.
func (b *Books) Orders(book uint16, from match.Place, most int, out []match.Shown) ([]match.Shown, match.Place, bool) {
	n := len(out)
	out, from, ok := b.engine.Orders(book, from, most, out)
	for i := n; i < len(out); i++ {
		out[i].Order = b.resting.firstOf(out[i].Order)
	}
	return out, from, ok
}

// name gives changes of an operation, which rests do not follow yet, the first entries of their orders.
func (b *Books) name(changes []match.Change, op *match.Op) {
	for i := range changes {
		c := &changes[i]
		if c.Order == op.ID && op.Kind == match.Replace {
			c.Order = op.Orig
		}
		c.Order = b.resting.firstOf(c.Order)
	}
}
