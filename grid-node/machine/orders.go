package machine

import (
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Orders keeps what is needed about orders whose entries are freed: a retried order is
// answered with the epoch it was made in.
type Orders struct {
	Lineage uint64 // 0 before the first noop
	epochs  []epochStart
	sum     uint64 // of epochs
}

// epochStart is the first entry of an epoch.
type epochStart struct {
	seq   uint64
	epoch uint32
}

// maxEpochs are remembered; an older order is reported as of the oldest.
const maxEpochs = 1024

func (o *Orders) apply(e *order.Entry, payload []byte) {
	if n := len(o.epochs); n == 0 || o.epochs[n-1].epoch != e.Epoch {
		if n == maxEpochs {
			o.sum -= o.epochs[0].sum()
			o.epochs = append(o.epochs[:0], o.epochs[1:]...)
		}
		o.add(epochStart{seq: e.Seq, epoch: e.Epoch})
	}
	if e.Kind == order.KindNoop {
		o.Lineage = le.Uint64(payload)
	}
}

func (o *Orders) add(e epochStart) {
	o.epochs = append(o.epochs, e)
	o.sum += e.sum()
}

// EpochAt returns the epoch of entry seq; 0 when nothing was applied.
func (o *Orders) EpochAt(seq uint64) uint32 {
	i := sort.Search(len(o.epochs), func(i int) bool { return o.epochs[i].seq > seq || mutant(mutEpochBoundary) && o.epochs[i].seq == seq })
	if len(o.epochs) == 0 {
		return 0
	}
	return o.epochs[max(i-1, 0)].epoch
}

func (o *Orders) clone() Orders {
	return Orders{Lineage: o.Lineage, sum: o.sum, epochs: append([]epochStart(nil), o.epochs...)}
}
