package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/sink"
)

// The line format of the file sink: one line per log entry, ten columns with a
// tab between them.
//
//	seq epoch lineage kind sessionID clientSeq receivedUnixNano hash clOrdID FIX
//
// In the FIX message SOH is printed as '|'. A '|', a backslash or any control
// byte in a value is printed as \xNN, so a line is always one line and the
// message can be restored. Columns that do not apply hold "-".
const columns = 10

const headerPrefix = "# ordergrid sink v1"

// appendLine appends the line of one entry.
func appendLine(dst, entry []byte, lineage uint64, session sink.SessionID) []byte {
	kind := order.Kind(entry[4])
	dst = strconv.AppendUint(dst, order.Seq(entry), 10)
	dst = append(dst, '\t')
	dst = strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(entry[24:])), 10)
	dst = append(dst, '\t')
	dst = strconv.AppendUint(dst, lineage, 10)
	dst = append(dst, '\t')
	dst = append(dst, kind.String()...)
	dst = append(dst, '\t')
	if session == (sink.SessionID{}) {
		dst = append(dst, '-')
	} else {
		dst = appendHex(appendHex(dst, session.Hi), session.Lo)
	}
	dst = append(dst, '\t')
	dst = strconv.AppendUint(dst, binary.LittleEndian.Uint64(entry[32:]), 10)
	dst = append(dst, '\t')
	dst = strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(entry[40:])), 10)
	dst = append(dst, '\t')
	dst = appendHex(dst, order.Hash(entry))
	dst = append(dst, '\t')
	if !kind.IsOrder() {
		return append(dst, "-\t-\n"...)
	}
	dst = appendText(dst, order.ClOrdID(entry))
	dst = append(dst, '\t')
	dst = appendText(dst, order.Message(entry))
	return append(dst, '\n')
}

const hexDigits = "0123456789abcdef"

func appendHex(dst []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[v>>shift&15])
	}
	return dst
}

func appendText(dst, b []byte) []byte {
	for _, c := range b {
		switch {
		case c == 1:
			dst = append(dst, '|')
		case c < ' ' || c == 0x7f || c == '|' || c == '\\':
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// lineHead is the part of a line needed to resume.
type lineHead struct {
	seq, epoch, lineage, hash uint64
}

// parseLine reads a line without its newline.
func parseLine(line []byte) (h lineHead, err error) {
	f := bytes.Split(line, []byte{'\t'})
	if len(f) != columns {
		return h, fmt.Errorf("line has %d columns, allowed: %d", len(f), columns)
	}
	for _, c := range []struct {
		name string
		col  int
		base int
		to   *uint64
	}{{"seq", 0, 10, &h.seq}, {"epoch", 1, 10, &h.epoch}, {"lineage", 2, 10, &h.lineage}, {"hash", 7, 16, &h.hash}} {
		if *c.to, err = strconv.ParseUint(string(f[c.col]), c.base, 64); err != nil {
			return h, fmt.Errorf("column %d (%s) is %.40q, allowed: a number", c.col+1, c.name, f[c.col])
		}
	}
	return h, nil
}
