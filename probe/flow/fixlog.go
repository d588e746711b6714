package flow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// fixFields are the fields of a message that a replay uses. Everything else, accounts and names
// above all, is ignored.
type fixFields struct {
	msgType, sending, transact, clOrdID, origClOrdID, symbol, side, ordType, qty, price string
}

// maxBack is how much earlier a message may be than the previous one: a log of several sessions is
// not quite in order. It then counts as sent at the same time.
const maxBack = time.Second

// fix parses one line of a log: a FIX message, with any prefix. Fields end with SOH or, as logs are
// often printed, with '|'.
func (r *reader) fix(text string) error {
	start := strings.Index(text, "8=FIX")
	if start < 0 {
		r.Skipped++
		return nil
	}
	f, err := r.fixSplit(text[start:])
	if err != nil {
		return err
	}
	switch f.msgType {
	case "":
		return r.fault("MsgType (35)", "", "the tag is required in every message")
	case "D", "F", "G":
	default:
		r.Skipped++
		return nil
	}
	at, err := r.fixTime(f)
	if err != nil {
		return err
	}
	if len(f.clOrdID) == 0 || len(f.clOrdID) > 64 {
		return r.fault("ClOrdID (11)", f.clOrdID, "1 to 64 characters")
	}
	if f.msgType == "D" {
		return r.fixNew(at, f)
	}
	return r.fixChange(at, f)
}

func (r *reader) fixSplit(text string) (f fixFields, err error) {
	separator := "\x01"
	if !strings.Contains(text, separator) {
		separator = "|"
	}
	into := map[string]*string{"35": &f.msgType, "52": &f.sending, "60": &f.transact, "11": &f.clOrdID, "41": &f.origClOrdID,
		"55": &f.symbol, "54": &f.side, "40": &f.ordType, "38": &f.qty, "44": &f.price}
	for field := range strings.SplitSeq(text, separator) {
		if strings.TrimSpace(field) == "" {
			continue
		}
		tag, value, ok := strings.Cut(field, "=")
		if _, err := strconv.ParseUint(tag, 10, 31); !ok || err != nil {
			return f, r.fault("field", field, "tag=value, fields ended by SOH or '|'")
		}
		if v := into[tag]; v != nil && *v == "" {
			*v = value
		}
	}
	return f, nil
}

// fixTime parses SendingTime (52), or TransactTime (60) where a log has none.
func (r *reader) fixTime(f fixFields) (int64, error) {
	name, value := "SendingTime (52)", f.sending
	if value == "" {
		name, value = "TransactTime (60)", f.transact
	}
	const allowed = "UTC YYYYMMDD-HH:MM:SS with up to nine decimals, in 52 or 60"
	if len(value) > len("20060102-15:04:05.000000000") {
		return 0, r.fault(name, value, allowed)
	}
	t, err := time.Parse("20060102-15:04:05", value) // accepts decimals too
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return 0, r.fault(name, value, allowed)
	}
	at := t.UnixNano()
	if len(r.messages) == 0 {
		return at, nil
	}
	if back := r.last - at; back > int64(maxBack) {
		return 0, r.fault(name, value, fmt.Sprintf("at most %v before that of the message above", maxBack))
	}
	if at-r.first > int64(48*time.Hour) {
		return 0, r.fault(name, value, "within 48 hours of the first message")
	}
	return max(at, r.last), nil
}

func (r *reader) fixNew(at int64, f fixFields) error {
	if _, ok := r.live[f.clOrdID]; ok {
		return r.fault("ClOrdID (11)", f.clOrdID, "not one of a live order")
	}
	m := recorded{target: -1, root: int32(len(r.messages))}
	var err error
	if m.symbol, err = r.symbol(strings.Clone(f.symbol)); err != nil {
		return err
	}
	switch f.side {
	case "1", "2", "5":
		m.side = f.side[0]
	default:
		return r.fault("Side (54)", f.side, "1 buy, 2 sell, 5 sell short")
	}
	switch f.ordType {
	case "1", "2":
		m.orderType = f.ordType[0]
	case "":
		return r.fault("OrdType (40)", "", "the tag is required in a new order")
	default: // stops, pegs: the grid does not match orders
		m.orderType = '2'
	}
	if m.qty, err = r.fixQty(f.qty); err != nil {
		return err
	}
	if f.price == "" {
		m.orderType = '1'
	} else if m.price, err = r.fixPrice(f.price); err != nil {
		return err
	}
	if m.orderType == '1' {
		m.price = 0
	}
	n := r.add(at, m)
	r.live[strings.Clone(f.clOrdID)] = liveOrder{n, n}
	return nil
}

// fixChange parses a cancel or a replace.
func (r *reader) fixChange(at int64, f fixFields) error {
	if f.origClOrdID == "" {
		return r.fault("OrigClOrdID (41)", "", "the tag is required in a cancel or replace")
	}
	o, ok := r.live[f.origClOrdID]
	if !ok {
		r.Orphans++
		return nil
	}
	m := r.messages[o.current]
	m.target, m.root = o.current, o.root
	var err error
	if f.msgType == "G" {
		if _, ok := r.live[f.clOrdID]; ok {
			return r.fault("ClOrdID (11)", f.clOrdID, "not one of a live order")
		}
		m.root = ^o.root
		if f.qty != "" {
			if m.qty, err = r.fixQty(f.qty); err != nil {
				return err
			}
		}
		if f.price != "" && m.orderType != '1' {
			if m.price, err = r.fixPrice(f.price); err != nil {
				return err
			}
		}
	}
	n := r.add(at, m)
	delete(r.live, f.origClOrdID)
	if f.msgType == "G" {
		r.live[strings.Clone(f.clOrdID)] = liveOrder{n, o.root}
	}
	return nil
}

func (r *reader) fixQty(s string) (uint32, error) {
	v, ok := decimal(s, 0)
	if !ok || v < 1 {
		return 0, r.fault("OrderQty (38)", s, "a decimal number from 1 to 4294967295; decimals are cut off")
	}
	return uint32(v), nil
}

func (r *reader) fixPrice(s string) (uint32, error) {
	v, ok := decimal(s, 4)
	if !ok || v < 1 {
		return 0, r.fault("Price (44)", s, "a decimal number from 0.0001 to 429496.7295")
	}
	return uint32(v), nil
}

// decimal parses an unsigned decimal number times 10^places, truncating smaller digits; false if it
// is invalid or does not fit 32 bits.
func decimal(s string, places int) (uint64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if len(s) > 20 || whole == "" && fraction == "" || point && len(s) == 1 {
		return 0, false
	}
	v := uint64(0)
	for i := range len(whole) {
		d := whole[i] - '0'
		if d > 9 {
			return 0, false
		}
		if v = v*10 + uint64(d); v > math.MaxUint32 {
			return 0, false
		}
	}
	for i := range max(places, len(fraction)) {
		d := byte(0)
		if i < len(fraction) {
			if d = fraction[i] - '0'; d > 9 {
				return 0, false
			}
		}
		if i < places {
			v = v*10 + uint64(d)
		}
	}
	return v, v <= math.MaxUint32
}
