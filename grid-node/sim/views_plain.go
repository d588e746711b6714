package sim

import (
	"fmt"
	"hash/fnv"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// plainRow is what a view's row has to be, by a reading of the entry that shares nothing with package view: the message
// is split at its separators.
type plainRow struct {
	seq      uint64
	kind     byte // 'D', 'F', 'G'; 0: the entry is no order
	session  uint32
	received int64
	tags     map[string]string
	state    string // "" of a cancel
}

func plainRowOf(entry []byte) plainRow {
	var e order.Entry
	if _, err := order.DecodeEntry(entry, &e); err != nil || e.Kind != order.KindOrder {
		return plainRow{seq: e.Seq}
	}
	r := plainRow{seq: e.Seq, session: e.Session, received: e.TimeNs, tags: map[string]string{}}
	for field := range strings.SplitSeq(string(order.Payload(entry)), "\x01") {
		tag, value, _ := strings.Cut(field, "=")
		r.tags[tag] = value
	}
	r.kind = r.tags["35"][0]
	return r
}

// settleStates sets the states of the rows of a log, in its order: an order is replaced or cancelled by the first message
// behind it that names it, unless another order of the name came between.
func settleStates(rows []plainRow) []plainRow {
	latest := map[string]int{}
	for i := range rows {
		r := &rows[i]
		if r.kind == 0 {
			continue
		}
		if subject, there := latest[r.tags["41"]]; there && r.kind != 'D' && rows[subject].state == view.StateNew {
			rows[subject].state = map[byte]string{'F': view.StateCancelled, 'G': view.StateReplaced}[r.kind]
		}
		if r.state = ""; r.kind != 'F' {
			r.state = view.StateNew
		}
		latest[r.tags["11"]] = i
	}
	return rows
}

// is compares a field's value with the entry's.
func (r *plainRow) is(f view.Field, v view.Value) bool {
	var want string
	switch f {
	case view.Seq:
		return v.Kind == view.Int && v.Int == int64(r.seq)
	case view.Session:
		return v.Kind == view.Int && v.Int == int64(r.session)
	case view.Received:
		return v.Kind == view.Time && v.Int == r.received
	case view.State:
		want = r.state
	case view.OrigClOrdID:
		if want = r.tags["41"]; r.kind == 'D' {
			want = ""
		}
	case view.TransactTime:
		at, err := time.Parse("20060102-15:04:05.000", r.tags["60"])
		return err == nil && v.Kind == view.Time && v.Int == at.UnixNano()
	case view.Price, view.OrderQty:
		return r.sameNumber(r.tags[strconv.Itoa(int(f))], v)
	default:
		want = r.tags[strconv.Itoa(int(f))]
	}
	return want == v.Text && (v.Kind == view.Text) == (want != "")
}

func (r *plainRow) sameNumber(text string, v view.Value) bool {
	if text == "" {
		return v.Kind == view.Null
	}
	if text == v.String() {
		return v.Kind == view.Decimal
	}
	want, ok := new(big.Rat).SetString(text)
	got, ok2 := new(big.Rat).SetString(v.String())
	return ok && ok2 && v.Kind == view.Decimal && want.Cmp(got) == 0
}

// simSymbols are the symbols of orders in worlds with views.
const simSymbols = 5

// variedOrder is a valid FIX message with this ClOrdID: its fields follow from that. Some replace or cancel an order that
// the same client sent before.
func variedOrder(clOrdID string) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(clOrdID))
	n := h.Sum64()
	take := func(k uint64) (r uint64) { r, n = n%k, n/k; return r }
	kind, orig := "D", ""
	if i := strings.LastIndexByte(clOrdID, '-'); take(3) == 0 && i > 0 && clOrdID[0] == 'c' {
		if seq, err := strconv.ParseUint(clOrdID[i+1:], 10, 64); err == nil && seq > 4 {
			kind = []string{"F", "G"}[take(2)]
			orig = fmt.Sprintf("41=%s%d\x01", clOrdID[:i+1], seq-1-take(4))
		}
	}
	body := fmt.Sprintf("35=%s\x0149=P\x0156=G\x0134=1\x0152=20071115-14:30:00.123\x0111=%s\x01%s", kind, clOrdID, orig)
	if a := take(4); a > 0 {
		body += fmt.Sprintf("1=ACC%d\x01", a)
	}
	body += fmt.Sprintf("55=SYM%d\x0154=%d\x0160=20071115-14:%02d:00.123\x0138=%d\x0140=2\x01", take(simSymbols), 1+take(2), take(60), 1+take(1000))
	body += fmt.Sprintf("44=%d.%02d\x01", take(500), take(100))
	if take(2) == 0 {
		body += fmt.Sprintf("59=%d\x01", take(5))
	}
	b := fmt.Appendf(make([]byte, 0, 256), "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	if !order.Seal(b) {
		panic("order has no trailer")
	}
	return b
}
