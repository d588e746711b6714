package sink

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/feed/feedtest"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// recorder is a sink in memory that keeps the writer of each batch.
type recorder struct {
	pos     Position
	epochs  []uint32 // of the entries written
	writers []uint64 // of the batches
}

func (r *recorder) Open() (Position, error) { return r.pos, nil }
func (r *recorder) SetAside() error         { r.pos = Position{}; return nil }
func (r *recorder) Close() error            { return nil }

func (r *recorder) Write(b *Batch) error {
	r.writers = append(r.writers, b.Writer.Epoch)
	for i, entry := range b.Entries {
		var e order.Entry
		if _, err := order.DecodeEntry(entry, &e); err != nil {
			return err
		}
		r.epochs = append(r.epochs, e.Epoch)
		r.pos.Seq, r.pos.Hash, r.pos.Epoch, r.pos.Lineage = e.Seq, order.Hash(entry), uint64(e.Epoch), b.Lineages[i]
	}
	return nil
}

// starved is a log whose reader is descheduled once, between checking whether its node is
// the primary and reading how far the log is committed.
type starved struct {
	*feedtest.Log
	meanwhile func()
}

func (l *starved) Committed() uint64 {
	if f := l.meanwhile; f != nil {
		l.meanwhile = nil
		f()
	}
	return l.Log.Committed()
}

func newFenced(t *testing.T) (*starved, *recorder, *Queue) {
	log, sink := &starved{Log: feedtest.NewLog(t)}, &recorder{}
	reader, err := feed.New(log).Reader("file")
	if err != nil {
		t.Fatal(err)
	}
	q := New(Options{Name: "p0", Log: reader, Sink: sink, Metrics: metrics.NewRegistry(&metrics.Collector{}).Sink("file"),
		Logger: slog.New(slog.DiscardHandler), Advance: func(uint64) {}})
	return log, sink, q
}

// all works until there is nothing to do.
func all(t *testing.T, q *Queue) {
	t.Helper()
	for {
		next, err := q.work()
		if err != nil {
			t.Fatal(err)
		}
		if next != 0 {
			return
		}
	}
}

// A primary of epoch 1 is replaced while its queue waits for a processor. Entries of
// epoch 2 are the next primary's to write.
func TestAQueueOfAnEpochThatIsOverWritesNothingOfTheNext(t *testing.T) {
	for _, opened := range []bool{true, false} { // whether the queue had begun before
		log, sink, q := newFenced(t)
		log.Fill(0x1, 3)
		q.SetActive(true, 1, 1, 0)
		if opened {
			all(t, q)
			log.Order(1, 3, "late")
			log.Commit()
		}
		log.meanwhile = func() {
			log.Noop(2, 1, 0x2)
			log.Order(2, 3, "of the next")
			log.Commit()
			q.SetActive(false, 2, 1, 0)
		}
		all(t, q)
		if slices.Contains(sink.epochs, 2) {
			t.Errorf("opened %t: epochs %v: the former primary wrote entries of epoch 2", opened, sink.epochs)
		}
	}
}

// The same process becomes the primary again, of epoch 3: it continues where it stopped.
func TestAQueueGoesOnInTheNextEpochOfItsNode(t *testing.T) {
	log, sink, q := newFenced(t)
	log.Fill(0x1, 3)
	q.SetActive(true, 1, 1, 0)
	log.meanwhile = func() {
		log.Noop(2, 1, 0x2)
		log.Noop(3, 1, 0x1)
		log.Commit()
		q.SetActive(true, 3, 1, 0)
	}
	all(t, q)
	last, _ := log.Last()
	if want := []uint64{1, 3}; sink.pos.Seq != last || !slices.Equal(sink.writers, want) {
		t.Errorf("written up to %d by writers of epochs %v, want %d by %v", sink.pos.Seq, sink.writers, last, want)
	}
}

// An administrator accepted a loss: entries of the next lineage do not belong to a writer
// of the previous one, whatever their epoch.
func TestAQueueWritesNothingOfTheNextLineage(t *testing.T) {
	log, sink, q := newFenced(t)
	log.Fill(0x1, 3)
	q.SetActive(true, 1, 1, 0)
	before, _ := log.Last()
	log.meanwhile = func() {
		log.Noop(1, 2, 0x2) // a record that was rolled back reuses epochs
		log.Commit()
		q.SetActive(false, 1, 2, 0)
	}
	all(t, q)
	if sink.pos.Seq != before {
		t.Errorf("written up to %d, want %d: what follows is of lineage 2", sink.pos.Seq, before)
	}
}

func TestAQueueThatIsNotThePrimarysWritesNothing(t *testing.T) {
	log, sink, q := newFenced(t)
	log.Fill(0x1, 1)
	for range 3 {
		if next, err := q.work(); next != feed.Never || err != nil {
			t.Fatalf("it waits for entry %d, %v; want: a notification", next, err)
		}
	}
	if sink.pos.Seq != 0 {
		t.Fatalf("written up to %d", sink.pos.Seq)
	}
}
