package replica_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// scriptDecider is the functions of a pod in a script. It does what the beginning of a
// ClOrdID asks for, and counts its calls.
type scriptDecider struct {
	n     *node
	calls int
	order order.Order
}

func (s *scriptDecider) Decide(_ int64, msg []byte, f *order.Order, d *replica.Decision) {
	*d = s.decide(msg, f)
}

func (s *scriptDecider) decide(msg []byte, f *order.Order) replica.Decision {
	s.calls++
	id := string(msg[f.ClOrdIDOff:][:f.ClOrdIDLen])
	s.n.w.logf("%s decides on %s, call %d", s.n.name(), id, s.calls)
	switch {
	case strings.HasPrefix(id, "refuse"):
		return replica.Decision{Reason: 3, Text: []byte("above the limit")}
	case strings.HasPrefix(id, "long"):
		return s.accept(with(msg, manyTags(20)))
	case strings.HasPrefix(id, "other"):
		return s.accept(fixOrder("another", 0))
	case strings.HasPrefix(id, "desk"):
		return s.accept(with(msg, fmt.Sprintf("10001=%s.%d\x01", s.n.name(), s.calls)))
	}
	return replica.Decision{Message: msg, Fields: &f.Fields}
}

func (s *scriptDecider) accept(msg []byte) replica.Decision {
	if err := order.Parse(msg, &s.order); err != nil {
		s.n.w.tb.Fatal(err)
	}
	return replica.Decision{Message: msg, Fields: &s.order.Fields}
}

// manyTags are n long fields.
func manyTags(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d=%s\x01", 10001+i, strings.Repeat("x", order.MaxValue))
	}
	return b.String()
}

// with is a message with more fields at its end.
func with(msg []byte, more string) []byte {
	body := msg[bytes.Index(msg, []byte("\x0135="))+1 : len(msg)-len("10=000\x01")]
	out := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s%s10=000\x01", len(body)+len(more), body, more)
	order.Seal(out)
	return out
}

// entry prints an entry of all replicas, one line when it is the same everywhere.
func (s *script) entry(d *datadriven.TestData) {
	var seq uint64
	arg(d, "seq", &seq)
	var texts []string
	for _, n := range s.w.nodes {
		if last, _ := n.st.Last(); n.up && last >= seq {
			text := strings.ReplaceAll(string(order.Payload(n.st.Get(seq))), "\x01", "|")
			if len(texts) == 0 || texts[0] != text {
				texts = append(texts, text)
			}
		}
	}
	for _, t := range texts {
		s.w.logf("entry %d is %s", seq, t)
	}
}
