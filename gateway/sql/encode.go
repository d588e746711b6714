package sql

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

var be = binary.BigEndian

// pgEpoch is PostgreSQL's in microseconds since 1970.
const pgEpoch = 946684800 * 1_000_000

// Row is one of an answer: a nil cell is null.
type Row [][]byte

// Encode makes a row of an answer of one of a question. Format codes are 0 text, 1 binary, one
// for each column. buf is used for its bytes and returned.
func (p *Plan) Encode(row Row, buf []byte, from []view.Value, formats []int16) (Row, []byte, *Error) {
	return p.encode(row, buf, from, nil, formats)
}

// EncodeGroup makes a row of an answer of a group.
func (p *Plan) EncodeGroup(row Row, buf []byte, g Counted, formats []int16) (Row, []byte, *Error) {
	return p.encode(row, buf, nil, g, formats)
}

func (p *Plan) encode(row Row, buf []byte, from []view.Value, g Counted, formats []int16) (Row, []byte, *Error) {
	row = row[:0]
	for i := range p.outputs {
		o := &p.outputs[i]
		start := len(buf)
		var null bool
		var err *Error
		if o.e != nil {
			var v value
			if g != nil {
				v, err = p.Region.b.ofGroup(g, o.e)
			} else {
				v, err = p.Region.b.of(from, o.e)
			}
			if err != nil {
				return row, buf, err
			}
			buf, null, err = v.append(buf, o.Type, formats[i] == 1, p.env)
		} else if o.from < 0 {
			buf, null, err = o.value.append(buf, o.Type, formats[i] == 1, p.env)
		} else {
			buf, null, err = appendCell(buf, &from[o.from], o.Type, formats[i] == 1, p.env)
		}
		if err != nil {
			return row, buf, err
		}
		switch {
		case null:
			row = append(row, nil)
		case len(buf) == start: // of no bytes, which is not null
			row = append(row, []byte{})
		default:
			row = append(row, buf[start:len(buf):len(buf)])
		}
	}
	return row, buf, nil
}

