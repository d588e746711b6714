package script

import (
	"slices"

	"github.com/ordergrid/ordergrid/gateway/fix"
)

// Echo is the application that the scripts expect: it sends back NewOrderSingle and
// SecurityDefinition, with their fields in the order of their tags. One with PossResend
// whose ClOrdID was there before is ignored.
type Echo struct{ seen map[string]bool }

// LoggedOn implements fix.Application.
func (e *Echo) LoggedOn(*fix.Session) { e.seen = map[string]bool{} }

// LoggedOut implements fix.Application.
func (e *Echo) LoggedOut(*fix.Session, error) {}

// Takes implements fix.Application.
func (e *Echo) Takes(msgType []byte) bool { return string(msgType) == "d" }

// NewOrder implements fix.Application.
func (e *Echo) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	id := string(o.ClOrdID)
	if o.PossResend && e.seen[id] {
		return nil
	}
	e.seen[id] = true
	e.echo(s, o.Message)
	return nil
}

// Other implements fix.Application.
func (e *Echo) Other(s *fix.Session, m *fix.Message) *fix.Refusal {
	e.echo(s, m)
	return nil
}

// Cancel implements fix.Application.
func (e *Echo) Cancel(*fix.Session, *fix.CancelRequest) *fix.Refusal { return unsupported }

// Replace implements fix.Application.
func (e *Echo) Replace(*fix.Session, *fix.ReplaceRequest) *fix.Refusal { return unsupported }

// Status implements fix.Application.
func (e *Echo) Status(*fix.Session, *fix.StatusRequest) *fix.Refusal { return unsupported }

// MassCancel implements fix.Application.
func (e *Echo) MassCancel(*fix.Session, *fix.MassCancelRequest) *fix.Refusal { return unsupported }

var unsupported = &fix.Refusal{Business: true, Why: fix.UnsupportedType, Words: "Unsupported Message Type"}

// header are tags of the standard header, without PossResend, which is echoed.
var header = []int{35, 34, 49, 52, 56, 43, 122, 115, 116, 128, 129, 144, 145, 369, 50, 57}

func (e *Echo) echo(s *fix.Session, m *fix.Message) {
	type item struct {
		tag   int
		value []byte
	}
	var body []item
	m.Fields(func(tag int, value []byte) {
		if !slices.Contains(header, tag) {
			body = append(body, item{tag, value})
		}
	})
	slices.SortStableFunc(body, func(a, b item) int {
		if x, y := rank(a.tag), rank(b.tag); x != y {
			return x - y
		}
		return a.tag - b.tag
	})
	s.Send(m.Now(), string(m.Type()), func(b *fix.Body) {
		for _, f := range body {
			b.Bytes(f.tag, f.value)
		}
	})
}

// rank puts PossResend, a field of the header, before the body.
func rank(tag int) int {
	if tag == 97 {
		return 0
	}
	return 1
}
