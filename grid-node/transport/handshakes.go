package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// handshakes are the accepted connections that are not authenticated yet. They take turns
// to compute, first come first served: unauthenticated work must not delay a loop with
// orders. A handshake waiting for its turn sleeps, and one waiting for its peer has no
// turn.
// peer has none.
// A low thread priority would not do instead: a preempted thread keeps its P and its locks
// of the runtime, and the collector, which all wait for, would wait until it is scheduled
// again.
type handshakes struct {
	limit int
	turns *semaphore.Weighted

	mu      sync.Mutex
	list    []*handshake // the peer that has owed an answer longest is first
	refused uint64
	ended   bool
}

// handshake is a connection during its handshake: reading releases the turn.
type handshake struct {
	net.Conn
	of     *handshakes
	ctx    context.Context // ends at its deadline, or when evicted
	cancel context.CancelFunc
	holds  bool   // has a turn; of the goroutine that makes the handshake
	early  []byte // read already, to detect TLS
	ours   bool   // waits for this process, not for its peer; under of.mu
}

func newHandshakes(limit, computing int) *handshakes {
	return &handshakes{limit: limit, turns: semaphore.NewWeighted(int64(computing))}
}

// begin adds one. If there are too many it ends the one whose peer has owed an answer
// longest; those waiting for this process are spared. nil: all are waiting for this
// process, or the loop has ended.
func (hs *handshakes) begin(nc net.Conn, timeout time.Duration) *handshake {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.ended {
		return nil
	}
	if len(hs.list) >= hs.limit {
		i := slices.IndexFunc(hs.list, func(h *handshake) bool { return !h.ours })
		if i < 0 {
			hs.refused++
			return nil
		}
		hs.list[i].end() // its goroutine reports the failure
		hs.list = slices.Delete(hs.list, i, i+1)
	}
	by := time.Now().Add(timeout)
	_ = nc.SetDeadline(by) // an error shows at the first read, too
	h := &handshake{Conn: nc, of: hs}
	h.ctx, h.cancel = context.WithDeadline(context.Background(), by)
	hs.list = append(hs.list, h)
	return h
}

// end closes all of them.
func (hs *handshakes) end() {
	if hs == nil {
		return
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.ended = true
	for _, h := range hs.list {
		h.end()
	}
}

func (hs *handshakes) count(s *Stats) {
	if hs == nil {
		return
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	s.Refused += hs.refused
	for _, h := range hs.list {
		if h.ours {
			s.Computing++
		} else {
			s.Greeting++
		}
	}
}

// end is called by goroutines other than the handshake's, which gets an error.
func (h *handshake) end() {
	h.cancel()
	_ = h.Close()
}

// done is the last step of a handshake, however it ended.
func (h *handshake) done() {
	h.cancel()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if i := slices.Index(h.of.list, h); i >= 0 {
		h.of.list = slices.Delete(h.of.list, i, i+1)
	}
}

// Read implements net.Conn. The computation on its result needs a turn.
func (h *handshake) Read(p []byte) (int, error) {
	h.giveBack()
	n := copy(p, h.early)
	h.early = h.early[n:]
	var err error
	if n == 0 {
		n, err = h.Conn.Read(p)
	}
	if n > 0 {
		if e := h.take(); e != nil {
			return 0, e
		}
	}
	return n, err
}

// speaksTLS reads enough to distinguish a TLS stream from a frame. The bytes are kept in
// early.
func (h *handshake) speaksTLS() (bool, error) {
	h.early = make([]byte, sniffed)
	n, err := io.ReadFull(h.Conn, h.early)
	h.early = h.early[:n]
	return secure.LooksLikeTLS(h.early), err
}

// sniffed are the bytes that secure.LooksLikeTLS needs.
const sniffed = 3

// Write implements net.Conn. It blocks only on a peer's window of less than a few
// kilobytes: then it waits without a turn.
func (h *handshake) Write(p []byte) (n int, err error) {
	if w := newTryWriter(h.Conn); w != nil {
		n, err = w.Write(p)
	}
	if n < len(p) && err == nil {
		h.giveBack()
		var rest int
		rest, err = h.Conn.Write(p[n:])
		n += rest
		if err == nil {
			err = h.take()
		}
	}
	h.answered()
	return n, err
}

// answered makes it the last of those whose peers owe an answer: a complete message of the
// handshake is progress, single bytes are not.
func (h *handshake) answered() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if i := slices.Index(h.of.list, h); i >= 0 {
		h.of.list = append(slices.Delete(h.of.list, i, i+1), h)
	}
}

// take waits for a turn, and fails if the handshake is ended before.
func (h *handshake) take() error {
	h.waitsForUs(true)
	err := h.of.turns.Acquire(h.ctx, 1)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return os.ErrDeadlineExceeded
	case err != nil:
		return net.ErrClosed
	}
	h.holds = true
	return nil
}

func (h *handshake) giveBack() {
	if h.holds {
		h.holds = false
		h.of.turns.Release(1)
		h.waitsForUs(false)
	}
}

func (h *handshake) waitsForUs(yes bool) {
	h.of.mu.Lock()
	h.ours = yes
	h.of.mu.Unlock()
}
