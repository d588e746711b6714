package replay

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// message is the fields of a FIX message; of a tag that is there twice the last.
type message map[string]string

func readMessage(b []byte) message {
	m := message{}
	for field := range strings.SplitSeq(string(b), "\x01") {
		if tag, v, ok := strings.Cut(field, "="); ok {
			m[tag] = v
		}
	}
	return m
}

// means reports how an instruction differs from what the message asks for, "" if it does not.
func (l *Log) means(i *order.Instruction, m message) string {
	in := &l.instruments[i.Book]
	if m["55"] != in.Symbol {
		return fmt.Sprintf("it is of book %d, which trades %s; the message is of %q", i.Book, in.Symbol, m["55"])
	}
	if op, want := i.Op, map[string]order.InstructionOp{"D": order.InstructEnter, "F": order.InstructCancel, "G": order.InstructReplace}[m["35"]]; op != want {
		return fmt.Sprintf("it is instruction %d, the message is of type %q", op, m["35"])
	}
	if orig := l.names[name{i.Owner, m["41"]}]; i.Op != order.InstructEnter && orig != i.Orig {
		return fmt.Sprintf("it means order %d; what rests of owner %d as %q is order %d", i.Orig, i.Owner, m["41"], orig)
	}
	if i.Op == order.InstructCancel {
		return ""
	}
	tif := map[string]uint8{"": 0, "0": 0, "1": 0, "3": 1, "4": 2}[m["59"]]
	kind := map[string]uint8{"1": 2, "2": 1, "3": 4, "4": 3}[m["40"]]
	if fmt.Sprint(i.Side) != m["54"] || i.Type != kind || i.TIF != tif || (i.Flags&order.InstructPost != 0) != strings.Contains(m["18"], "6") {
		return fmt.Sprintf("side %d, type %d, time in force %d, flags %d; the message has 54=%s 40=%s 59=%s 18=%s", i.Side, i.Type, i.TIF, i.Flags, m["54"], m["40"], m["59"], m["18"])
	}
	limited, stops := kind == 1 || kind == 3, kind >= 3
	for _, x := range []struct {
		tag    string
		units  int64
		digits uint8
		has    bool
	}{
		{"38", i.Qty, in.QtyDigits, true}, {"44", i.Price, in.PriceDigits, limited}, {"99", i.Stop, in.PriceDigits, stops}, {"111", i.Display, in.QtyDigits, true},
		{"2362", int64(i.Group), 0, true}, {"2964", int64(i.SMP), 0, true},
	} {
		v := m[x.tag]
		if !x.has || v == "" {
			v = "0"
		}
		if !isUnits(v, x.digits, x.units) {
			return fmt.Sprintf("%d units of %d digits; the message has %s=%s", x.units, x.digits, x.tag, v)
		}
	}
	return ""
}

// isUnits reports whether a decimal number is so many units.
func isUnits(v string, digits uint8, units int64) bool {
	r, ok := new(big.Rat).SetString(v)
	if !ok {
		return false
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	return r.Mul(r, new(big.Rat).SetInt(scale)).Cmp(new(big.Rat).SetInt64(units)) == 0
}
