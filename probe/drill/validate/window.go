package validate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// afterwards is how long the window of a fault extends after its end.
const afterwards = int64(time.Second)

// Windows are the checked times: all, but of a drill only those from the calm time before each
// fault until a second after redundancy was back.
func Windows(h *history.History) []history.Span {
	everything := []history.Span{{From: math.MinInt64, To: math.MaxInt64}}
	if h.Drill == nil || len(h.Reps) == 0 {
		return everything
	}
	var out []history.Span
	for i := range h.Reps {
		r := &h.Reps[i]
		w := history.Span{From: min(cmp.Or(r.Ready, r.From), r.From), To: max(r.From, r.To, r.Healed, r.Served, r.Redundant) + afterwards}
		if r.Failed != "" || r.Served == 0 || r.Redundant == 0 { // it was never over
			w.To = math.MaxInt64
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b history.Span) int { return cmp.Compare(a.From, b.From) })
	merged := out[:1]
	for _, w := range out[1:] {
		if last := &merged[len(merged)-1]; w.From <= last.To {
			last.To = max(last.To, w.To)
		} else {
			merged = append(merged, w)
		}
	}
	return pieces(merged, lastCreated(h))
}

// piece is the longest window: its operations are in memory at once. Each begins slightly before
// the previous one ends.
const (
	piece   = int64(time.Minute)
	overlap = int64(time.Second)
)

// pieces cuts windows up; end is that of the history.
func pieces(windows []history.Span, end int64) (out []history.Span) {
	for _, w := range windows {
		for to := min(w.To, max(end, w.From)); to-w.From > piece; w.From += piece - overlap {
			out = append(out, history.Span{From: w.From, To: w.From + piece})
		}
		out = append(out, w)
	}
	return out
}

func lastCreated(h *history.History) (last int64) {
	for s := range h.Streams {
		if n := len(h.Streams[s].Orders); n > 0 {
			last = max(last, h.Streams[s].Orders[n-1].T1)
		}
	}
	return last
}

func overlaps(w history.Span, from, to int64) bool { return from <= w.To && to >= w.From }

// longest is how long before a window an order may have been created that is answered in it: more
// than any request may take.
const longest = int64(2 * time.Minute)

// ordersIn calls f for the orders of a partition in w.
func ordersIn(h *history.History, p wire.PartitionID, w history.Span, f func(stream int, index int64)) {
	for s := range h.Streams {
		orders := h.Streams[s].Orders
		if h.Streams[s].Partition != p {
			continue
		}
		first := 0
		if w.From > math.MinInt64+longest { // they are in the order of their creation
			first = sort.Search(len(orders), func(i int) bool { return orders[i].T1 >= w.From-longest })
		}
		for i := first; i < len(orders) && orders[i].T1 <= w.To; i++ {
			if o := &orders[i]; o.T3 == 0 || o.T3 >= w.From {
				f(s, int64(i))
			}
		}
	}
}

// epochNotes creates the note of an order once for each epoch: there are millions of orders and a
// handful of epochs.
type epochNotes struct {
	epoch uint64
	text  string
}

func (n *epochNotes) of(epoch uint64) string {
	if n.text == "" || n.epoch != epoch {
		n.epoch, n.text = epoch, fmt.Sprintf("epoch %d", epoch)
	}
	return n.text
}
