package sim

import "github.com/ordergrid/ordergrid/grid-node/match"

// scheduleBands lets the exchange move a price band now and then.
func (w *world) scheduleBands() {
	rng := w.profile.bands
	if rng == nil {
		return
	}
	w.after(rng.Int64N(400*millisecond)+20*millisecond, func() {
		n := rng.IntN(len(matchInstruments))
		in := &matchInstruments[n]
		op := match.Op{Kind: match.SetBand, Book: uint16(n), Price: in.Low, Stop: in.High}
		if rng.IntN(3) > 0 { // around the prices of orders
			middle := in.Low + (in.High-in.Low)/2/in.Tick*in.Tick
			op.Price, op.Stop = middle-int64(rng.IntN(3))*in.Tick, middle+int64(rng.IntN(3))*in.Tick
		}
		w.atExchange(op)
		w.scheduleBands()
	})
}
