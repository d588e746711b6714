package node

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// carry sends rows from one table to the other, as frames.
func carry(t *testing.T, from, to *rowTable, now []wire.HeartbeatRow) (frames int) {
	t.Helper()
	buf := appendHeartbeats(nil, wire.TypeHeartbeat, 7, from.changes(now, nil))
	for {
		frame, rest, err := wire.Split(buf)
		if err != nil || frame == nil || len(frame) > wire.MaxHeartbeat {
			t.Fatalf("frame of %d bytes, %v", len(frame), err)
		}
		var m wire.Heartbeat
		if err := wire.DecodeHeartbeat(frame, wire.TypeHeartbeat, &m); err != nil || m.SentNs != 7 {
			t.Fatal(m.SentNs, err)
		}
		if err := to.take(m.Rows); err != nil {
			t.Fatal(err)
		}
		frames++
		if buf = rest; m.Flags&wire.FlagMore == 0 {
			break
		}
	}
	if len(buf) != 0 {
		t.Fatalf("%d bytes behind the last frame", len(buf))
	}
	return frames
}

func TestBothEndsHaveTheSameRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var from, to rowTable
	for range 2000 {
		now := slices.Clone(from.rows)
		for range rng.IntN(4) {
			switch n := rng.IntN(3); {
			case n == 0 && len(now) > 0:
				i := rng.IntN(len(now))
				now = slices.Delete(now, i, i+1)
			case n == 1 && len(now) > 0:
				now[rng.IntN(len(now))].CommitSeq++
			default:
				r := wire.HeartbeatRow{Partition: wire.PartitionID(rng.IntN(200)), PeerHead: wire.PeerHead{Epoch: 1 + rng.Uint64N(3), To: rng.Uint64N(3)}}
				if !slices.ContainsFunc(now, func(o wire.HeartbeatRow) bool { return byRow(o, r) == 0 }) {
					now = append(now, r)
				}
			}
		}
		if rng.IntN(100) == 0 {
			now = nil
		}
		want := slices.Clone(now)
		slices.SortFunc(want, byRow)
		if carry(t, &from, &to, now); !slices.Equal(to.rows, want) {
			t.Fatalf("rows %v, want %v", to.rows, want)
		}
	}
}

func TestHeartbeatsOfManyPartitions(t *testing.T) {
	var from, to rowTable
	var now []wire.HeartbeatRow
	for i := range 1000 {
		now = append(now, wire.HeartbeatRow{Partition: wire.PartitionID(i), PeerHead: wire.PeerHead{Epoch: 1}})
	}
	if n := carry(t, &from, &to, slices.Clone(now)); n != 16 || len(to.rows) != 1000 {
		t.Errorf("%d frames leave %d rows, want 16 and 1000", n, len(to.rows))
	}
	// At rest only the time is sent.
	if got := appendHeartbeats(nil, wire.TypeHeartbeat, 8, from.changes(now, nil)); len(got) != 20 {
		t.Errorf("%d bytes at rest, want 20", len(got))
	}
	if n := testing.AllocsPerRun(100, func() { from.changes(now, nil) }); n != 0 {
		t.Errorf("%v allocations at rest", n)
	}
}

func TestRowsThatNoNodeSends(t *testing.T) {
	row := func(p wire.PartitionID) wire.HeartbeatRow {
		return wire.HeartbeatRow{Partition: p, PeerHead: wire.PeerHead{Epoch: 1}}
	}
	var table rowTable
	for _, rows := range [][]wire.HeartbeatRow{{row(2), row(1)}, {row(1), row(1)}} {
		if err := table.take(rows); err == nil {
			t.Errorf("%v was taken", rows)
		}
	}
	var err error
	for i := 0; err == nil; i++ {
		if err = table.take([]wire.HeartbeatRow{row(wire.PartitionID(i))}); i > maxRows {
			t.Fatalf("%d rows are remembered", len(table.rows))
		}
	}
}
