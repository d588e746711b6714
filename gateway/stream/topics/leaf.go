package topics

import "fmt"

// leaf holds the subscriptions of one pattern.
type leaf struct {
	node    *node
	pattern Pattern
	all     []uint32 // without a filter
	filters *filters // nil: none has one
}

// filters holds those with a filter.
type filters struct {
	plain bucket         // without a set of values to find them by
	sets  map[int]*field // by field; nil: none
	order []*field       // of sets, to walk without a map
}

// field finds subscriptions by the value of a field.
type field struct {
	index int
	typ   Type
	text  map[string]*bucket
	num   map[number]*bucket
}

type number struct {
	num   int64
	scale uint8
}

// bucket holds subscriptions that are left when pattern and value fit.
type bucket struct {
	field *field           // nil: filters.plain
	value Value            // of the field
	all   list             // nothing more is to be tried
	tests []*test          // one for each different filter
	byKey map[string]*test // of tests
}

type test struct {
	filter Filter
	key    string
	at     int // in bucket.tests
	subs   list
}

// list holds subscriptions; a place knows where, so that one is removed without a search.
type list struct{ items []item }

type item struct {
	id    uint32
	place uint32 // which of the subscription's
}

// place is one list that a subscription is in.
type place struct {
	bucket *bucket
	test   *test // nil: bucket.all
	at     int   // index in the list
}

func (l *list) add(id uint32, s *filtered, p place) {
	p.at = len(l.items)
	l.items = append(l.items, item{id, uint32(len(s.places))})
	s.places = append(s.places, p)
}

func (l *list) remove(x *Index, at int) {
	last := len(l.items) - 1
	moved := l.items[last]
	l.items[at] = moved
	x.filtered[moved.id].places[moved.place].at = at
	l.items[last] = item{}
	if l.items = l.items[:last]; last == 0 {
		l.items = nil
	}
}

// selective returns the term by whose values a subscription is found: the one with the fewest. -1: none.
func (f *Filter) selective() int {
	best := -1
	for i := range f.terms {
		if n := len(f.terms[i].in); n > 0 && (best < 0 || n < len(f.terms[best].in)) {
			best = i
		}
	}
	return best
}

// room returns why a filter would make matching too slow, or nil.
func (l *leaf) room(x *Index, f *Filter, by int) error {
	left := f.without(by)
	if len(left.terms) == 0 {
		return nil
	}
	key := left.key()
	g := l.filters
	if by < 0 {
		if (g == nil || g.plain.byKey[key] == nil) && x.tried >= x.maxTried {
			return &Error{"number of filters without a set of values", fmt.Sprint(x.tried + 1), fmt.Sprintf("at most %d different ones; add a term with equal or in", x.maxTried)}
		}
		return nil
	}
	t, most := &f.terms[by], max(1, x.maxTried/8)
	if g == nil || g.sets[t.field] == nil {
		return nil
	}
	for i := range t.in {
		if b := g.sets[t.field].find(t.typ, &t.in[i]); b != nil && b.byKey[key] == nil && len(b.tests) >= most {
			return &Error{"number of filters with one value of a field", fmt.Sprint(len(b.tests) + 1), fmt.Sprintf("at most %d with different further terms", most)}
		}
	}
	return nil
}

// without returns the filter but for one term.
func (f *Filter) without(i int) Filter {
	if i < 0 {
		return *f
	}
	return Filter{append(append([]term(nil), f.terms[:i]...), f.terms[i+1:]...)}
}

// add lists a subscription with a filter.
func (l *leaf) add(x *Index, id uint32, s *filtered, f *Filter, by int) {
	if l.filters == nil {
		l.filters = &filters{}
	}
	if by < 0 {
		l.filters.plain.add(x, id, s, *f)
		return
	}
	left := f.without(by)
	t := &f.terms[by]
	g := l.filters.sets[t.field]
	if g == nil {
		g = &field{index: t.field, typ: t.typ}
		if l.filters.sets == nil {
			l.filters.sets = map[int]*field{}
		}
		l.filters.sets[t.field] = g
		l.filters.order = append(l.filters.order, g)
	}
	for _, v := range t.in {
		g.bucket(t.typ, v).add(x, id, s, left)
	}
}

