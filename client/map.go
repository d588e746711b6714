package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// MapRequest is what Map calls a function for.
type MapRequest struct {
	// Region whose entries the function is called for, in each partition those after one entry
	// of its log; "": there are none, the function gets Args.
	Region string
	// Orders has the function called for the orders that each partition's log holds, as far as it is committed: no region.
	// It takes the permission Watch, and a node of this release.
	Orders bool
	// Partitions whose entries or orders the function is called for, each once; nil: all. With one of those two only.
	Partitions []wire.PartitionID
	Args       []byte // at most 4,096 bytes
	// Slices is into how many parts the work is divided, which compute side by side as far as nodes
	// have threads for it: of the entries of each partition, or of what the function makes of
	// Args; 1..1024, 0 is 1.
	Slices int
	// AtOnce is how many slices are under way at a time at most, as many workers as take the next
	// one when they have one done; 0..60, 0 is 60. Where slices are many more than the threads that
	// compute them, none of these is without work before the last slices.
	AtOnce int
	// Timeout of a slice at one node, which allows a minute at most; 0: Config.RequestTimeout.
	Timeout time.Duration
	// OnPart is called with each slice when it is there, with one at a time; nil: with none.
	OnPart func(MapPart)
}

// MapPart is what a function made of one slice.
type MapPart struct {
	Partition wire.PartitionID // of the entries; without a region of the node that computed
	Slice     int
	Reply     []byte // at most 4,096 bytes
	Rows      uint64 // entries or orders that the function was called for
	Fuel      uint64 // that its calls took
	Epoch     uint64 // of the primary that had the entries
	Seq       uint64 // the last entry of kind region that counted; of Orders the last entry of the log
	From      uint64 // of Orders: the first entry, before which all are freed; Seq+1 and Seq: there are none
	Hash      uint64 // of Orders: that of entry Seq, the same at every copy
	Address   string
	Took      time.Duration // from the request to the answer
}