// EncodeFixed makes a row of an answer that is known as texts.
func (p *Plan) EncodeFixed(cells []*string, formats []int16) (Row, *Error) {
	row := make(Row, len(cells))
	for i, s := range cells {
		if s == nil {
			continue
		}
		t := Text
		if i < len(p.outputs) {
			t = p.outputs[i].Type
		}
		row[i] = []byte(*s)
		if formats[i] == 0 || t.class() == textual {
			continue
		}
		v, err := value{at: -1, typ: Unknown, text: *s}.parse(t, p.env)
		if err != nil {
			return nil, Refuse(StateUnsupported, "type %s in binary form: not supported", t)
		}
		if row[i], _, err = v.append(nil, t, true, p.env); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// Outputs are the columns of the answer.
func (p *Plan) Outputs() []Output { return p.outputs }

// appendCell writes a value of a row.
func appendCell(buf []byte, v *view.Value, t Type, bin bool, env *Env) ([]byte, bool, *Error) {
	switch v.Kind {
	case view.Null:
		return buf, true, nil
	case view.Text:
		return append(buf, valid(v.Text)...), false, nil
	case view.Int:
		if !bin || t.class() == textual {
			return strconv.AppendInt(buf, v.Int, 10), false, nil
		}
		if t == Int8 {
			return be.AppendUint64(buf, uint64(v.Int)), false, nil
		}
		out, err := appendNumber(buf, strconv.FormatInt(v.Int, 10), t)
		return out, false, err
	case view.Decimal:
		if t == Float8 && !bin {
			return appendFloat(buf, v.Number.String()), false, nil
		}
		if !bin || t.class() == textual {
			return append(buf, v.Number.String()...), false, nil
		}
		out, err := appendNumber(buf, v.Number.String(), t)
		return out, false, err
	}
	us := microsOf(v.Int)
	if bin && t.class() == temporal {
		return be.AppendUint64(buf, uint64(us-pgEpoch)), false, nil
	}
	return appendTime(buf, us, env.zoneFor(t)), false, nil
}

// valid is a text as UTF-8: bytes that are none become the replacement character.
func valid(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func appendFloat(buf []byte, s string) []byte {
	f, _ := strconv.ParseFloat(s, 64)
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e15) {
		return strconv.AppendFloat(buf, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(buf, f, 'f', -1, 64)
}

// appendNumber writes a number in the binary form of a type.
func appendNumber(buf []byte, s string, t Type) ([]byte, *Error) {
	switch t {
	case Float8, Float4:
		f, _ := strconv.ParseFloat(s, 64)
		if t == Float4 {
			return be.AppendUint32(buf, math.Float32bits(float32(f))), nil
		}
		return be.AppendUint64(buf, math.Float64bits(f)), nil
	case Numeric:
		return appendNumeric(buf, s), nil
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	switch t {
	case Int2:
		return be.AppendUint16(buf, uint16(n)), nil
	case Int4, Oid:
		return be.AppendUint32(buf, uint32(n)), nil
	case Int8:
		return be.AppendUint64(buf, uint64(n)), nil
	}
	return buf, Refuse(StateUnsupported, "type %s in binary form: not supported", t)
}

// appendNumeric writes digits of 10,000 (numeric_send).
func appendNumeric(buf []byte, s string) []byte {
	sign := uint16(0)
	if s[0] == '-' {
		sign, s = 0x4000, s[1:]
	}
	whole, frac, _ := strings.Cut(s, ".")
	scale := len(frac)
	whole = strings.Repeat("0", (4-len(whole)%4)%4) + whole
	frac += strings.Repeat("0", (4-len(frac)%4)%4)
	weight := len(whole)/4 - 1
	all := whole + frac
	for len(all) > 0 && all[:4] == "0000" {
		all, weight = all[4:], weight-1
	}
	for len(all) > 0 && all[len(all)-4:] == "0000" {
		all = all[:len(all)-4]
	}
	if all == "" {
		weight, sign = 0, 0
	}
	buf = be.AppendUint16(buf, uint16(len(all)/4))
	buf = be.AppendUint16(buf, uint16(int16(weight)))
	buf = be.AppendUint16(be.AppendUint16(buf, sign), uint16(scale))
	for ; all != ""; all = all[4:] {
		n, _ := strconv.Atoi(all[:4])
		buf = be.AppendUint16(buf, uint16(n))
	}
	return buf
}

// append writes a constant of an answer.
func (v *value) append(buf []byte, t Type, bin bool, env *Env) ([]byte, bool, *Error) {
	if v.null || v.hole {
		return buf, true, nil
	}
	switch t.class() {
	case boolean:
		c := byte('f')
		if v.b {
			c = 't'
		}
		if bin {
			c = map[byte]byte{'t': 1, 'f': 0}[c]
		}
		return append(buf, c), false, nil
	case numeric:
		if bin {
			out, err := appendNumber(buf, v.num.String(), t)
			return out, false, err
		}
		return append(buf, v.format(env)...), false, nil
	case temporal:
		switch {
		case bin && t == Date:
			_, off := time.UnixMicro(v.us).In(env.zoneFor(t)).Zone()
			days := (v.us + int64(off)*1e6 - pgEpoch) / 86400e6
			return be.AppendUint32(buf, uint32(int32(days))), false, nil
		case bin:
			us := v.us
			if t == Timestamp {
				_, off := time.UnixMicro(us).In(env.zoneFor(t)).Zone()
				us += int64(off) * 1e6
			}
			return be.AppendUint64(buf, uint64(us-pgEpoch)), false, nil
		}
	case textual:
	default:
		if t == JSON {
			break
		}
		return buf, false, Refuse(StateUnsupported, "an answer of type %s: not supported", t)
	}
	return append(buf, valid(v.format(env))...), false, nil
}
