package match

// session is SetState, Uncross and SetBand.
func (e *Engine) session(op *Op) {
	b := e.lookup(op.Book)
	if b == nil {
		e.reject(op, UnknownInstrument)
		return
	}
	why := None
	switch op.Kind {
	case SetState:
		why = e.setState(op, b)
	case SetBand:
		why = e.setBand(op, b)
	case Uncross:
		why = e.uncross(op, b)
	}
	if why != None {
		e.reject(op, why)
	}
}

// setState moves a book to another phase. A book that may be crossed opens by an auction.
func (e *Engine) setState(op *Op, b *book) Reason {
	switch {
	case op.State > Halted || op.State == Uncrossing:
		return BadField
	case b.state == Uncrossing, op.State == Open && b.crossed, op.State == b.state && op.State != Halted:
		return NotInState
	}
	until := int64(0)
	if op.State == Halted {
		until = op.Until
		if b.state != Halted {
			b.resume = b.state
		}
	}
	e.become(op.Book, b, op.State, until, Requested)
	e.runStops(op.Book, b)
	return None
}

// become sets the state.
func (e *Engine) become(n uint16, b *book, s State, until int64, why Reason) {
	b.state, b.until = s, until
	if s == Call {
		b.crossed = true
	}
	r := e.record(StateChanged, n)
	r.Flags, r.Price, r.Reason = uint8(s), until, why
	if s == Open && b.triggers {
		e.setBusy(n, true)
	}
}

// setBand changes which prices orders may have. Orders in the book stay.
func (e *Engine) setBand(op *Op, b *book) Reason {
	if op.Price < b.Low || op.Stop > b.High || op.Price > op.Stop {
		return OutsideBand
	}
	if (op.Price-b.Low)%b.Tick != 0 || (op.Stop-b.Low)%b.Tick != 0 {
		return OffTick
	}
	b.bandLo, b.bandHi = op.Price, op.Stop
	r := e.record(BandChanged, op.Book)
	r.Price, r.Other = op.Price, uint64(op.Stop)
	return None
}