// find returns the bucket of a value, nil if there is none.
func (g *field) find(t Type, v *Value) *bucket {
	if t == Text {
		return g.text[string(v.Bytes)]
	}
	return g.num[number{v.Num, v.Scale}]
}

// bucket is find, and makes one that is missing.
func (g *field) bucket(t Type, v Value) *bucket {
	b := g.find(t, &v)
	switch {
	case b != nil:
		return b
	case t == Text && g.text == nil:
		g.text = map[string]*bucket{}
	case t != Text && g.num == nil:
		g.num = map[number]*bucket{}
	}
	b = &bucket{field: g, value: v}
	if t == Text {
		g.text[string(v.Bytes)] = b
	} else {
		g.num[number{v.Num, v.Scale}] = b
	}
	return b
}

func (b *bucket) add(x *Index, id uint32, s *filtered, left Filter) {
	p := place{bucket: b}
	if len(left.terms) == 0 {
		b.all.add(id, s, p)
		return
	}
	key := left.key()
	t := b.byKey[key]
	if t == nil {
		t = &test{filter: left, key: key, at: len(b.tests)}
		b.tests = append(b.tests, t)
		if b.byKey == nil {
			b.byKey = map[string]*test{}
		}
		b.byKey[key] = t
		if b.field == nil {
			x.tried++
		}
	}
	p.test = t
	t.subs.add(id, s, p)
}

// leave takes a subscription without a filter out of the leaf.
func (l *leaf) leave(x *Index, at uint32) {
	last := len(l.all) - 1
	if moved := l.all[last]; int(at) != last {
		l.all[at], x.subs[moved].at = moved, at
	}
	if l.all = l.all[:last]; last == 0 {
		l.all = nil
	}
}

// remove takes one with a filter out of it.
func (l *leaf) remove(x *Index, s *filtered) {
	for i := range s.places {
		p := &s.places[i]
		b := p.bucket
		if p.test == nil {
			b.all.remove(x, p.at)
		} else if p.test.subs.remove(x, p.at); len(p.test.subs.items) == 0 {
			b.drop(p.test)
			if b.field == nil {
				x.tried--
			}
		}
		if b.field != nil && b.empty() {
			l.filters.forget(b)
		}
	}
	if g := l.filters; len(g.order) == 0 && g.plain.empty() {
		l.filters = nil
	}
}

// drop removes a test without subscriptions.
func (b *bucket) drop(t *test) {
	last := len(b.tests) - 1
	b.tests[t.at] = b.tests[last]
	b.tests[t.at].at = t.at
	b.tests[last] = nil
	b.tests = b.tests[:last]
	delete(b.byKey, t.key)
	if last == 0 {
		b.tests, b.byKey = nil, nil
	}
}

// forget removes an empty bucket, and its field if it was the last one.
func (l *filters) forget(b *bucket) {
	g := b.field
	if g.typ == Text {
		delete(g.text, string(b.value.Bytes))
	} else {
		delete(g.num, number{b.value.Num, b.value.Scale})
	}
	if len(g.text)+len(g.num) > 0 {
		return
	}
	delete(l.sets, g.index)
	for i := range l.order {
		if l.order[i] == g {
			l.order = append(l.order[:i:i], l.order[i+1:]...)
			break
		}
	}
	if len(l.order) == 0 {
		l.sets, l.order = nil, nil
	}
}

func (b *bucket) empty() bool { return len(b.all.items) == 0 && len(b.tests) == 0 }

func (l *leaf) empty() bool { return len(l.all) == 0 && l.filters == nil }

func (l *leaf) match(values []Value, hits []uint32) []uint32 {
	hits = append(hits, l.all...)
	if l.filters == nil {
		return hits
	}
	hits = l.filters.plain.match(values, hits)
	for _, g := range l.filters.order {
		if g.index >= len(values) || !values[g.index].Set {
			continue
		}
		v := &values[g.index]
		if b := g.find(g.typ, v); b != nil {
			hits = b.match(values, hits)
		}
	}
	return hits
}

func (b *bucket) match(values []Value, hits []uint32) []uint32 {
	for i := range b.all.items {
		hits = append(hits, b.all.items[i].id)
	}
	for _, t := range b.tests {
		if !t.filter.Matches(values) {
			continue
		}
		for i := range t.subs.items {
			hits = append(hits, t.subs.items[i].id)
		}
	}
	return hits
}
