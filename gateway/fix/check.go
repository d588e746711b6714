package fix

import (
	"fmt"

	"github.com/ordergrid/ordergrid/gateway/fix/dict"
)

// checker checks the fields of messages. It is reused, so that a message costs no memory.
type checker struct {
	m    *Message
	t    *dict.Table
	d    *dict.Message
	seen dict.Set
	user int
	body bool // a field of the body was seen
}

// extraLogon are fields that a Logon may have in all versions.
var extraLogon = map[int]bool{553: true, 554: true, 789: true}

// check checks a message of a known type against the tables.
func (c *checker) check(m *Message, t *dict.Table, d *dict.Message) *Refusal {
	c.m, c.t, c.d, c.seen, c.user, c.body = m, t, d, dict.Set{}, 0, false
	c.seen.Add(8)
	c.seen.Add(9)
	c.seen.Add(10)
	for i := 0; i < len(m.fields); {
		n, r := c.field(i)
		if r != nil {
			return r
		}
		i = n
	}
	if r := c.required(t.Header.Required); r != nil {
		return r
	}
	return c.required(d.Required)
}

func (c *checker) required(tags []int) *Refusal {
	for _, tag := range tags {
		if !c.seen.Has(tag) {
			return &Refusal{Reason: RequiredMissing, Tag: tag, name: c.t.Name(tag), Allowed: "a value; " + c.d.Name + " requires it"}
		}
	}
	return nil
}

// field checks the field at i, with its group if it is the count of one, and returns the
// index after it.
func (c *checker) field(i int) (next int, r *Refusal) {
	f := &c.m.fields[i]
	v := c.m.raw[f.from:f.to]
	header := c.t.Header.Fields.Has(f.tag)
	switch {
	case f.tag <= 0 || !c.known(f.tag):
		return 0, refuse(c.t, InvalidTag, f.tag, v, "a tag of the standard; user-defined ones in application messages only")
	case len(v) == 0:
		return 0, refuse(c.t, NoValue, f.tag, v, "at least one character")
	case header && c.body:
		return 0, refuse(c.t, OutOfOrder, f.tag, v, "fields of the header before those of the body")
	case !header && !c.defined(f.tag):
		return 0, refuse(c.t, NotDefined, f.tag, v, "a tag of "+c.d.Name)
	}
	if r := c.once(f.tag, v); r != nil {
		return 0, r
	}
	c.body = c.body || !header && !c.t.Trailer.Fields.Has(f.tag)
	if r := c.value(f.tag, v); r != nil {
		return 0, r
	}
	groups := c.d.Groups
	if header {
		groups = c.t.Header.Groups
	}
	if c.t.Kind(f.tag) == dict.Group {
		if g := dict.Find(groups, f.tag); g != nil {
			return c.group(i, g)
		}
	}
	return i + 1, nil
}

// known reports whether there is such a tag.
func (c *checker) known(tag int) bool {
	return c.t.Has(c.d.Category, tag) || tag >= dict.FirstUser && c.d.Category != dict.Admin || c.extra(tag)
}

func (c *checker) extra(tag int) bool { return c.d.Type == "A" && extraLogon[tag] }

func (c *checker) defined(tag int) bool {
	return c.d.Category == dict.Other || c.d.Fields.Has(tag) || c.t.Trailer.Fields.Has(tag) || tag >= dict.FirstUser || c.extra(tag)
}

// once refuses a tag that was there before. Fields of Other messages may be in groups.
func (c *checker) once(tag int, v []byte) *Refusal {
	switch {
	case c.d.Category == dict.Other && !c.t.Header.Fields.Has(tag):
		return nil
	case tag < dict.MaxTag:
		if c.seen.Has(tag) {
			return refuse(c.t, TagTwice, tag, v, "once")
		}
		c.seen.Add(tag)
		return nil
	}
	if c.user++; c.user > maxUser {
		return refuse(c.t, ValueIncorrect, tag, v, fmt.Sprintf("at most %d user-defined tags", maxUser))
	}
	return nil
}

// value checks format and codes.
func (c *checker) value(tag int, v []byte) *Refusal {
	ok, allowed := true, ""
	switch c.t.Kind(tag) {
	case dict.Int:
		ok, allowed = integer(v), "a whole number"
	case dict.Length, dict.Group:
		_, ok = number(v)
		allowed = "a number, 0 or more"
	case dict.Decimal:
		ok, allowed = decimal(v), "digits with at most one point, a minus before them"
	case dict.Char:
		ok, allowed = len(v) == 1, "one character"
	case dict.Bool:
		ok, allowed = len(v) == 1 && (v[0] == 'Y' || v[0] == 'N'), "Y, N"
	case dict.Timestamp:
		_, ok = timestamp(v)
		allowed = "YYYYMMDD-HH:MM:SS with 0, 3, 6 or 9 digits of a fraction, UTC"
	case dict.Codes:
		return c.codes(tag, v)
	}
	if !ok {
		return refuse(c.t, DataFormat, tag, v, allowed)
	}
	if coded, ok := c.t.Coded(tag, v); coded && !ok {
		return refuse(c.t, ValueIncorrect, tag, v, "a code of the standard")
	}
	return nil
}

// codes checks a list of codes.
func (c *checker) codes(tag int, v []byte) *Refusal {
	for from, i := 0, 0; i <= len(v); i++ {
		if i < len(v) && v[i] != ' ' {
			continue
		}
		if coded, ok := c.t.Coded(tag, v[from:i]); coded && !ok {
			return refuse(c.t, ValueIncorrect, tag, v, "codes of the standard, with a blank between them")
		}
		from = i + 1
	}
	return nil
}

// group checks the entries after the count at i.
func (c *checker) group(i int, g *dict.GroupOf) (next int, r *Refusal) {
	f := &c.m.fields[i]
	count := c.m.raw[f.from:f.to]
	want, _ := number(count)
	entries, begun := uint64(0), 0
	for i++; i < len(c.m.fields); {
		f := &c.m.fields[i]
		v := c.m.raw[f.from:f.to]
		if !g.Fields.Has(f.tag) {
			break
		}
		switch {
		case f.tag == g.First:
			entries, begun = entries+1, i
		case entries == 0:
			return 0, refuse(c.t, OutOfOrder, f.tag, v, fmt.Sprintf("tag %d as the first of an entry", g.First))
		case c.repeats(begun, i):
			return 0, refuse(c.t, TagTwice, f.tag, v, "once in an entry")
		}
		if len(v) == 0 {
			return 0, refuse(c.t, NoValue, f.tag, v, "at least one character")
		}
		if r := c.value(f.tag, v); r != nil {
			return 0, r
		}
		if inner := dict.Find(g.Groups, f.tag); inner != nil {
			if i, r = c.group(i, inner); r != nil {
				return 0, r
			}
			continue
		}
		i++
	}
	if entries != want {
		return 0, refuse(c.t, GroupCount, g.Count, count, fmt.Sprintf("%d, the entries there are", entries))
	}
	return i, nil
}

// repeats reports whether the tag at i stands before it in its entry, which began at from.
// Fields of inner groups in between are other tags.
func (c *checker) repeats(from, i int) bool {
	for _, f := range c.m.fields[from:i] {
		if f.tag == c.m.fields[i].tag {
			return true
		}
	}
	return false
}
