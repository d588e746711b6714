package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Batched is what PutAll, PatchAll and RemoveAll did.
type Batched struct {
	Changed int // keys that were put, patched or removed
	Missing int // keys of a patch or remove that have no value; nothing was changed of them
	Batches int // entries of the log that made the changes
}

// BatchError is the first failure of a PutAll, PatchAll or RemoveAll, behind which no batch is begun. What is in neither
// list is counted by Batched.
type BatchError struct {
	Unapplied [][]byte // keys of batches that were refused or not sent: nothing was changed of them
	Unknown   [][]byte // keys of batches without an answer: of each batch all keys were changed, or none
	Err       error
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("%v; nothing was changed of %d keys, and of %d it is not known", e.Err, len(e.Unapplied), len(e.Unknown))
}

// Unwrap is the failure.
func (e *BatchError) Unwrap() error { return e.Err }

// PutAll sets the values of many keys: Key and Value of each entry, the last one of those of a key. Keys of a partition go
// in batches of up to 512 keys and 65,436 bytes, some of them at a time. A batch is one entry of the log: it is applied as a
// whole, or not, and once, whatever fails in between; its values have one version. Batches, also those of one partition, are
// apart from each other: others may read and change keys between two. IfAbsent is not allowed. An error is a *BatchError,
// unless nothing was sent.
func (r *Region) PutAll(ctx context.Context, entries []Entry, opts ...PutOption) (Batched, error) {
	m := wire.RegionApply{Op: wire.RegionPut}
	for _, o := range opts {
		o(&m)
	}
	if m.If != wire.RegionIfAny {
		return Batched{}, fmt.Errorf("client: region %s: a condition is set, allowed: none for many keys", r.name)
	}
	b := r.newBulk(m)
	for i := range entries {
		if err := b.add(entries[i].Key, entries[i].Value); err != nil {
			return Batched{}, err
		}
	}
	return b.run(ctx)
}

// PatchAll writes b over the value of each of these keys, from offset on, as Patch does, in batches as those of PutAll. A key
// that has no value is counted as Missing. A value that the patch does not fit fails its batch: ErrTooLarge.
func (r *Region) PatchAll(ctx context.Context, keys [][]byte, offset int, b []byte) (Batched, error) {
	if err := r.checkOffset(offset); err != nil {
		return Batched{}, err
	}
	return r.changeAll(ctx, wire.RegionApply{Op: wire.RegionPatch, Offset: uint32(offset), Value: b}, keys)
}

// RemoveAll removes these keys, in batches as those of PutAll. A key that has no value is counted as Missing.
func (r *Region) RemoveAll(ctx context.Context, keys [][]byte) (Batched, error) {
	return r.changeAll(ctx, wire.RegionApply{Op: wire.RegionRemove}, keys)
}

func (r *Region) changeAll(ctx context.Context, m wire.RegionApply, keys [][]byte) (Batched, error) {
	b := r.newBulk(m)
	for _, key := range keys {
		if err := b.add(key, m.Value); err != nil {
			return Batched{}, err
		}
	}
	return b.run(ctx)
}

// batchesUnderWay of a partition at a time: one is on its way while another one is applied.
const batchesUnderWay = 4

// bulk is a change of many keys.
type bulk struct {
	r     *Region
	m     wire.RegionApply // without key, and of puts without value
	parts map[wire.PartitionID][]pair

	mu   sync.Mutex
	done Batched
	err  BatchError
}

type pair struct{ key, value []byte }

func (r *Region) newBulk(m wire.RegionApply) *bulk {
	return &bulk{r: r, m: m, parts: map[wire.PartitionID][]pair{}}
}

// add takes a key, with the value of a put.
func (b *bulk) add(key, value []byte) error {
	if err := b.r.check(key, value); err != nil {
		return err
	}
	p := b.r.c.RouteClOrdID(key)
	b.parts[p] = append(b.parts[p], pair{key, value})
	return nil
}

// run sends everything, all partitions at the same time.
func (b *bulk) run(ctx context.Context) (Batched, error) {
	var all sync.WaitGroup
	for p, pairs := range b.parts {
		all.Go(func() { b.runPartition(ctx, p, pairs) })
	}
	all.Wait()
	if b.err.Err != nil {
		return b.done, &b.err
	}
	return b.done, nil
}

// runPartition sends the batches of a partition, by their keys: neighbours in the tree of the region are looked up together.
func (b *bulk) runPartition(ctx context.Context, p wire.PartitionID, pairs []pair) {
	slices.SortStableFunc(pairs, func(x, y pair) int { return bytes.Compare(x.key, y.key) })
	n := 0
	for i := range pairs { // of several of a key the last one
		if i+1 == len(pairs) || !bytes.Equal(pairs[i].key, pairs[i+1].key) {
			pairs[n] = pairs[i]
			n++
		}
	}
	batches := b.cut(pairs[:n])
	var next sync.Mutex
	var senders sync.WaitGroup
	for range min(batchesUnderWay, len(batches)) {
		senders.Go(func() {
			var items []byte
			for {
				next.Lock()
				if len(batches) == 0 {
					next.Unlock()
					return
				}
				batch := batches[0]
				batches = batches[1:]
				next.Unlock()
				items = b.send(ctx, p, batch, items[:0])
			}
		})
	}
	senders.Wait()
}

