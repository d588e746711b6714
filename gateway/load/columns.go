package load

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Mapping says which FIX fields the columns of a table are.
type Mapping struct {
	Columns map[string]string // column name to tag, FIX name, or - for a column that is left out
	Set     map[string]string // tag or FIX name to the value that every row gets
	Version string            // FIX.4.4 when empty, or FIX.4.2, or FIXT.1.1 for FIX 5.0 SP2
}

// tagOf has the FIX names that need no mapping, without case, spaces and underscores.
var tagOf = map[string]int{
	"account": 1, "clordid": 11, "currency": 15, "execinst": 18, "handlinst": 21, "orderqty": 38, "quantity": 38, "qty": 38,
	"ordtype": 40, "origclordid": 41, "price": 44, "possdupflag": 43, "sendercompid": 49, "sendersubid": 50, "sendingtime": 52,
	"side": 54, "symbol": 55, "targetcompid": 56, "targetsubid": 57, "text": 58, "timeinforce": 59, "transacttime": 60,
	"settltype": 63, "settldate": 64, "msgseqnum": 34, "msgtype": 35, "stoppx": 99, "exdestination": 100, "securityid": 48,
	"securityidsource": 22, "securityexchange": 207, "maxfloor": 111, "minqty": 110, "expiredate": 432, "expiretime": 126,
	"cashorderqty": 152, "maturitymonthyear": 200, "securitytype": 167, "ordercapacity": 528, "clientid": 109,
}

// header are the fields that a FIX message has first, in this order.
var header = []int{35, 49, 56, 34, 52}

// isTime has the fields of type UTCTimestamp.
var isTime = map[int]bool{52: true, 60: true, 126: true}

// Shape is what the rows of a source are: a Mapping of orders, or Entries of a region.
type Shape interface {
	// maker makes rows of a table with these columns.
	maker(names []string) (maker, error)
	// id tells this shape from others of the same kind; empty if the rows themselves tell.
	id() string
	// forms are how its values are written, where the source has types.
	forms() forms
}

// maker makes an order or a value of the nth row of a table: Key, Message and Err of r.
type maker interface {
	fill(r *Row, values []string, n int64)
}

// made is a row of a table.
func made(m maker, where string, values []string, n int64) Row {
	r := Row{Where: where}
	if m.fill(&r, values, n); r.Err != nil {
		r.Key, r.Message = nil, fmt.Appendf(nil, "%q", values)
	}
	return r
}

func (m Mapping) id() string { return "" }

// forms implements Shape: those of FIX.
func (m Mapping) forms() forms { return forms{date: "20060102", yes: "Y", no: "N"} }

func (m Mapping) maker(names []string) (maker, error) { return newColumns(names, m) }

// fill implements maker.
func (c *columns) fill(r *Row, values []string, n int64) { r.Message, r.Err = c.message(values, n) }

// columns build the message of a row.
type columns struct {
	begin  string
	tags   []int // by column, 0: left out
	names  []string
	set    map[int]string
	values map[int]string
	order  []int // all tags behind the header
	body   []byte
	out    []byte
}

func newColumns(names []string, m Mapping) (*columns, error) {
	c := &columns{begin: "8=FIX.4.4\x019=", names: names, set: map[int]string{}, values: map[int]string{}}
	switch m.Version {
	case "", "FIX.4.4":
	case "FIX.4.2", "FIXT.1.1":
		c.begin = "8=" + m.Version + "\x019="
	default:
		return nil, fmt.Errorf("FIX version: value %q, allowed: FIX.4.4, FIX.4.2, FIXT.1.1 (FIX 5.0 SP2)", m.Version)
	}
	for name, value := range m.Set {
		tag, err := parseTag(name)
		if err != nil {
			return nil, fmt.Errorf("set %s=%s: %w", name, value, err)
		}
		c.set[tag] = value
	}
	unused := maps.Clone(m.Columns)
	for _, name := range names {
		to, mapped := m.Columns[name]
		if !mapped {
			to = name
		}
		delete(unused, name)
		tag, err := 0, error(nil)
		if to != "-" {
			tag, err = parseTag(to)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("column %q: %w; name its field with a mapping %s=TAG, or leave it out with %s=-", name, err, name, name)
		case tag != 0 && slices.Contains(c.tags, tag):
			return nil, fmt.Errorf("column %q is tag %d, as another column is; leave one of them out with a mapping %s=-", name, tag, name)
		}
		c.tags = append(c.tags, tag)
	}
	if len(unused) > 0 {
		return nil, fmt.Errorf("mapping of column %q: there is no such column, allowed: %s", slices.Sorted(maps.Keys(unused))[0], strings.Join(names, ", "))
	}
	for tag := range c.set {
		c.order = append(c.order, tag)
	}
	slices.Sort(c.order)
	c.order = append(slices.Clone(c.tags), c.order...)
	c.order = slices.DeleteFunc(c.order, func(tag int) bool { return tag == 0 || slices.Contains(header, tag) })
	return c, nil
}

