package view_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/query/querytest"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// FuzzApply has entries whose payload was never parsed: a replica stores what its primary
// sends. Each is applied twice, and every field of both rows is read.
func FuzzApply(f *testing.F) {
	f.Add(querytest.Bulk(nil, 4, false), uint64(1)<<16, uint32(1))
	f.Add(querytest.Bulk(nil, 5, false), uint64(100), uint32(0x050505))
	f.Add([]byte("8=FIX.4.4\x0195=5\x0196=\x01\x01\x0110=000\x01"), uint64(1), uint32(1))
	f.Fuzz(func(t *testing.T, payload []byte, offsets uint64, lengths uint32) {
		if len(payload) > 4096 {
			return
		}
		c := newCase(t, 0, 1<<16)
		fields := order.Fields{
			ClOrdIDOff: uint16(offsets), SymbolOff: uint16(offsets >> 16), AccountOff: uint16(offsets >> 32), QtyOff: uint16(offsets >> 48), PriceOff: uint16(offsets >> 24),
			ClOrdIDLen: uint8(lengths), SymbolLen: uint8(lengths >> 8), AccountLen: uint8(lengths >> 16), Side: uint8(lengths >> 24),
		}
		for seq := uint64(1); seq <= 2; seq++ {
			_, before := c.Store.Last()
			e := order.Entry{Size: uint32(order.HeaderSize + len(payload)), Kind: order.KindOrder, Seq: seq, PrevHash: before, Epoch: 1, TimeNs: int64(offsets), Fields: fields}
			entry := make([]byte, order.HeaderSize, e.Size)
			e.Put(entry)
			entry, err := order.DecodeEntry(append(entry, payload...), &e)
			if err != nil {
				return // a replica refuses it
			}
			must(t, c.Store.AppendEntry(entry, &e))
			c.Store.SetCommitted(seq)
			must(t, c.View.Apply(c.Store.Read(seq)))
		}
		c.View.Publish()
		s, err := c.View.Snapshot(0)
		must(t, err)
		defer s.Release()
		for i := range c.View.Fields() {
			d := &c.View.Fields()[i]
			if a, b := s.Value(d, 1), s.Value(d, 2); d.Field != view.Seq && d.Field != view.State && a != b {
				t.Errorf("%s of two equal entries: %v and %v", d.Name, a, b)
			}
		}
		s.Chain(1)
	})
}
