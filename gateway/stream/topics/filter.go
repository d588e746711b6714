package topics

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of one filter.
const (
	MaxTerms  = 8   // of a filter
	MaxValues = 64  // of one term
	MaxValue  = 256 // bytes of one value
)

// Term is a condition on one field, as a client writes it. Exactly one of Equal, In, Prefix, and the range has to be there.
// All values are text: numbers and times keep every digit.
type Term struct {
	Field  string   `json:"field"`
	Equal  *string  `json:"equal,omitempty"`
	In     []string `json:"in,omitempty"`
	Prefix *string  `json:"prefix,omitempty"` // of a Text
	Min    *string  `json:"min,omitempty"`    // at least; not of a Text
	Above  *string  `json:"above,omitempty"`  // more than
	Max    *string  `json:"max,omitempty"`    // at most
	Below  *string  `json:"below,omitempty"`  // less than
}

// Filter is a valid filter: all terms have to hold. The zero Filter lets everything through.
type Filter struct {
	terms []term
}

type term struct {
	field      int
	typ        Type
	in         []Value // sorted, each once
	prefix     []byte
	isPrefix   bool
	min, max   Value
	open, ends bool // min, max themselves do not match
}

// ParseFilter checks terms against the fields that a message has.
func ParseFilter(fields []Field, terms []Term) (Filter, error) {
	if len(terms) > MaxTerms {
		return Filter{}, &Error{"number of filter terms", fmt.Sprint(len(terms)), fmt.Sprintf("at most %d", MaxTerms)}
	}
	var f Filter
	for i := range terms {
		t, err := parseTerm(fields, &terms[i], i)
		if err != nil {
			return Filter{}, err
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

func parseTerm(fields []Field, in *Term, i int) (t term, err error) {
	what := fmt.Sprintf("filter term %d (%.40s)", i+1, in.Field)
	t.field = slices.IndexFunc(fields, func(f Field) bool { return f.Name == in.Field })
	if t.field < 0 {
		names := make([]string, len(fields))
		for j, f := range fields {
			names[j] = f.Name
		}
		allowed := "no field: messages of these topics have none"
		if len(names) > 0 {
			allowed = strings.Join(names, ", ")
		}
		return t, &Error{fmt.Sprintf("field of filter term %d", i+1), in.Field, allowed}
	}
	t.typ = fields[t.field].Type
	value := func(name string, text *string) (v Value) {
		if text == nil || err != nil {
			return v
		}
		var allowed string
		if v, allowed = parseValue(t.typ, *text); len(*text) > MaxValue {
			allowed = fmt.Sprintf("at most %d bytes", MaxValue)
		}
		if allowed != "" {
			err = &Error{what + " " + name, *text, allowed}
		}
		return v
	}
	forms := 0
	for _, set := range []bool{in.Equal != nil, in.In != nil, in.Prefix != nil, in.Min != nil || in.Above != nil || in.Max != nil || in.Below != nil} {
		if set {
			forms++
		}
	}
	switch {
	case forms != 1 || in.Min != nil && in.Above != nil || in.Max != nil && in.Below != nil:
		return t, &Error{what, fmt.Sprintf("%d conditions", forms), "one of equal, in, prefix, or a range of min or above with max or below"}
	case in.Equal != nil:
		t.in = []Value{value("equal", in.Equal)}
	case in.In != nil:
		if len(in.In) < 1 || len(in.In) > MaxValues {
			return t, &Error{what + " in", fmt.Sprintf("%d values", len(in.In)), fmt.Sprintf("1 to %d values", MaxValues)}
		}
		for j := range in.In {
			t.in = append(t.in, value("in", &in.In[j]))
		}
		slices.SortFunc(t.in, func(a, b Value) int { return compare(t.typ, &a, &b) })
		t.in = slices.CompactFunc(t.in, func(a, b Value) bool { return compare(t.typ, &a, &b) == 0 })
	case t.typ == Text && in.Prefix == nil:
		return t, &Error{what, "a range", "equal, in or prefix: the field is text"}
	case t.typ != Text && in.Prefix != nil:
		return t, &Error{what + " prefix", *in.Prefix, "equal, in or a range: the field is not text"}
	case in.Prefix != nil:
		t.prefix, t.isPrefix = value("prefix", in.Prefix).Bytes, true
	default:
		t.min, t.max = value("min", in.Min), value("max", in.Max)
		if in.Above != nil {
			t.min, t.open = value("above", in.Above), true
		}
		if in.Below != nil {
			t.max, t.ends = value("below", in.Below), true
		}
		if err == nil && t.min.Set && t.max.Set {
			if c := compare(t.typ, &t.min, &t.max); c > 0 || c == 0 && (t.open || t.ends) {
				return t, &Error{what, "an empty range", "a range that holds a value"}
			}
		}
	}
	return t, err
}

// Matches reports whether all terms hold.
func (f *Filter) Matches(values []Value) bool {
	for i := range f.terms {
		if !f.terms[i].holds(values) {
			return false
		}
	}
	return true
}

func (t *term) holds(values []Value) bool {
	if t.field >= len(values) || !values[t.field].Set {
		return false
	}
	v := &values[t.field]
	switch {
	case t.in != nil:
		low, high := 0, len(t.in)
		for low < high {
			mid := (low + high) / 2
			switch c := compare(t.typ, &t.in[mid], v); {
			case c == 0:
				return true
			case c < 0:
				low = mid + 1
			default:
				high = mid
			}
		}
		return false
	case t.isPrefix:
		return len(v.Bytes) >= len(t.prefix) && string(v.Bytes[:len(t.prefix)]) == string(t.prefix)
	}
	if t.min.Set {
		if c := compare(t.typ, v, &t.min); c < 0 || c == 0 && t.open {
			return false
		}
	}
	if t.max.Set {
		if c := compare(t.typ, v, &t.max); c > 0 || c == 0 && t.ends {
			return false
		}
	}
	return true
}

// key is the same for terms that say the same, and for no others.
func (f *Filter) key() string {
	parts := make([]string, len(f.terms))
	for i := range f.terms {
		t := &f.terms[i]
		var b strings.Builder
		fmt.Fprintf(&b, "%d %v %q %v %v", t.field, t.isPrefix, t.prefix, t.open, t.ends)
		for _, v := range append([]Value{t.min, t.max}, t.in...) {
			fmt.Fprintf(&b, " %v %q %d %d", v.Set, v.Bytes, v.Num, v.Scale)
		}
		parts[i] = b.String()
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// Size returns about how much memory the filter takes in an index, in bytes.
func (f *Filter) Size() int {
	n := 0
	for i := range f.terms {
		n += 192 + len(f.terms[i].prefix)
		for j := range f.terms[i].in {
			n += 128 + len(f.terms[i].in[j].Bytes)
		}
	}
	return n
}

// Terms returns the number of terms.
func (f *Filter) Terms() int { return len(f.terms) }

// Tried reports whether the filter has terms but no set of values to be found by: an Index tries it for each message of the
// pattern.
func (f *Filter) Tried() bool { return len(f.terms) > 0 && f.selective() < 0 }

// Values returns the values that a field, a Text, has in messages that the filter lets through; false: it may have others.
func (f *Filter) Values(field int) (values [][]byte, bounded bool) {
	for i := range f.terms {
		t := &f.terms[i]
		if t.field != field || t.typ != Text || t.in == nil || bounded && len(t.in) >= len(values) {
			continue
		}
		values, bounded = nil, true
		for j := range t.in {
			values = append(values, t.in[j].Bytes)
		}
	}
	return values, bounded
}
