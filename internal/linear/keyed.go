package linear

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// KeyedKind is what an operation does with the value of a key.
type KeyedKind uint8

// Kinds of operations on a key.
const (
	Put    KeyedKind = iota + 1
	Patch            // writes Value over that from Offset on
	Remove           // Found: there was a value
	Take             // Remove that returns the value
	Read             // Version 0: there was none
)

// KeyedOp is one operation on a key of a region. A change whose answer was lost has Return Never; a
// failed read is left out, as it proves nothing.
type KeyedOp struct {
	Client       int
	Kind         KeyedKind
	Key          string
	Call, Return int64
	If           *uint64 // the version that the change requires, 0: none; nil: it requires nothing
	Offset       int     // of a Patch
	Value        string  // that is written, or that was returned
	Version      uint64  // that the value has after the change, or had when it was read
	Found        bool    // of Remove and Take
	// Refused: nothing was changed, since the version was not that required; Version is that
	// which was there.
	Refused bool
}

var keyedKinds = [...]string{Put: "put", Patch: "patch", Remove: "remove", Take: "take", Read: "read"}

func (o *KeyedOp) String() string {
	b := fmt.Sprintf("client %d %s %s", o.Client, keyedKinds[o.Kind], o.Key)
	if o.If != nil {
		b += fmt.Sprintf(" if %d", *o.If)
	}
	b += fmt.Sprintf(" %q", o.Value)
	switch {
	case o.Return == Never:
		return b + ": no answer"
	case o.Refused:
		return b + fmt.Sprintf(": refused, version %d", o.Version)
	}
	return b + fmt.Sprintf(": version %d, found %v", o.Version, o.Found)
}

// value of a key; version 0: there is none; somewhere: not known yet, but not 0.
type value struct {
	version uint64
	text    string
}

// has returns the value as it is if its version is v, false if that cannot be.
func (s value) has(v uint64) (value, bool) {
	if s.version == somewhere && v != 0 {
		s.version = v
	}
	return s, s.version == v
}

// keyedStep is the specification of one key: what its value may be after an operation.
func keyedStep(s value, o *KeyedOp) []value {
	if o.Return == Never {
		if after, ok := changed(s, o, somewhere); ok && after != s {
			return []value{s, after}
		}
		return []value{s}
	}
	if o.Kind == Read || o.Refused {
		s, ok := s.has(o.Version)
		if !ok || o.Kind == Read && s.text != o.Value || o.Refused && o.If != nil && *o.If == o.Version {
			return nil
		}
		return []value{s}
	}
	if (o.Kind == Remove || o.Kind == Take) && o.Found != (s.version != 0) || o.Kind == Take && s.text != o.Value {
		return nil
	}
	if after, ok := changed(s, o, o.Version); ok {
		return []value{after}
	}
	return nil
}

// changed makes a change; false if its condition is not met.
func changed(s value, o *KeyedOp, version uint64) (value, bool) {
	if o.If != nil {
		if _, ok := s.has(*o.If); !ok {
			return s, false
		}
	}
	switch o.Kind {
	case Put:
		return value{version, o.Value}, true
	case Patch:
		if s.version == 0 || o.Offset > len(s.text) {
			return s, false
		}
		text := s.text[:o.Offset] + o.Value
		if len(text) < len(s.text) {
			text += s.text[len(text):]
		}
		return value{version, text}, true
	default:
		return value{}, true
	}
}

func keyedModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{value{}} },
		Step: func(s, in, _ any) (next []any) {
			for _, v := range keyedStep(s.(value), in.(*KeyedOp)) {
				next = append(next, v)
			}
			return next
		},
		DescribeOperation: func(in, _ any) string { return in.(*KeyedOp).String() },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
	return m.ToModel()
}

// CheckKeyed checks the history of the keys of a region, each for itself. The error has the operations of the first key,
// by name, that no order of them explains.
func CheckKeyed(ops []KeyedOp) error {
	model := keyedModel()
	keys := map[string][]*KeyedOp{}
	for i := range ops {
		keys[ops[i].Key] = append(keys[ops[i].Key], &ops[i])
	}
	names := make([]string, 0, len(keys))
	for key := range keys {
		names = append(names, key)
	}
	slices.Sort(names)
	for _, key := range names {
		group := keys[key]
		slices.SortStableFunc(group, func(a, b *KeyedOp) int { return cmp.Compare(a.Call, b.Call) })
		history := make([]porcupine.Operation, len(group))
		for i, o := range group {
			history[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return}
		}
		result := porcupine.CheckOperationsTimeout(model, history, timeout)
		if result == porcupine.Ok {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "key %s: %s", key, map[porcupine.CheckResult]string{porcupine.Illegal: "not linearizable", porcupine.Unknown: "the check took too long, nothing is known"}[result])
		for _, o := range group {
			fmt.Fprintf(&b, "\n  [%.3f .. %.3f] ms %v", float64(o.Call)/1e6, float64(o.Return)/1e6, o)
		}
		return fmt.Errorf("%s", b.String())
	}
	return nil
}
