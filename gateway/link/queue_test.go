package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// logEntry is an entry with a payload of n bytes.
func logEntry(seq uint64, n int) *client.LogEntry {
	e := client.LogEntry{Entry: order.Entry{Size: uint32(order.HeaderSize + n), Kind: order.KindNoop, Seq: seq, Epoch: 1, TimeNs: int64(seq)}}
	e.Bytes = make([]byte, e.Size)
	e.Put(e.Bytes)
	return &e
}

// Whatever the sizes, windows and batches, each entry leaves once, in order, and no more is on its way than the standby
// allows.
func TestQueueKeepsEachEntryOnce(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := client.LinkState{Window: 2000 + rng.IntN(200_000), Entries: 1 + rng.IntN(100)}
		q := newQueue(64<<10, s)
		batch, total := 1+rng.IntN(50), uint64(2000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		go func() {
			rng := rand.New(rand.NewPCG(seed, 2))
			for seq := uint64(1); seq <= total; seq++ {
				n := rng.IntN(400)
				if seq%100 == 0 {
					n = 30_000
				}
				if q.put(ctx, logEntry(seq, n)) != nil {
					return
				}
			}
		}()
		next, road := uint64(1), []uint64{}
		sizes := map[uint64]int{}
		for next <= total {
			frame, _, ok := q.tryTake(nil, batch, 0)
			switch {
			case ctx.Err() != nil:
				t.Fatalf("seed %d: nothing comes behind entry %d, %d are on their way", seed, next-1, len(road))
			case !ok && len(road) > 0: // the window may be too small for the next one
				s.Committed.Seq, road = road[0], road[1:]
				q.committed(s)
				continue
			case !ok:
				runtime.Gosched()
				continue
			}
			n := 0
			if len(frame) > wire.MaxLinkEntries {
				t.Fatalf("seed %d: a frame has %d bytes", seed, len(frame))
			}
			for rest := frame; len(rest) > 0; n++ {
				size, seq := order.Padded(int(binary.LittleEndian.Uint32(rest))), binary.LittleEndian.Uint64(rest[8:])
				if size > len(rest) || seq != next {
					t.Fatalf("seed %d: entry %d of %d bytes leaves with %d of them, want entry %d", seed, seq, size, len(rest), next)
				}
				sizes[next] = size
				road, rest, next = append(road, next), rest[size:], next+1
			}
			way := 0
			for _, seq := range road {
				way += sizes[seq]
			}
			if n > batch || len(road) > s.Entries || way > s.Window && len(road) > 1 {
				t.Fatalf("seed %d: %d entries at once, %d with %d bytes on their way; allowed %d, %d and %d", seed, n, len(road), way, batch, s.Entries, s.Window)
			}
			for len(road) > 0 && (len(road) >= s.Entries || way > s.Window/2 || rng.IntN(3) == 0) {
				way -= sizes[road[0]]
				s.Committed.Seq = road[0]
				road = road[1:]
			}
			q.committed(s)
			if q.outstanding() != (len(road) > 0) {
				t.Fatalf("seed %d: outstanding is %t with %d entries", seed, q.outstanding(), len(road))
			}
		}
		cancel()
	}
}

// A batch waits for its delay, or until it is full.
func TestBatchAndDelay(t *testing.T) {
	q := newQueue(1<<20, client.LinkState{Window: 1 << 20, Entries: 1000})
	for seq := uint64(1); seq <= 9; seq++ {
		if err := q.put(t.Context(), logEntry(seq, 8)); err != nil {
			t.Fatal(err)
		}
	}
	if _, wait, ok := q.tryTake(nil, 10, time.Hour); ok || wait <= 0 || wait > time.Hour {
		t.Errorf("9 of 10 entries left before their delay: %v", wait)
	}
	if frame, _, ok := q.tryTake(nil, 9, time.Hour); !ok || len(frame) != 9*order.Padded(order.HeaderSize+8) {
		t.Errorf("a full batch has %d bytes", len(frame))
	}
	if _, wait, ok := q.tryTake(nil, 9, 0); ok || wait != 0 {
		t.Error("nothing left, and a batch came")
	}
	if bytes, _ := q.lag(time.Now()); bytes != 9*order.Padded(order.HeaderSize+8) {
		t.Errorf("the lag is %d bytes", bytes)
	}
	q.committed(client.LinkState{Committed: client.Position{Seq: 9}, Window: 1, Entries: 1})
	if bytes, age := q.lag(time.Now()); bytes != 0 || age != 0 {
		t.Errorf("the lag is %d bytes, %v", bytes, age)
	}
}

// A full queue waits, and ends with its context.
func TestQueueIsBounded(t *testing.T) {
	q := newQueue(1000, client.LinkState{Window: 1 << 20, Entries: 1000})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	n := uint64(0)
	for n < 1000 && q.put(ctx, logEntry(n+1, 36)) == nil {
		n++
	}
	if n != 9 { // of 104 bytes each
		t.Errorf("%d entries of 104 bytes are in a queue of 1000", n)
	}
	if frame, err := q.take(t.Context(), nil, 100, 0); err != nil || !bytes.HasPrefix(frame, logEntry(1, 36).Bytes) {
		t.Errorf("%d bytes, %v", len(frame), err)
	}
	if err := q.put(t.Context(), logEntry(n+1, 36)); err != nil {
		t.Error(err)
	}
}

func TestPace(t *testing.T) {
	p, at := pace{rate: 1 << 20}, time.Unix(1000, 0)
	granted := 0
	for end := at.Add(10 * time.Second); at.Before(end); {
		wait := p.grant(at, 64<<10)
		granted += 64 << 10
		at = at.Add(max(wait, 0))
	}
	if granted < 10<<20 || granted > 10<<20+128<<10 {
		t.Errorf("%d bytes in 10 s at %d a second", granted, p.rate)
	}
	at = at.Add(time.Hour) // what was not used is gone
	burst := 0
	for p.grant(at, 1<<10) <= 0 {
		burst += 1 << 10
	}
	if burst > 64<<10 {
		t.Errorf("%d bytes at once after a pause", burst)
	}
}
