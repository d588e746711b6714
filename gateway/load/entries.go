package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Entries says which columns of a table, or members of a line of JSON, are the key and the value of an entry of a region.
// What it does not name goes by names: a column "key" is the key, a column "value" the value as it stands. Without a
// column for it the value is a JSON object of all columns that are not part of the key.
type Entries struct {
	Key     []string          // columns of the key, joined with Joint; none: "key"
	Joint   string            // "/" when empty
	Value   string            // the column that is the value; empty: "value" if there is one
	Columns map[string]string // column to its name in the object, - leaves it out
}

func (e Entries) joint() string {
	if e.Joint == "" {
		return "/"
	}
	return e.Joint
}

func (e Entries) key() []string {
	if len(e.Key) == 0 {
		return []string{"key"}
	}
	return e.Key
}

// id tells rows of one source that are other entries.
func (e Entries) id() string {
	text, err := json.Marshal(e) // maps are in order
	if err != nil {
		panic(err) // strings are always marshalled
	}
	return " as " + string(text)
}

// forms implements Shape: those of JSON, and ISO 8601.
func (e Entries) forms() forms { return forms{date: time.DateOnly, yes: "true", no: "false"} }

// plan is where in a list of names the parts of an entry are.
type plan struct {
	names  []string
	key    []int
	value  int      // -1: an object
	object []int    // columns of the object, and
	as     []string // their names in it
	joint  string
}

// plan finds the columns of the entry among names.
func (e Entries) plan(names []string) (*plan, error) {
	p := &plan{names: names, value: -1, joint: e.joint()}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("column %q is there twice, allowed: once; rename one of them", name)
		}
	}
	for _, name := range e.key() {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("column %q of the key is not there, allowed: %s; name the columns of the key", name, strings.Join(names, ", "))
		}
		p.key = append(p.key, i)
	}
	value := e.Value
	if value == "" && e.Columns["value"] == "" && slices.Contains(names, "value") {
		value = "value"
	}
	if value != "" {
		if p.value = slices.Index(names, value); p.value < 0 {
			return nil, fmt.Errorf("column %q of the value is not there, allowed: %s", value, strings.Join(names, ", "))
		}
	}
	return p, p.rest(e)
}

// rest are the columns that are neither key nor value.
func (p *plan) rest(e Entries) error {
	for i, name := range p.names {
		as, mapped := e.Columns[name]
		switch {
		case as == "-" || i == p.value || slices.Contains(p.key, i) && !mapped:
			continue
		case p.value >= 0:
			return fmt.Errorf("column %q is not loaded, because the value is column %q; leave it out with a mapping %s=-", name, p.names[p.value], name)
		case !mapped:
			as = name
		}
		if slices.Contains(p.as, as) {
			return fmt.Errorf("column %q is %q of the value, as another column is; leave one of them out with a mapping %s=-", name, as, name)
		}
		p.object, p.as = append(p.object, i), append(p.as, as)
	}
	if p.value < 0 && len(p.object) == 0 {
		return fmt.Errorf("no column is the value, allowed: a column %q, or columns that are not of the key: %s", "value", strings.Join(p.names, ", "))
	}
	return nil
}

// join is the key of its parts, by column.
func (p *plan) join(part func(column int) (string, error)) ([]byte, error) {
	var key []byte
	for i, column := range p.key {
		text, err := part(column)
		switch {
		case err != nil:
			return nil, err
		case text == "":
			return nil, fmt.Errorf("column %q of the key is empty, allowed: 1 byte or more", p.names[column])
		case len(p.key) > 1 && strings.Contains(text, p.joint):
			return nil, fmt.Errorf("column %q of the key is %.60q, allowed: text without %q, which joins the columns of the key", p.names[column], text, p.joint)
		case i > 0:
			key = append(key, p.joint...)
		}
		key = append(key, text...)
	}
	return key, nil
}

// tableEntries make entries of the rows of a table.
type tableEntries struct{ *plan }

func (e Entries) maker(names []string) (maker, error) {
	for _, name := range slices.Sorted(maps.Keys(e.Columns)) {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("mapping of column %q: there is no such column, allowed: %s", name, strings.Join(names, ", "))
		}
	}
	p, err := e.plan(names)
	if err != nil {
		return nil, err
	}
	return tableEntries{p}, nil
}

// fill implements maker. Members of an object are strings, the same ones for a table in Parquet and in a database; cells of
// CSV, which has no types, stay as they stand. Empty ones and nulls, which most formats do not tell apart, are left out.
func (t tableEntries) fill(r *Row, values []string, _ int64) {
	if len(values) != len(t.names) {
		r.Err = fmt.Errorf("it has %d columns, allowed: %d, as the first row", len(values), len(t.names))
		return
	}
	if r.Key, r.Err = t.join(func(column int) (string, error) { return values[column], nil }); r.Err != nil {
		return
	}
	if t.value >= 0 {
		r.Message = []byte(values[t.value])
		return
	}
	o := newObject()
	for i, column := range t.object {
		if values[column] == "" {
			continue
		}
		if !utf8.ValidString(values[column]) {
			r.Err = fmt.Errorf("column %q is not UTF-8, allowed: UTF-8 in an object; a value by itself may have any bytes", t.names[column])
			return
		}
		o.add(t.as[i], quoted(values[column]))
	}
	r.Message = o.end()
}

// object is a JSON object in the order in which members are added.
type object struct{ b bytes.Buffer }

func newObject() *object {
	o := &object{}
	o.b.WriteByte('{')
	return o
}

func (o *object) add(name string, value []byte) {
	if o.b.Len() > 1 {
		o.b.WriteByte(',')
	}
	o.b.Write(quoted(name))
	o.b.WriteByte(':')
	o.b.Write(value)
}

func (o *object) end() []byte {
	o.b.WriteByte('}')
	return o.b.Bytes()
}

// quoted is a JSON string, without the escapes that only HTML needs.
func quoted(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // strings are always encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
