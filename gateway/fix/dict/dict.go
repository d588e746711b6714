// Package dict has the tables of FIX that the acceptor checks messages by: FIX 4.2, FIX
// 4.4, and FIXT 1.1 with FIX 5.0 SP2. A table says which tags there are, the type and
// codes of the fields that the acceptor reads, and which fields its messages have. The
// text files are generated: e2e/fix/cmd/dict.
package dict

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// MaxTag is one more than the highest tag of a table. Tags from FirstUser on are
// user-defined.
const (
	MaxTag    = 4096
	FirstUser = 5000
)

// Kind is the type of a field, as far as its format is checked.
type Kind uint8

// Kinds. Text is any value.
const (
	Text Kind = iota
	Int
	Length // of the data field after it
	Data
	Group // count of a repeating group
	Decimal
	Char
	Bool
	Timestamp
	Codes // codes separated by spaces
)

// Category of a message type.
type Category uint8

// Categories. The fields of Other messages are not in the table.
const (
	Admin Category = iota + 1
	App
	Other
)

// Set is a set of tags.
type Set [MaxTag / 64]uint64

// Has reports whether tag is in the set.
func (s *Set) Has(tag int) bool { return tag >= 0 && tag < MaxTag && s[tag>>6]>>(tag&63)&1 != 0 }

// Add adds a tag below MaxTag.
func (s *Set) Add(tag int) { s[tag>>6] |= 1 << (tag & 63) }

// Table of one version.
type Table struct {
	Header, Trailer Message
	Defined         Set
	Transport       Set // defined for administrative messages
	kinds           [MaxTag]Kind
	names           [MaxTag]string
	codes           [MaxTag]*codes // nil: the field has none
	messages        map[string]*Message
}

// codes of a field.
type codes struct {
	short [4]uint64 // those of one byte, a bit each
	long  map[string]bool
}

func (c *codes) add(code string) {
	if len(code) == 1 {
		c.short[code[0]>>6] |= 1 << (code[0] & 63)
		return
	}
	if c.long == nil {
		c.long = map[string]bool{}
	}
	c.long[code] = true
}

func (c *codes) has(v []byte) bool {
	if len(v) == 1 {
		return c.short[v[0]>>6]>>(v[0]&63)&1 != 0
	}
	return c.long[string(v)]
}

// Message is a message type: the fields of its body without those of groups, and its
// groups.
type Message struct {
	Type, Name string
	Category   Category
	Fields     Set
	Required   []int
	Groups     []*GroupOf
}

// GroupOf is a repeating group. Each entry begins with First.
type GroupOf struct {
	Count, First int
	Fields       Set
	Groups       []*GroupOf
}

// Has reports whether a tag is defined for messages of a category.
func (t *Table) Has(c Category, tag int) bool {
	if c == Admin {
		return t.Transport.Has(tag)
	}
	return t.Defined.Has(tag)
}

// Find returns the group that begins with a count, nil if there is none.
func Find(groups []*GroupOf, count int) *GroupOf {
	for _, g := range groups {
		if g.Count == count {
			return g
		}
	}
	return nil
}

// Message returns a message type, nil if there is none.
func (t *Table) Message(msgType []byte) *Message { return t.messages[string(msgType)] }

// Kind returns the type of a field, Text for one that the table does not describe.
func (t *Table) Kind(tag int) Kind {
	if tag < 0 || tag >= MaxTag {
		return Text
	}
	return t.kinds[tag]
}

// Name returns a field's name, empty for one that the table does not describe.
func (t *Table) Name(tag int) string {
	if tag < 0 || tag >= MaxTag {
		return ""
	}
	return t.names[tag]
}

// Coded reports whether a field has codes, and whether v is one.
func (t *Table) Coded(tag int, v []byte) (coded, ok bool) {
	if tag < 0 || tag >= MaxTag || t.codes[tag] == nil {
		return false, false
	}
	return true, t.codes[tag].has(v)
}

var (
	//go:embed fix42.txt
	fix42 string
	//go:embed fix44.txt
	fix44 string
	//go:embed fix50sp2.txt
	fix50sp2 string

	// FIX42 returns the table of FIX 4.2. A table is made when it is used first: grid-node has
	// this package for its command dev, and its nodes start without.
	FIX42 = made(fix42)
	// FIX44 returns the table of FIX 4.4.
	FIX44 = made(fix44)
	// FIX50SP2 returns the table of FIX 5.0 SP2 over FIXT 1.1.
	FIX50SP2 = made(fix50sp2)
)

