package naive

// Rests reports whether an order is in a book.
func (x *Matcher) Rests(id uint64) bool { return x.orders[id] != nil }
