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

// handshakes are the accepted connections that have not proved anything yet. They take
// turns to compute, first come first served: what anybody can ask for must not be what
// a loop with orders waits behind. Who waits for a turn is asleep, and who waits for its
// peer has none.
//
// A low priority for the thread that computes would not do instead: one that is
// preempted by others keeps its P and what locks of the runtime it has, and the
// collector, whom all wait for, waits until it is given a core again.
type handshakes struct {
	limit int
	turns *semaphore.Weighted

	mu      sync.Mutex
	list    []*handshake // whose peer owes an answer for longest is first
	refused uint64
	ended   bool
}

// handshake is a connection during its handshake: reading gives the turn back.
type handshake struct {
	net.Conn
	of     *handshakes
	ctx    context.Context // ends with its time, or when it has to go
	cancel context.CancelFunc
	holds  bool   // has a turn; of the goroutine that makes the handshake
	early  []byte // read already, to find out what the peer speaks
	ours   bool   // waits for this process, not for its peer; under of.mu
}

func newHandshakes(limit, computing int) *handshakes {
	return &handshakes{limit: limit, turns: semaphore.NewWeighted(int64(computing))}
}

// begin notes one more. If there are too many it ends the one whose peer owes an
// answer for longest; those that are kept waiting here are not to blame. nil: they are
// all such, or the loop has ended.
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
	_ = nc.SetDeadline(by) // an error is that of the first read, too
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

// end is for whoever is not the goroutine of the handshake, which is told by an error.
func (h *handshake) end() {
	h.cancel()
	_ = h.Close()
}

// done is the last thing of a handshake, however it ended.
func (h *handshake) done() {
	h.cancel()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if i := slices.Index(h.of.list, h); i >= 0 {
		h.of.list = slices.Delete(h.of.list, i, i+1)
	}
}

// Read implements net.Conn. What it returns is computed with in a turn.
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

// speaksTLS reads as much as tells a TLS stream from a frame. What was read is in early.
func (h *handshake) speaksTLS() (bool, error) {
	h.early = make([]byte, sniffed)
	n, err := io.ReadFull(h.Conn, h.early)
	h.early = h.early[:n]
	return secure.LooksLikeTLS(h.early), err
}

// sniffed are the bytes that secure.LooksLikeTLS needs.
const sniffed = 3

// Write implements net.Conn. A peer makes it wait only by a window that has no room
// for a few kilobytes: then it waits without a turn.
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

// answered makes it the last of those whose peers owe an answer: this is a peer's part
// of a handshake that cannot be had for a byte now and then.
func (h *handshake) answered() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if i := slices.Index(h.of.list, h); i >= 0 {
		h.of.list = append(slices.Delete(h.of.list, i, i+1), h)
	}
}

// take waits for a turn, and fails if the handshake has to go before.
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
