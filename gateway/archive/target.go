// Package archive keeps the committed log of a grid in a directory or a bucket: verbatim entries in compressed,
// checksummed objects that are chained by the hashes of the entries. docs/archive.md has the format, ADR 42 the reasons.
//
// A batch becomes an object of its own in the folder tail, so that it is durable within a linger. Batches are merged
// into segments of the folder segments in the background. Both are created exclusively under a name that follows from
// what is before, so two writers cannot make two histories: the second is refused.
//
// Compression is klauspost/compress (zstd in pure Go), buckets are reached with minio-go; ADR 42 says why.
package archive

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Options of a Target.
type Options struct {
	Grid   string
	Logger *slog.Logger // slog.Default() if nil

	// A segment is made of the batches at the end when these have as many entries, bytes, or are as many. 0: 65,536
	// entries, 32 MiB, 512 batches.
	SegmentEntries int
	SegmentBytes   int
	SegmentBatches int
}

func (o *Options) defaults() {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SegmentEntries == 0 {
		o.SegmentEntries = 1 << 16
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 32 << 20
	}
	if o.SegmentBatches == 0 {
		o.SegmentBatches = 512
	}
}

// Check reports an option that is out of range.
func (o *Options) Check() error {
	switch {
	case o.Grid == "" || len(o.Grid) > maxGrid || strings.ContainsAny(o.Grid, "/\x00") || o.Grid == "." || o.Grid == "..":
		return fmt.Errorf("archive: grid is %.80q, allowed: a name of 1 to %d bytes without a slash", o.Grid, maxGrid)
	case o.SegmentEntries < 0 || o.SegmentEntries > maxEntries/4:
		return fmt.Errorf("archive: segment entries are %d, allowed: 1 to %d, or 0 for 65536", o.SegmentEntries, maxEntries/4)
	case o.SegmentBytes < 0 || o.SegmentBytes > 1<<30:
		return fmt.Errorf("archive: segment bytes are %d, allowed: 1 to %d, or 0 for 32 MiB", o.SegmentBytes, 1<<30)
	case o.SegmentBatches < 0 || o.SegmentBatches > 10_000:
		return fmt.Errorf("archive: segment batches are %d, allowed: 1 to 10000, or 0 for 512", o.SegmentBatches)
	}
	return nil
}

// Target is an archive as a sink.
type Target struct {
	store Store
	o     Options
}

// NewTarget returns the sink of a store, which it closes.
func NewTarget(s Store, o Options) *Target {
	o.defaults()
	return &Target{store: s, o: o}
}

// Close closes the store.
func (t *Target) Close() error { return t.store.Close() }

// opening is how often Open begins anew when another writer has come between.
const opening = 5

// Open finds the end of the archive, verifies what is not merged yet, and creates a fence behind it: a writer that was
// there before is refused at its next batch.
func (t *Target) Open(ctx context.Context, p wire.PartitionID) (sink.Writer, error) {
	if d, ok := t.store.(*directory); ok {
		d.sweep(t.o.Grid + "/" + p.String())
	}
	for try := 1; ; try++ {
		w := &writer{t: t, part: p, enc: newEncoder(), join: newEncoder(), log: t.o.Logger.With("archive", t.store.String(), "partition", p.String())}
		var id [8]byte
		rand.Read(id[:]) //nolint:errcheck // it never fails
		w.id = binary.LittleEndian.Uint64(id[:])
		err := w.find(ctx)
		if err == nil {
			err = w.takeOver(ctx)
		}
		if err == nil {
			w.start()
			return w, nil
		}
		if !retryOpen(err) || try == opening {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(try) * 50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
