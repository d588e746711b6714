package view

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Hash is a digest of the values of rows from..to of the snapshot: equal on every copy
// that made the same of the same log, whatever it numbered its texts by. It reads some
// hundred bytes a row; more reports whether to go on after each 65,536 rows.
func (s *Snapshot) Hash(from, to uint64, more func() bool) (sum uint64, err error) {
	if from <= s.base {
		return 0, &TooOldError{Base: s.base, Wanted: from}
	}
	if to > s.at {
		return 0, &NotAppliedError{Applied: s.at, Wanted: to}
	}
	h := xxhash.New()
	var b []byte
	for row := from; row <= to; {
		p := s.PartOf(row)
		for i := row - p.First; i < chunkRows && row <= to; i, row = i+1, row+1 {
			if b = b[:0]; *at[byte](p.c, offMsgType, uint32(i)) != 0 {
				for k := range s.v.defs {
					b = appendValue(b, s.ValueAt(&p, &s.v.defs[k], uint32(i)))
				}
			}
			b = append(b, 0xff)
			_, _ = h.Write(b)
		}
		if more != nil && !more() {
			return 0, errStopped
		}
	}
	return h.Sum64(), nil
}

func appendValue(b []byte, v Value) []byte {
	b = append(b, byte(v.Kind))
	switch v.Kind {
	case Text:
		b = append(binary.AppendUvarint(b, uint64(len(v.Text))), v.Text...)
	case Decimal:
		b = binary.BigEndian.AppendUint64(b, uint64(v.Number.Hi))
		b = append(binary.BigEndian.AppendUint64(b, v.Number.Lo), v.Number.Scale)
	case Int, Time:
		b = binary.BigEndian.AppendUint64(b, uint64(v.Int))
	}
	return b
}
