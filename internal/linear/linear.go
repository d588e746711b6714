// Package linear checks the linearizability of a partition's history: whether the clients'
// observations can be explained by one copy that does one thing at a time. The simulator and the
// failover suites use it.
//
// The check is Porcupine's. A history is split by ClOrdID first: an order is written once and never
// changed, so each one is an object of its own, and the check stays linear in the length of the
// history.
package linear

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind of an operation.
type Kind uint8

// Kinds.
const (
	Submit Kind = iota + 1 // Seq: where the order was acknowledged to be; 0 if the answer never came
	Get                    // Seq: the place of the order in the answer; 0: it was not found
)

// Never is the Return of a write with unknown outcome: it may still happen, at any time.
const Never = math.MaxInt64

// Op is one operation of a history. Call and Return are of one clock, or of clocks that agree. A
// write whose answer was lost has Return Never and Seq 0; a failed read is left out, as it proves
// nothing.
type Op struct {
	Client       int
	Kind         Kind
	Key          string // ClOrdID
	Call, Return int64
	Seq          uint64
	Note         string // for messages: the answering node, the epoch
}

func (o Op) String() string {
	what := "submit"
	if o.Kind == Get {
		what = "get   "
	}
	result := fmt.Sprintf("seq %d", o.Seq)
	switch {
	case o.Return == Never:
		result = "no answer"
	case o.Seq == 0:
		result = "not found"
	}
	end := "..."
	if o.Return != Never {
		end = fmt.Sprintf("%.3f", float64(o.Return)/1e6)
	}
	return fmt.Sprintf("[%12.3f .. %12s] ms client %d %s %s: %s %s", float64(o.Call)/1e6, end, o.Client, what, o.Key, result, o.Note)
}

// Violation is a part of a history that no order of its operations explains.
type Violation struct {
	Key  string
	Why  string
	Ops  []Op // of Key, by time
	Late bool // the check ran out of time: the result is unknown
}

func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "order %s: %s", v.Key, v.Why)
	for _, o := range v.Ops {
		fmt.Fprintf(&b, "\n  %v", o)
	}
	return b.String()
}

// state of one order: 0 before it exists, then its place.
type state = uint64

// step of the sequential specification. A write without an answer gets the place reported by the
// first read after it, so its state is "somewhere".
const somewhere = state(math.MaxUint64)

func step(s state, o *Op) (bool, state) {
	switch {
	case o.Kind == Submit && o.Return == Never:
		if s == 0 {
			return true, somewhere
		}
		return true, s // sent again, applied once
	case o.Kind == Submit:
		return s == 0 || s == somewhere || s == o.Seq, o.Seq
	case o.Seq == 0:
		return s == 0, s
	default:
		return s == o.Seq || s == somewhere, o.Seq
	}
}

// Model is the specification of one order, for Porcupine and its pictures.
// Inputs are *Op; outputs are not used.
func Model() porcupine.Model {
	return porcupine.Model{
		Init:  func() any { return state(0) },
		Step:  func(s, in, _ any) (bool, any) { return unbox(step(s.(state), in.(*Op))) },
		Equal: func(a, b any) bool { return a.(state) == b.(state) },
		DescribeOperation: func(in, _ any) string {
			return in.(*Op).String()
		},
		DescribeState: func(s any) string {
			switch s.(state) {
			case 0:
				return "not there"
			case somewhere:
				return "there, place not known yet"
			}
			return fmt.Sprintf("at %d", s)
		},
	}
}

func unbox(ok bool, s state) (bool, any) { return ok, s }

// timeout of one order's check. Histories of one order are short; this bounds exceptions.
const timeout = 30 * time.Second

// Check checks a whole history and returns the first order, by name, that cannot be explained; nil
// if there is none.
func Check(ops []Op) *Violation {
	model := Model()
	for _, group := range byKey(ops) {
		if trivial(group) {
			continue
		}
		switch porcupine.CheckOperationsTimeout(model, operations(group), timeout) {
		case porcupine.Illegal:
			return &Violation{Key: group[0].Key, Why: "not linearizable", Ops: values(group)}
		case porcupine.Unknown:
			return &Violation{Key: group[0].Key, Why: "the check took too long, nothing is known", Ops: values(group), Late: true}
		}
	}
	return nil
}

// trivial is for a single operation: alone it is always valid, unless it found an order that was
// never written.
func trivial(group []*Op) bool { return len(group) == 1 && group[0].Kind == Submit }

// byKey groups the operations by order, orders by name, each by call.
func byKey(ops []Op) [][]*Op {
	sorted := make([]*Op, len(ops))
	for i := range ops {
		sorted[i] = &ops[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Op) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(a.Call, b.Call))
	})
	var groups [][]*Op
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n].Key == sorted[0].Key {
			n++
		}
		groups = append(groups, sorted[:n:n])
		sorted = sorted[n:]
	}
	return groups
}

func operations(group []*Op) []porcupine.Operation {
	out := make([]porcupine.Operation, len(group))
	for i, o := range group {
		out[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return}
	}
	return out
}

func values(group []*Op) []Op {
	out := make([]Op, len(group))
	for i, o := range group {
		out[i] = *o
	}
	return out
}

// WriteHTML writes Porcupine's picture of a history, best that of one order
// (Violation.Ops).
func WriteHTML(w io.Writer, ops []Op) error {
	model := Model()
	group := make([]*Op, len(ops))
	for i := range ops {
		group[i] = &ops[i]
	}
	_, info := porcupine.CheckOperationsVerbose(model, operations(group), timeout)
	return porcupine.Visualize(model, info, w)
}

// CheckOrder checks that the log has the order of real time: an order that was acknowledged before
// another was sent precedes it. It compares orders with each other, which Check does not.
func CheckOrder(ops []Op) *Violation {
	var acked []*Op
	for i := range ops {
		if o := &ops[i]; o.Kind == Submit && o.Return != Never {
			acked = append(acked, o)
		}
	}
	calls := slices.Clone(acked)
	slices.SortFunc(calls, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	slices.SortFunc(acked, func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	var highest *Op // of those that had returned before the present call
	next := 0
	for _, o := range calls {
		for next < len(acked) && acked[next].Return < o.Call {
			if highest == nil || acked[next].Seq > highest.Seq {
				highest = acked[next]
			}
			next++
		}
		if highest != nil && o.Seq <= highest.Seq && o.Key != highest.Key {
			return &Violation{Key: o.Key, Why: fmt.Sprintf("stands at %d, but was sent after %s was acknowledged at %d", o.Seq, highest.Key, highest.Seq), Ops: []Op{*highest, *o}}
		}
	}
	return nil
}
