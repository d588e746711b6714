package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Batches (docs/adr/0121): clients of a region change several keys by one entry. What an entry
// did is compared with the model as single changes are (I40 to I42).

// batches gives half of the worlds with regions such changes. It uses its own random source,
// begun so that no seed in testdata/seeds.txt became another world.
func batches(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, batchesBegin)); rng.IntN(2) == 0 && p.regions != nil {
		p.batches = rng
	}
}

const batchesBegin = 0x6261746368657300

// changeAll sends a new batch.
func (c *regionClient) changeAll(rng *rand.Rand) {
	op := wire.RegionPut + uint8(rng.IntN(3))
	r := &regionRequest{from: c.known(), batch: &wire.RegionBatch{Op: op, Region: []byte(regionName)}}
	r.Op, r.ClientSeq = op, c.next
	value := fmt.Appendf(nil, "%d/%d/%d", c.id, c.session[1]&0xffff, c.next)
	switch {
	case op == wire.RegionPatch:
		r.batch.Patch = value
	case op == wire.RegionPut && rng.IntN(4) == 0:
		r.batch.LifeNs = 1 + rng.Int64N(60*millisecond)
	}
	keys := rng.Perm(regionKeys)[:1+rng.IntN(regionKeys)]
	slices.Sort(keys)
	for _, k := range keys {
		r.batch.Items = wire.AppendRegionItem(r.batch.Items, op, fmt.Appendf(nil, "key-%d", k), value)
		r.batch.Count++
	}
	c.next++
	c.open = append(c.open, r)
	c.send(r)
}

// asked is the batch as an operation of the log, with all its keys.
func (r *regionRequest) asked() order.RegionOp {
	return order.RegionOp{Op: order.RegionKind(r.batch.Op) - order.RegionPut + order.RegionPutAll, Key: r.batch.Patch, Value: r.batch.Items}
}

// checkRegionBatched: a batch is that of its entry, which has all keys of a put, and of a patch
// or remove those that had a value; the others are counted, to a retry too (I40).
func (w *world) checkRegionBatched(c *regionClient, r *regionRequest, m *wire.RegionBatched) {
	t := w.timeline(1)
	did, known := t.region.ops[m.Seq]
	if r.batch == nil || !known || did.session != m.Slot || did.clientSeq != m.ClientSeq {
		w.violation("I40", "region client %d is told that batch %d is entry %d, which is %+v (committed: %v)", c.id, m.ClientSeq, m.Seq, did, known)
		return
	}
	o := r.asked()
	want, skipped := []byte{}, uint32(0)
	o.Each(func(one *order.RegionOp) {
		before := t.region.at(string(one.Key), m.Seq-1)
		if one.Op != order.RegionPut && (before.gone || before.expire != 0 && before.expire <= t.region.nows[m.Seq]) {
			skipped++
			return
		}
		want = order.AppendItem(want, o.Op, one.Key, one.Value)
	})
	if did.op != o.Op || did.key != string(o.Key) || did.batch != string(want) || m.Skipped != skipped || did.skipped != skipped {
		w.violation("I40", "region client %d is told that batch %d, %s of %q, is entry %d and skipped %d keys; the entry is %s of %q and skipped %d, and has to be of %q and skip %d",
			c.id, m.ClientSeq, o.Op, r.batch.Items, m.Seq, m.Skipped, did.op, did.batch, did.skipped, want, skipped)
	}
}

// checkBatchFailed: a batch is answered to have changed nothing only where no key had a value
// (I42).
func (w *world) checkBatchFailed(c *regionClient, r *regionRequest) {
	t := w.timeline(1)
	o, at := r.asked(), []uint64{r.from}
	o.Each(func(one *order.RegionOp) {
		for _, s := range t.region.history[string(one.Key)] {
			if s.seq > r.from {
				at = append(at, s.seq)
			}
		}
	})
	if o.Op != order.RegionPutAll && slices.ContainsFunc(at, func(seq uint64) bool {
		none := true
		o.Each(func(one *order.RegionOp) {
			s := t.region.at(string(one.Key), seq)
			none = none && (s.gone || s.expire != 0) // it may have expired by the primary's clock
		})
		return none
	}) {
		return
	}
	w.violation("I42", "region client %d is told that no key of batch %d, %s of %q, has a value; there is no such committed state from entry %d to %d", c.id, r.ClientSeq, o.Op, o.Value, r.from, len(t.hashes))
}