func made(text string) func() *Table {
	return sync.OnceValue(func() *Table { return parse(text) })
}

var kinds = map[string]Kind{
	"INT": Int, "SEQNUM": Int, "DAYOFMONTH": Int, "LENGTH": Length, "DATA": Data, "XMLDATA": Data, "NUMINGROUP": Group,
	"QTY": Decimal, "PRICE": Decimal, "PRICEOFFSET": Decimal, "AMT": Decimal, "FLOAT": Decimal, "PERCENTAGE": Decimal,
	"CHAR": Char, "BOOLEAN": Bool, "UTCTIMESTAMP": Timestamp,
	"MULTIPLEVALUESTRING": Codes, "MULTIPLESTRINGVALUE": Codes, "MULTIPLECHARVALUE": Codes,
}

// parse reads a generated table; it panics on one that is not.
func parse(text string) *Table {
	t := &Table{messages: map[string]*Message{}}
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "#":
		case "h":
			t.Header.read(words[1:])
		case "t":
			t.Trailer.read(words[1:])
		case "m":
			m := &Message{Type: words[1], Name: words[2], Category: map[string]Category{"admin": Admin, "app": App, "other": Other}[words[3]]}
			m.read(words[4:])
			t.messages[m.Type] = m
		case "f":
			t.field(words[1:])
		case "d":
			for _, w := range words[1:] {
				t.Defined.Add(number(w))
			}
		case "x":
			for _, w := range words[1:] {
				t.Transport.Add(number(w))
			}
		default:
			panic(fmt.Sprintf("dict: line %q", line))
		}
	}
	t.fixLengths()
	return t
}

// field reads number, name, type and codes.
func (t *Table) field(words []string) {
	tag := number(words[0])
	t.Defined.Add(tag)
	t.names[tag], t.kinds[tag] = words[1], kinds[words[2]]
	switch {
	case tag == 35 || t.kinds[tag] == Bool || t.kinds[tag] == Group || len(words) == 3: // checked otherwise
	default:
		t.codes[tag] = &codes{}
		for _, code := range words[3:] {
			t.codes[tag].add(code)
		}
	}
}

// fixLengths marks the counts of groups and the lengths of data that old versions describe
// as numbers.
func (t *Table) fixLengths() {
	var mark func(groups []*GroupOf)
	mark = func(groups []*GroupOf) {
		for _, g := range groups {
			t.kinds[g.Count] = Group
			mark(g.Groups)
		}
	}
	mark(t.Header.Groups)
	for _, m := range t.messages {
		mark(m.Groups)
	}
	for tag, name := range t.names {
		if t.kinds[tag] == Int && strings.HasSuffix(name, "Len") || strings.HasSuffix(name, "DataLength") || tag == 93 {
			t.kinds[tag] = Length
		}
	}
}

func (m *Message) read(words []string) {
	groups, rest := readGroup(words, &m.Fields, func(tag int) { m.Required = append(m.Required, tag) })
	if m.Groups = groups; len(rest) != 0 {
		panic(fmt.Sprintf("dict: message %s: unexpected %v", m.Type, rest))
	}
}

// readGroup reads fields up to the end of the words or a closing brace.
func readGroup(words []string, fields *Set, required func(int)) (groups []*GroupOf, rest []string) {
	last := 0
	for len(words) > 0 && words[0] != "}" {
		if words[0] == "{" {
			g := &GroupOf{Count: last, First: number(strings.TrimSuffix(words[1], "!"))}
			g.Groups, words = readGroup(words[1:], &g.Fields, func(int) {})
			groups, words = append(groups, g), words[1:]
			continue
		}
		w, must := strings.CutSuffix(words[0], "!")
		last = number(w)
		if fields.Add(last); must {
			required(last)
		}
		words = words[1:]
	}
	return groups, words
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n >= MaxTag {
		panic(fmt.Sprintf("dict: tag %q, allowed: 1..%d", s, MaxTag-1))
	}
	return n
}
