package sql

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decode reads the parameters of a Bind: formats are none, one for all, or one for each.
func (p *Prepared) decode(raw [][]byte, formats []int16, env *Env) ([]value, *Error) {
	if len(raw) != len(p.Params) {
		return nil, Refuse(StateProtocol, "bind message supplies %d parameters, but the prepared statement requires %d", len(raw), len(p.Params))
	}
	if len(formats) > 1 && len(formats) != len(raw) {
		return nil, Refuse(StateProtocol, "bind message has %d parameter formats but %d parameters", len(formats), len(raw))
	}
	out := make([]value, len(raw))
	for i, b := range raw {
		v := value{at: -1, typ: p.Params[i], null: b == nil}
		format := int16(0)
		switch len(formats) {
		case 0:
		case 1:
			format = formats[0]
		default:
			format = formats[i]
		}
		var err *Error
		switch {
		case b == nil:
		case format == 0:
			if !utf8.Valid(b) || strings.IndexByte(string(b), 0) >= 0 {
				return nil, Refuse(StateNoBytes, "invalid byte sequence for encoding \"UTF8\" in parameter $%d", i+1)
			}
			v.text = string(b)
			v, err = value{at: -1, typ: Unknown, text: v.text}.parse(p.Params[i], env)
		case format == 1:
			v, err = decodeBinary(b, p.Params[i], env)
		default:
			err = Refuse(StateParameter, "unsupported format code: %d", format)
		}
		if err != nil {
			err.Detail = fmt.Sprintf("It is parameter $%d, of type %s.", i+1, p.Params[i])
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// decodeBinary reads the binary form of a value.
func decodeBinary(b []byte, t Type, env *Env) (value, *Error) {
	v := value{at: -1, typ: t}
	bad := Refuse(StateBinary, "incorrect binary data format in a parameter of type %s", t)
	if n := t.Size(); n > 0 && t.class() != textual && len(b) != int(n) {
		return v, bad
	}
	switch t {
	case Bool:
		v.b = b[0] != 0
	case Int2:
		v.num = decInt(int64(int16(be.Uint16(b))))
	case Int4:
		v.num = decInt(int64(int32(be.Uint32(b))))
	case Oid:
		v.num = decInt(int64(be.Uint32(b)))
	case Int8:
		v.num = decInt(int64(be.Uint64(b)))
	case Float4, Float8:
		// The shortest decimal that is this float: what its user wrote.
		s := ""
		if t == Float4 {
			s = strconv.FormatFloat(float64(math.Float32frombits(be.Uint32(b))), 'g', -1, 32)
		} else {
			s = strconv.FormatFloat(math.Float64frombits(be.Uint64(b)), 'g', -1, 64)
		}
		return value{at: -1, typ: Unknown, text: s}.parse(t, env)
	case Numeric:
		d, err := decodeNumeric(b)
		if err != nil {
			return v, err
		}
		v.num = d
	case Timestamptz:
		v.us = int64(be.Uint64(b)) + pgEpoch
	case Timestamp, Date:
		return v, Refuse(StateUnsupported, "a parameter of type %s in binary form: not supported", t).hint("Send timestamp with time zone, or text.")
	case Interval:
		if be.Uint32(b[12:]) != 0 {
			return v, Refuse(StateUnsupported, "intervals of months: not supported")
		}
		v.us = int64(be.Uint64(b)) + int64(int32(be.Uint32(b[8:])))*86400e6
	default:
		switch t.class() {
		case textual:
			if !utf8.Valid(b) {
				return v, Refuse(StateNoBytes, "invalid byte sequence for encoding \"UTF8\" in a parameter")
			}
			v.text = string(b)
		case array:
			return decodeArray(b, t, env)
		default:
			return v, bad
		}
	}
	return v, nil
}

func decodeNumeric(b []byte) (dec, *Error) {
	bad := Refuse(StateBinary, "incorrect binary data format in a parameter of type numeric")
	if len(b) < 8 {
		return dec{}, bad
	}
	n, weight, sign, scale := int(be.Uint16(b)), int(int16(be.Uint16(b[2:]))), be.Uint16(b[4:]), int(be.Uint16(b[6:]))
	if sign >= 0xC000 {
		return dec{}, Refuse(StateUnsupported, "NaN and infinity as numbers: not supported")
	}
	if len(b) != 8+2*n || n > maxDigits/4 || weight > maxDigits/4 || weight < -maxDigits/4 || scale > maxDigits {
		return dec{}, bad
	}
	m := new(big.Int)
	for i := range n {
		d := be.Uint16(b[8+2*i:])
		if d > 9999 {
			return dec{}, bad
		}
		m.Add(m.Mul(m, big.NewInt(10000)), big.NewInt(int64(d)))
	}
	if sign == 0x4000 {
		m.Neg(m)
	}
	if behind := 4 * (n - weight - 1); behind >= 0 {
		return dec{m, behind}, nil
	} else {
		return dec{m.Mul(m, pow10(-behind)), 0}, nil
	}
}

func decodeArray(b []byte, t Type, env *Env) (value, *Error) {
	v := value{at: -1, typ: t}
	bad := Refuse(StateBinary, "incorrect binary data format in a parameter of type %s", t)
	if len(b) < 12 {
		return v, bad
	}
	dims, elem := be.Uint32(b), Type(be.Uint32(b[8:]))
	if b = b[12:]; dims == 0 && len(b) == 0 {
		return v, nil
	}
	if dims != 1 || len(b) < 8 || elem != types[t].elem {
		return v, bad
	}
	n := int(be.Uint32(b))
	for b = b[8:]; n > 0; n-- {
		if len(b) < 4 {
			return v, bad
		}
		size := int32(be.Uint32(b))
		b = b[4:]
		if size == -1 {
			v.list = append(v.list, value{at: -1, typ: elem, null: true})
			continue
		}
		if size < 0 || int(size) > len(b) {
			return v, bad
		}
		item, err := decodeBinary(b[:size], elem, env)
		if err != nil {
			return v, err
		}
		v.list, b = append(v.list, item), b[size:]
	}
	if len(b) != 0 {
		return v, bad
	}
	return v, nil
}
