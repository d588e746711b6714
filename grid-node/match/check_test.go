package match

import (
	"bytes"
	"fmt"
)

func newFlowEngine() (*Engine, error) {
	e, err := New(flowConfig)
	for n, i := range flowInstruments {
		if err == nil {
			err = e.Define(n, i)
		}
	}
	return e, err
}

func same(got, want []Record) error {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Errorf("record %d is missing: %+v", i, want[i])
		case i >= len(want):
			return fmt.Errorf("record %d is too much: %+v", i, got[i])
		case !bytes.Equal(got[i].AppendTo(nil), want[i].AppendTo(nil)):
			return fmt.Errorf("record %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	return nil
}

// check compares what the engine maintains with what it holds.
func (e *Engine) check() error {
	if e.Digest() != e.Recount() {
		return fmt.Errorf("digest %x, recount %x", e.Digest(), e.Recount())
	}
	resting, pages, unnamed := 0, 0, 0
	for n := range e.books {
		b := &e.books[n]
		for p := range b.ladders {
			for _, ref := range b.ladders[p].refs {
				if ref.page != 0 {
					pages++
				}
			}
		}
		if b.state == Open && b.ladders[0].best != none && b.ladders[1].best != none && b.mirror(b.ladders[0].best) >= b.ladders[1].best {
			return fmt.Errorf("book %d is open and crossed", n)
		}
		for place := range uint8(places) {
			var err error
			e.queues(b, place, func(lev *level) {
				if e2 := e.checkQueue(lev); e2 != nil {
					err = e2
				}
				resting += int(lev.count)
				for slot := lev.head; slot != 0; slot = e.orders[slot].next {
					unnamed += int(b2u(e.orders[slot].party == 0))
				}
			})
			if err != nil {
				return fmt.Errorf("book %d place %d: %w", n, place, err)
			}
		}
	}
	if unnamed != e.Unnamed() {
		return fmt.Errorf("%d orders without a party, counted %d", e.Unnamed(), unnamed)
	}
	if resting != e.resting || pages != e.paged {
		return fmt.Errorf("%d orders and %d pages, counted %d and %d", e.resting, e.paged, resting, pages)
	}
	return nil
}

func (e *Engine) checkQueue(lev *level) error {
	sum := level{head: lev.head}
	prio := uint64(0)
	for slot := lev.head; slot != 0; slot = e.orders[slot].next {
		o := &e.orders[slot]
		if o.prio <= prio || o.shown == 0 || o.shown > o.leaves || e.ids.find(e.orders, o.id) != slot {
			return fmt.Errorf("order %+v behind priority %d", *o, prio)
		}
		prio = o.prio
		sum.count, sum.shown, sum.total, sum.tail = sum.count+1, sum.shown+uint64(o.shown), sum.total+uint64(o.leaves), slot
	}
	if sum != *lev {
		return fmt.Errorf("level %+v, counted %+v", *lev, sum)
	}
	return nil
}
