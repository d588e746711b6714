package bridge

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// DefaultRegion is the region of the other grid that values are in.
const DefaultRegion = "bridge"

// prefix begins the keys of all bridges.
const prefix = "bridge/"

// Key is the key of a partition's values: bridge/GRID/SINK/pN of the source. All of them are in
// the partition of that key, one behind the other.
func Key(grid, sink string, p wire.PartitionID) []byte {
	return fmt.Appendf(nil, "%s%s/%s/%s", prefix, grid, sink, p)
}

// Value is what a bridge puts onto the other log with one entry.
type Value struct {
	// Through is the last entry of the source's partition that the bridge has passed, with all
	// before it: their records are in this value and in those before.
	Through client.Position
	writer  uint64 // of the process that opened the bridge
	Records []wire.Record
}

// A value has version u32, lineage u32, seq u64, hash u64, writer u64, records u32, 0 u32, and
// the records as in frame RecordsRead.
const (
	version  = 1
	headSize = 40
	// room for records in a value. Those of one entry have at most 34 KiB, of eight functions.
	room = wire.MaxRegionPair - headSize - 256 // and of the key
)

var le = binary.LittleEndian

func appendHead(dst []byte, at client.Position, writer uint64, records int) []byte {
	dst = le.AppendUint32(le.AppendUint32(dst, version), at.Lineage)
	dst = le.AppendUint64(le.AppendUint64(le.AppendUint64(dst, at.Seq), at.Hash), writer)
	return le.AppendUint64(dst, uint64(records))
}

// Parse reads a value. Records point into it.
func Parse(b []byte) (Value, error) {
	if len(b) < headSize || le.Uint32(b) != version {
		return Value{}, fmt.Errorf("bridge: a value has %d bytes, allowed: version %d, %d bytes or more", len(b), version, headSize)
	}
	v := Value{Through: client.Position{Seq: le.Uint64(b[8:]), Hash: le.Uint64(b[16:]), Lineage: le.Uint32(b[4:])}, writer: le.Uint64(b[24:])}
	n := le.Uint64(b[32:])
	for rest := b[headSize:]; len(rest) > 0; {
		var r wire.Record
		var err error
		if rest, err = wire.NextRecord(rest, &r); err != nil {
			return Value{}, fmt.Errorf("bridge: record %d of a value: %w", len(v.Records), err)
		}
		v.Records = append(v.Records, r)
	}
	if n != uint64(len(v.Records)) {
		return Value{}, fmt.Errorf("bridge: a value says that it has %d records, allowed: %d, as follow", n, len(v.Records))
	}
	return v, nil
}

// FromEntry returns what an entry of the other grid's log brought: its key and value. false: it
// is none of a bridge.
func FromEntry(e *client.LogEntry) (key, value []byte, ok bool) {
	if e.Kind != order.KindRegion {
		return nil, nil, false
	}
	o := order.RegionOf(order.Payload(e.Bytes))
	if o.Op != order.RegionPut || !strings.HasPrefix(string(o.Key), prefix) {
		return nil, nil, false
	}
	return o.Key, o.Value, true
}
