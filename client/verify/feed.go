package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/client"
)

// feed reads one replica ahead of the comparison, one chunk in flight.
type feed struct {
	log    Log
	chunks chan chunk // closed at the end; err is then valid
	err    error
	// The rest belongs to the comparison.
	limit   uint64 // committed prefix at the first chunk: read up to here
	current chunk
	at      int
}

// chunk is a copy of the entries of one LogChunk frame.
type chunk struct {
	entries []client.LogEntry
	limit   uint64
}

func newFeed(l Log) *feed { return &feed{log: l, chunks: make(chan chunk, 1)} }

// errEnough ends the reading at the prefix that was committed when it began: the log of a serving
// grid has no end.
var errEnough = errors.New("read as far as wanted")

func (f *feed) run(ctx context.Context) {
	defer close(f.chunks)
	limit, last := uint64(0), uint64(0)
	for first := true; ; first = false {
		var c chunk
		n, err := f.log.Next(ctx, func(e client.LogEntry) error {
			if first && limit == 0 {
				limit = f.log.End().CommitSeq
			}
			if e.Seq > limit {
				return errEnough
			}
			last = e.Seq
			e.Bytes = append([]byte(nil), e.Bytes...)
			c.entries = append(c.entries, e)
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			f.err = err
		} else if now := f.log.End().CommitSeq; n == 0 && last < limit && now < limit {
			f.err = fmt.Errorf("%d entries are committed there now, %d were when the comparison began: another process answers at the address, which joined meanwhile; compare again", now, limit)
		}
		c.limit = limit
		if len(c.entries) > 0 || first && f.err == nil {
			select {
			case f.chunks <- c:
			case <-ctx.Done():
				f.err = ctx.Err()
				return
			}
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// start waits for the first chunk; false: the replica could not be read.
func (f *feed) start() bool {
	c, ok := <-f.chunks
	if !ok {
		return false
	}
	f.current, f.limit = c, c.limit
	return true
}

// first is the number of the next entry, 0 at the end.
func (f *feed) first() uint64 {
	if e := f.peek(); e != nil {
		return e.Seq
	}
	return 0
}

// peek is the next entry, which stays the next; nil at the end.
func (f *feed) peek() *client.LogEntry {
	for f.at == len(f.current.entries) {
		c, ok := <-f.chunks
		if !ok {
			f.current, f.at = chunk{}, 0
			return nil
		}
		f.current, f.at = c, 0
	}
	return &f.current.entries[f.at]
}

// next is the next entry, nil at the end (err reports whether it came early).
func (f *feed) next() *client.LogEntry {
	e := f.peek()
	if e != nil {
		f.at++
	}
	return e
}