// Map calls a function of kind Compute for the entries of a region, or the orders of the log, in every partition, or in those
// that are named, or without these for arguments alone, and returns what it made of each slice, by
// partition and slice. Nothing is changed. The entries of a partition are those after one entry of its log that
// is committed, and acknowledged before Map was called or later, as with a confirmed read;
// those of several partitions are not of one instant, nor are several slices of a region. Those of Orders are: all
// slices of a partition are of entries MapPart.From to MapPart.Seq.
//
// A slice whose node is lost is computed anew at another. All slices are there, or there is an
// error: a *FunctionError, and ErrMapBound and ErrFunctionUnknown, are final.
func (c *Client) Map(ctx context.Context, function string, q MapRequest) ([]MapPart, error) {
	count, err := c.checkMap(function, &q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	of := c.mapOf(&q)
	groups := len(of) // of slices, one for each partition of a region
	n := count * groups
	parts, errs := make([]MapPart, n), make([]error, n)
	for i := range parts {
		parts[i].Slice = i % count
		parts[i].Partition = of[i/count]
	}
	var (
		wg      sync.WaitGroup
		telling sync.Mutex
		next    atomic.Int64
		load    = mapLoad{slices: map[string]int{}, done: map[string]int{}}
	)
	prefixes := c.mapPrefixes(ctx, &q, count, of)
	for range min(n, q.AtOnce) {
		wg.Go(func() {
			for k := int(next.Add(1)) - 1; k < n; k = int(next.Add(1)) - 1 {
				i := k%groups*count + k/groups // of all partitions in turn
				if errs[i] = ctx.Err(); errs[i] != nil {
					continue
				}
				if q.Orders {
					errs[i] = c.mapOrdersSlice(ctx, function, &q, count, &parts[i], prefixes[i/count])
				} else {
					errs[i] = c.mapSlice(ctx, function, &q, count, &parts[i], &load)
				}
				if errs[i] != nil {
					cancel(errs[i])
				} else if q.OnPart != nil {
					telling.Lock()
					q.OnPart(parts[i])
					telling.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs { // the first cause, not those that it ended
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, functionError(function, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return parts, nil
}

// mapOf returns the partitions of a Map, sorted: one that does not count without a region.
func (c *Client) mapOf(q *MapRequest) []wire.PartitionID {
	switch {
	case q.Region == "" && !q.Orders:
		return []wire.PartitionID{0}
	case q.Partitions != nil:
		return slices.Sorted(slices.Values(q.Partitions))
	}
	of := make([]wire.PartitionID, len(c.table.Load().parts))
	for i := range of {
		of[i] = wire.PartitionID(i)
	}
	return of
}

// checkMapOf refuses partitions that a Map cannot have.
func (c *Client) checkMapOf(q *MapRequest) error {
	if q.Orders && q.Region != "" {
		return fmt.Errorf("client: a Map has Orders and region %q, allowed: one of them", q.Region)
	}
	if q.Partitions != nil && (q.Region == "" && !q.Orders || len(q.Partitions) == 0) {
		return fmt.Errorf("client: Partitions of a Map has %d of region %q, allowed: one or more, with a region or Orders; or nil for all", len(q.Partitions), q.Region)
	}
	seen := map[wire.PartitionID]bool{}
	for _, p := range q.Partitions {
		if err := c.checkPartition(p); err != nil {
			return err
		}
		if seen[p] {
			return fmt.Errorf("client: Partitions of a Map has %s twice, allowed: each once", p)
		}
		seen[p] = true
	}
	return nil
}

// MaxAtOnce bounds the slices that are asked for at a time: a node has a bound of 64 for each client.
const MaxAtOnce = 60

// mapGrace is for a node to say that the time of a slice is over.
const mapGrace = time.Second

func (c *Client) checkMap(function string, q *MapRequest) (count int, err error) {
	count = max(q.Slices, 1)
	if q.AtOnce == 0 {
		q.AtOnce = MaxAtOnce
	}
	if q.Timeout == 0 {
		q.Timeout = c.cfg.RequestTimeout
	}
	switch {
	case len(function) == 0 || len(function) > 32:
		err = fmt.Errorf("client: function name has %d bytes, allowed: 1..32", len(function))
	case len(q.Region) > wire.MaxString:
		err = fmt.Errorf("client: region name has %d bytes, allowed: 0..%d", len(q.Region), wire.MaxString)
	case len(q.Args) > wire.MaxMapArgs:
		err = fmt.Errorf("client: arguments of a Map have %d bytes, allowed: 0..%d", len(q.Args), wire.MaxMapArgs)
	case q.Slices < 0 || q.Slices > wire.MaxSlices:
		err = fmt.Errorf("client: Slices is %d, allowed: 0..%d", q.Slices, wire.MaxSlices)
	case q.AtOnce < 0 || q.AtOnce > MaxAtOnce:
		err = fmt.Errorf("client: AtOnce is %d, allowed: 0..%d", q.AtOnce, MaxAtOnce)
	case q.Timeout < time.Millisecond:
		err = fmt.Errorf("client: Timeout is %v, allowed: 1ms or more, 0 for that of requests", q.Timeout)
	default:
		err = c.checkMapOf(q)
	}
	return count, err
}

// mapSlice has one slice computed: at the primary, where it has a region; else at the copy that has the fewest of them,
// and then at others in turn.
func (c *Client) mapSlice(ctx context.Context, function string, q *MapRequest, slices int, part *MapPart, load *mapLoad) error {
	m := wire.Map{Slice: uint16(part.Slice), Slices: uint16(slices), Region: []byte(q.Region), Function: []byte(function), Args: q.Args}
	begun, at, anywhere := time.Now(), "", q.Region == ""
	if anywhere {
		part.Partition, at = load.place(c.table.Load().parts, part.Slice)
	}
	defer func() { load.move(at, "") }()
	first := at != ""
	_, err := c.retry(ctx, part.Partition, anywhere, func(_ context.Context, addr string) error {
		if first {
			addr, first = at, false
		}
		load.move(at, addr)
		at = addr
		attempt, cancel := context.WithTimeout(ctx, q.Timeout+mapGrace)
		defer cancel()
		m.TimeoutMs = uint32(min(q.Timeout, time.Minute*10) / time.Millisecond)
		return c.mapAt(attempt, addr, &m, part)
	})
	part.Address, part.Took = at, time.Since(begun)
	return err
}

// mapAt has one slice computed at one node.
func (c *Client) mapAt(ctx context.Context, addr string, m *wire.Map, part *MapPart) error {
	frame, err := c.mapFrame(ctx, addr, part.Partition, func(dst []byte, reqID uint64) []byte {
		m.ReqID = reqID
		return wire.AppendMap(dst, part.Partition, m)
	})
	if err != nil {
		return err
	}
	var a wire.MapPart
	if err := wire.DecodeMapPart(frame, &a); err != nil {
		return &ProtocolError{Address: addr, What: "answer", Cause: err}
	}
	part.Reply, part.Rows, part.Fuel, part.Epoch, part.Seq = append([]byte(nil), a.Reply...), a.Rows, a.Fuel, a.Epoch, a.Seq
	return nil
}

// mapFrame sends what begins a Map and returns its answer. A Map that is not waited for any more is ended.
func (c *Client) mapFrame(ctx context.Context, addr string, p wire.PartitionID, encode func([]byte, uint64) []byte) ([]byte, error) {
	k, err := c.callerOf(ctx, addr)
	if err != nil {
		return nil, err
	}
	frame, _, err := k.exchange(ctx, encode, func(dst []byte, reqID uint64) []byte {
		return wire.AppendMap(dst, p, &wire.Map{ReqID: reqID})
	})
	if errors.Is(err, errLost) {
		c.dropCaller(k)
	}
	if err == nil {
		err = k.refusal(frame)
	}
	return frame, err
}
