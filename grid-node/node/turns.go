package node

import "github.com/ordergrid/ordergrid/grid-node/wire"

// Orders go first. Other requests of clients are deferred when a wake-up has done its
// share of them, so that no number of clients delays orders by more than that:
// transport.Config.Work. Requests of one connection are served in order; a client with
// many reads beside its orders uses another connection for them, as the Go client does.
const (
	// loopWork is the share of a wake-up, in bytes of answers; everything else is counted
	// by its equivalent time.
	loopWork    = 256 << 10
	requestWork = 128      // any request, beside its answer
	otherWork   = 1 << 10  // one that allocates, or formats text
	sessionWork = 8 << 10  // an OpenSession: it checks all sessions and takes a log entry
	ordersWork  = 16 << 10 // a ReadOrders: 256 changes and orders, which may wait for their entry and are not counted then
	itemWork    = 512      // an item of a RegionBatch, of which one as large as may be takes the whole share
	followWork  = 16 << 10 // a Follow, a Stream: it starts a goroutine, which copies frames beside the loop
	// maxReadsWaiting bounds the answers of a partition that wait for confirmation: they all
	// leave in one wake-up. Reads beyond wait in their connections.
	maxReadsWaiting = 2 * loopWork
	// vainSubmits in a row that stored nothing make a connection one that can wait.
	vainSubmits = 64
)

// hasTurn reports whether a client's frame is to be served now.
func (c *clients) hasTurn(l *link, frame []byte) bool {
	t := wire.FrameType(frame)
	if t == wire.TypeSubmit && l.vain < vainSubmits {
		return true
	}
	if !l.conn.Turn() {
		return false
	}
	if t == wire.TypeGet || t == wire.TypeRegionGet || t == wire.TypeRegionScan {
		if p := c.parts.at(wire.FramePartition(frame)); p != nil && p.replica.ReadsWaiting() > maxReadsWaiting {
			l.conn.Wait()
			return false
		}
	}
	return true
}

// submitted counts Submits that are none: refused, sent again, for sessions that do not
// exist.
func (l *link) submitted(stored bool) {
	if stored {
		l.vain = 0
		l.conn.Urgent()
		return
	}
	l.vain++
	l.conn.Spend(2 * requestWork)
}

// spend counts a request with its answer, which begins behind before bytes of output.
func (l *link) spend(t wire.Type, frame []byte, before int) {
	if t == wire.TypeSubmit {
		l.vain++
	}
	l.conn.Spend(workOf(t, frame) + max(0, l.conn.Buffered()-before))
}

// workOf is what a request costs beside its answer.
func workOf(t wire.Type, frame []byte) int {
	switch t {
	case wire.TypePing:
		return requestWork
	case wire.TypeOpenSession:
		return sessionWork
	case wire.TypeFollow, wire.TypeQuery, wire.TypeMap, wire.TypeMapOrders:
		return followWork
	case wire.TypeStream: // it may be long, is checked, and copied
		return followWork + len(frame)
	case wire.TypeRegionBatch:
		return otherWork + itemWork*wire.RegionBatchCount(frame)
	case wire.TypeReadOrders:
		return ordersWork
	case wire.TypeStreamSelect:
		return otherWork + len(frame)
	}
	return otherWork
}