func parseTag(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		if n == 8 || n == 9 || n == 10 {
			return 0, fmt.Errorf("tag %d is computed, allowed: any other", n)
		}
		return n, nil
	}
	plain := strings.NewReplacer("_", "", " ", "", "-", "").Replace(strings.ToLower(name))
	if tag, ok := tagOf[plain]; ok {
		return tag, nil
	}
	return 0, fmt.Errorf("%q is no FIX tag, allowed: a number, or a name such as ClOrdID, Symbol, Side, OrderQty, Price", name)
}

// message is that of a row; seq is its MsgSeqNum unless a column is. It is the same whenever the row is read again: a
// message that is resubmitted must equal the one that the grid has.
func (c *columns) message(row []string, seq int64) ([]byte, error) {
	clear(c.values)
	for tag, value := range c.set {
		c.values[tag] = value
	}
	for i, value := range row {
		if i >= len(c.tags) || c.tags[i] == 0 || value == "" {
			continue
		}
		if isTime[c.tags[i]] {
			var err error
			if value, err = utcTimestamp(value); err != nil {
				return nil, fmt.Errorf("column %q: %w", c.names[i], err)
			}
		}
		if strings.IndexByte(value, order.SOH) >= 0 {
			return nil, fmt.Errorf("column %q has a byte 0x01, which separates FIX fields; allowed: any other", c.names[i])
		}
		c.values[c.tags[i]] = value
	}
	if len(row) != len(c.tags) {
		return nil, fmt.Errorf("it has %d columns, allowed: %d, as the first row", len(row), len(c.tags))
	}
	for tag, value := range map[int]string{35: "D", 49: "LOAD", 56: "ORDERGRID", 34: strconv.FormatInt(seq, 10), 52: c.values[60]} {
		if c.values[tag] == "" {
			c.values[tag] = value
		}
	}
	c.body = c.body[:0]
	for _, tag := range header {
		c.append(tag)
	}
	for i, tag := range c.order {
		if !slices.Contains(c.order[:i], tag) {
			c.append(tag)
		}
	}
	return c.seal(), nil
}

func (c *columns) append(tag int) {
	if value := c.values[tag]; value != "" {
		c.body = append(append(append(strconv.AppendInt(c.body, int64(tag), 10), '='), value...), order.SOH)
	}
}

// seal puts BeginString, BodyLength and CheckSum around the body.
func (c *columns) seal() []byte {
	c.out = append(strconv.AppendInt(append(c.out[:0], c.begin...), int64(len(c.body)), 10), order.SOH)
	c.out = append(c.out, c.body...)
	return fmt.Appendf(c.out, "10=%03d\x01", order.CheckSum(c.out))
}

// layouts of times that databases and spreadsheets write.
var layouts = []string{"20060102-15:04:05.999999999", time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999"}

// utcTimestamp is the time as FIX writes it; without a zone it is UTC.
func utcTimestamp(text string) (string, error) {
	for _, layout := range layouts {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if t = t.UTC(); t.Nanosecond() == 0 {
			return t.Format("20060102-15:04:05"), nil
		}
		return t.Format("20060102-15:04:05.000"), nil
	}
	return "", fmt.Errorf("%.40q is no time, allowed: 20260102-15:04:05.000, 2026-01-02T15:04:05Z, 2026-01-02 15:04:05+00", text)
}

// readable is the message with | for SOH.
func readable(message []byte) string {
	return string(bytes.ReplaceAll(message, []byte{order.SOH}, []byte{'|'}))
}
