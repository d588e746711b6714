package verify

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// acrossMemory is the memory for comparing ClOrdIDs of different partitions; the rest goes to a
// temporary file.
const acrossMemory = 64 << 20

// idBytes is an idSeq in memory, and in the file.
const idBytes = 16

// across finds ClOrdIDs that orders of different partitions have. Each partition brings
// a run, sorted by hash; the runs are merged in the end.
type across struct {
	memory int // bytes left for runs that are kept
	runs   []run
	file   *os.File
	size   int64 // of file
	err    error
}

// run is the ClOrdIDs of one partition, in ids or in the file.
type run struct {
	partition wire.PartitionID
	ids       []idSeq
	r         *bufio.Reader
	from, n   int64 // bytes of the file
	head      idSeq // the next one
}

func newAcross(memory int) *across { return &across{memory: memory} }

func (a *across) close() {
	if a.file != nil {
		a.file.Close()           //nolint:errcheck // temporary
		os.Remove(a.file.Name()) //nolint:errcheck // temporary
	}
}

// add takes in the orders of a partition, sorted by hash.
func (a *across) add(p wire.PartitionID, ids []idSeq) {
	n := len(ids) * idBytes
	switch {
	case a.err != nil || n == 0:
	case n <= a.memory:
		a.memory -= n
		a.runs = append(a.runs, run{partition: p, ids: slices.Clone(ids)})
	default:
		a.err = a.spill(p, ids)
	}
}

func (a *across) spill(p wire.PartitionID, ids []idSeq) (err error) {
	if a.file == nil {
		if a.file, err = os.CreateTemp("", "ordergrid-verify-"); err != nil {
			return fmt.Errorf("%w; set TMPDIR to a directory with 16 bytes of room per order", err)
		}
	}
	w := bufio.NewWriterSize(a.file, 1<<20)
	var b [idBytes]byte
	for _, id := range ids {
		binary.LittleEndian.PutUint64(b[:], id.hash)
		binary.LittleEndian.PutUint64(b[8:], id.seq)
		w.Write(b[:]) //nolint:errcheck // Flush tells
	}
	n := int64(len(ids)) * idBytes
	a.runs = append(a.runs, run{partition: p, from: a.size, n: n})
	a.size += n
	return w.Flush()
}

// next moves the run on, io.EOF at its end.
func (r *run) next() error {
	if r.r == nil {
		if len(r.ids) == 0 {
			return io.EOF
		}
		r.head, r.ids = r.ids[0], r.ids[1:]
		return nil
	}
	var b [idBytes]byte
	if _, err := io.ReadFull(r.r, b[:]); err != nil {
		return err
	}
	r.head = idSeq{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
	return nil
}

// merge is a heap of runs by their heads.
type merge []*run

func (m merge) Len() int { return len(m) }
func (m merge) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(m[i].head.hash, m[j].head.hash), cmp.Compare(m[i].partition, m[j].partition), cmp.Compare(m[i].head.seq, m[j].head.seq)) < 0
}
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)   { *m = append(*m, x.(*run)) }
func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// report merges the runs and reports every ClOrdID in two of them.
func (a *across) report(r *Result) {
	if a.err == nil {
		a.err = a.walk(func(first, again *run, was idSeq) {
			r.TwiceCount++
			if len(r.Twice) < MaxProblems {
				r.Twice = append(r.Twice, fmt.Sprintf("orders %s and %s have the same ClOrdID (by its hash %016x): the one that is not where its ClOrdID belongs was sent there by a program that chose the partition itself",
					wire.OrderID{Partition: first.partition, Seq: was.seq}, wire.OrderID{Partition: again.partition, Seq: again.head.seq}, was.hash))
			}
		})
	}
	if a.err != nil {
		r.AcrossError = a.err.Error()
	}
}

// walk calls twice for each order whose ClOrdID occurs in an earlier partition too.
func (a *across) walk(twice func(first, again *run, was idSeq)) error {
	var m merge
	for i := range a.runs {
		r := &a.runs[i]
		if r.n > 0 {
			r.r = bufio.NewReaderSize(io.NewSectionReader(a.file, r.from, r.n), 32<<10)
		}
		if err := r.next(); err != nil {
			return err
		}
		m = append(m, r)
	}
	heap.Init(&m)
	var first *run
	var was idSeq
	for len(m) > 0 {
		r := m[0]
		switch {
		case first == nil || r.head.hash != was.hash:
			first, was = r, r.head
		case r != first: // a duplicate in one partition is reported for that partition
			twice(first, r, was)
		}
		switch err := r.next(); {
		case err == nil:
			heap.Fix(&m, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&m)
		default:
			return err
		}
	}
	return nil
}
