package flow

import (
	"path/filepath"
	"strconv"
	"strings"
)

// lobsterColumns of a message file, in order.
var lobsterColumns = [...]string{"time", "type", "order id", "size", "price", "direction"}

// Event types of a LOBSTER message file.
const (
	lobsterNew           = 1
	lobsterReduce        = 2 // a part is cancelled: a replace with what is left
	lobsterDelete        = 3
	lobsterExecute       = 4
	lobsterExecuteHidden = 5
	lobsterCross         = 6
	lobsterHalt          = 7
)

// symbolOfName: LOBSTER names files AMZN_2012-06-21_34200000_…_message_10.csv, the only place of
// the symbol.
func symbolOfName(name string) string {
	s, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), "_")
	s = strings.ToUpper(s)
	if len(s) == 0 || len(s) > 6 || strings.ContainsFunc(s, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '.' }) {
		return "LOBSTER"
	}
	return s
}

// lobster parses one line: seconds after midnight, event type, order id, shares, price in 1/10,000
// dollar, 1 for a buy or -1 for a sell order.
func (r *reader) lobster(text string) error {
	var f [len(lobsterColumns)]string
	n := 0
	for rest, more := text, true; more; n++ {
		var v string
		v, rest, more = strings.Cut(rest, ",")
		if n < len(f) {
			f[n] = strings.TrimSpace(v)
		}
	}
	if n != len(f) {
		return r.fault("number of columns", strconv.Itoa(n), "6: "+strings.Join(lobsterColumns[:], ","))
	}
	if r.line == 1 && strings.EqualFold(f[0], "time") {
		r.Skipped++
		return nil
	}
	at, ok := secondsOfDay(f[0])
	if !ok {
		return r.fault("time", f[0], "seconds after midnight from 0 to 172800, such as 34200.017459617")
	}
	if at < r.last {
		return r.fault("time", f[0], "not before that of the message above")
	}
	kind, err := strconv.Atoi(f[1])
	if err != nil || kind < lobsterNew || kind > lobsterHalt {
		return r.fault("type", f[1], "1 new, 2 partly cancelled, 3 deleted, 4 and 5 executed, 6 cross trade, 7 halt")
	}
	if kind >= lobsterExecuteHidden {
		r.Skipped++
		return nil
	}
	return r.lobsterEvent(at, kind, f)
}

func (r *reader) lobsterEvent(at int64, kind int, f [len(lobsterColumns)]string) error {
	id, size, price, direction := f[2], f[3], f[4], f[5]
	if _, err := strconv.ParseUint(id, 10, 63); err != nil {
		return r.fault("order id", id, "digits")
	}
	qty, err := strconv.ParseUint(size, 10, 31)
	if err != nil || qty == 0 {
		return r.fault("size", size, "a whole number of shares from 1 to 2147483647")
	}
	ticks, err := strconv.ParseUint(price, 10, 32)
	if err != nil || ticks == 0 {
		return r.fault("price", price, "a whole number of 1/10,000 dollars from 1 to 4294967295")
	}
	if direction != "1" && direction != "-1" {
		return r.fault("direction", direction, "1 for a buy order, -1 for a sell order")
	}
	if kind == lobsterNew {
		return r.lobsterOrder(at, id, uint32(qty), uint32(ticks), direction)
	}
	o, ok := r.live[id]
	if !ok {
		if kind == lobsterExecute {
			r.Skipped++
		} else {
			r.Orphans++
		}
		return nil
	}
	m := r.messages[o.current]
	left := max(0, int64(m.qty)-int64(qty))
	switch {
	case kind == lobsterExecute:
		r.Skipped++
		if left == 0 {
			delete(r.live, id)
		}
		return nil
	case kind == lobsterReduce && left > 0:
		m.target, m.root, m.qty = o.current, ^o.root, uint32(left)
		r.live[id] = liveOrder{r.add(at, m), o.root}
	default:
		m.target, m.root = o.current, o.root
		r.add(at, m)
		delete(r.live, id)
	}
	return nil
}

func (r *reader) lobsterOrder(at int64, id string, qty, price uint32, direction string) error {
	symbol, err := r.symbol(r.defaultSymbol)
	if err != nil {
		return err
	}
	if _, ok := r.live[id]; ok {
		return r.fault("order id", id, "not one of a live order")
	}
	m := recorded{target: -1, root: int32(len(r.messages)), qty: qty, price: price, symbol: symbol, side: '1', orderType: '2'}
	if direction == "-1" {
		m.side = '2'
	}
	n := r.add(at, m)
	r.live[strings.Clone(id)] = liveOrder{n, n}
	return nil
}

// secondsOfDay parses decimal seconds into ns, without the rounding of floating point. Digits
// beyond ns are truncated.
func secondsOfDay(s string) (ns int64, ok bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if len(whole) == 0 || len(whole) > 6 || point && (fraction == "" || len(fraction) > 18) {
		return 0, false
	}
	sec, err := strconv.ParseUint(whole, 10, 32)
	if err != nil || sec > 172800 {
		return 0, false
	}
	ns = int64(sec) * 1e9
	scale := int64(1e8)
	for i := range len(fraction) {
		d := fraction[i] - '0'
		if d > 9 {
			return 0, false
		}
		ns += int64(d) * scale
		scale /= 10
	}
	return ns, true
}