// cut splits pairs into batches. A pair that fits none is one by itself.
func (b *bulk) cut(pairs []pair) (batches [][]pair) {
	from, size := 0, 0
	for i := range pairs {
		n := b.size(&pairs[i])
		if i > from && (i-from == wire.MaxRegionItems || size+n > b.room()) {
			batches = append(batches, pairs[from:i])
			from, size = i, 0
		}
		size += n
	}
	return append(batches, pairs[from:])
}

func (b *bulk) size(x *pair) int { return wire.RegionItemSize(b.m.Op, x.key, x.value) }

// room is how many bytes of items a batch may have.
func (b *bulk) room() int { return wire.MaxRegionBatch - len(b.m.Value) }

// send sends a batch, unless something has failed, and counts what it did. It returns items for the next one.
func (b *bulk) send(ctx context.Context, p wire.PartitionID, batch []pair, items []byte) []byte {
	b.mu.Lock()
	failed := b.err.Err != nil
	b.mu.Unlock()
	if failed {
		b.settle(batch, 0, errNotBegun)
		return items
	}
	if b.size(&batch[0]) > b.room() {
		one := b.m
		if one.Key = batch[0].key; one.Op == wire.RegionPut {
			one.Value = batch[0].value
		}
		_, _, err := b.r.apply(ctx, p, regionOp{RegionApply: one})
		b.settle(batch, 0, err)
		return items
	}
	for i := range batch {
		items = wire.AppendRegionItem(items, b.m.Op, batch[i].key, batch[i].value)
	}
	op, _, err := b.r.apply(ctx, p, regionOp{batch: &wire.RegionBatch{Op: b.m.Op, Count: uint16(len(batch)), Offset: b.m.Offset, LifeNs: b.m.LifeNs,
		Region: []byte(b.r.name), Patch: b.m.Value, Items: items}})
	b.settle(batch, int(op.skipped), err)
	return items
}

// errNotBegun is of batches behind the first failure.
var errNotBegun = errors.New("not begun")

// settle counts the outcome of a batch.
func (b *bulk) settle(batch []pair, skipped int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.done.Batches++
		b.done.Changed += len(batch) - skipped
		b.done.Missing += skipped
		return
	case errors.Is(err, ErrConditionFailed): // none has a value
		b.done.Missing += len(batch)
		return
	case b.err.Err == nil:
		b.err.Err = err
	}
	list := &b.err.Unapplied
	if errors.Is(err, ErrUnknownOutcome) {
		list = &b.err.Unknown
	}
	for i := range batch {
		*list = append(*list, batch[i].key)
	}
}

// encodeBatch appends the frame of a batch. To a node that does not know it an order without payload is sent, which it
// refuses: the number is used up, and the batch is sent again under another one.
func (s *Session) encodeBatch(c *conn, seq uint64, op *regionOp) {
	if op.untold = c.features&wire.FeatureRegionBatch == 0; op.untold {
		c.out = wire.AppendSubmit(c.out, s.partition, &wire.Submit{Epoch: s.epoch, Slot: s.slot, Generation: s.gen, ClientSeq: seq})
		return
	}
	m := *op.batch
	m.Epoch, m.Slot, m.Generation, m.ClientSeq, m.Received = s.epoch, s.slot, s.gen, seq, min(s.win.head, seq)-1
	c.out = wire.AppendRegionBatch(c.out, s.partition, &m)
}

// onRegionBatched is onAck of a batch.
func (s *Session) onRegionBatched(c *conn, frame []byte) error {
	var m wire.RegionBatched
	if err := wire.DecodeRegionBatched(frame, &m); err != nil {
		return s.violation(c, "answer to a RegionBatch", err)
	}
	if s.awaits(m.ClientSeq) {
		if o := s.win.at(m.ClientSeq).ord; o != nil && o.op != nil {
			if o.op.batch == nil || m.Skipped >= uint32(o.op.batch.Count) {
				return s.violation(c, fmt.Sprintf("answer to operation %d of a region says that %d keys were skipped, allowed: of a batch, fewer than it has", m.ClientSeq, m.Skipped), nil)
			}
			o.op.skipped = m.Skipped
		}
	}
	return s.onAck(c, &m.Ack)
}

// waits reports whether what is refused with this code is sent again.
func (op *regionOp) waits(code wire.Code) bool {
	return code == wire.CodeOverloaded || code == wire.CodeFunctionAwaited || op.untold && code == wire.CodeBadFIX
}

// told is the error of the caller.
func (op *regionOp) told(err error) error {
	if !op.untold {
		return err
	}
	return fmt.Errorf("the primary runs a release without batches of regions: %w", err)
}
