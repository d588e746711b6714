package order

// FIX 5.0 SP2 is FIX 4.4 with more: further values of some fields, and further fields, most of
// them with tags above those that the tables of fix_tags.go know. Of these only the ones are
// listed that decide how a message is read.

// laterSize is one more than the highest tag of laterOf.
const laterSize = 1536

// laterGroup is a repeating group of FIX 5.0 SP2, or what it adds to one of before.
type laterGroup struct {
	count, first uint16 // first is 0 for one of before
	parent       uint16 // the count of the group it is nested in
	members      []uint16
}

const nLaterGroups = 12

// laterGroups are those of D, F and G; index 0 is none.
var laterGroups = [nLaterGroups]laterGroup{
	1:  {count: 768, first: 769, members: []uint16{769, 770, 771, 1033, 1034, 1035}},
	2:  {count: 957, first: 958, members: []uint16{958, 959, 960}},
	3:  {count: 1018, first: 1019, members: []uint16{1019, 1050, 1051}},
	4:  {count: 1052, first: 1053, parent: 1018, members: []uint16{1053, 1054}},
	5:  {count: 1058, first: 1059, parent: 711, members: []uint16{1059, 1060, 1061}},
	6:  {count: 1062, first: 1063, parent: 1058, members: []uint16{1063, 1064}},
	7:  {count: 1483, first: 1484, members: []uint16{1484, 1485, 1486, 1487, 1488, 1489, 1490}},
	8:  {count: 1491, first: 1492, parent: 1483, members: []uint16{1492, 1493}},
	9:  {count: 1494, first: 1495, parent: 1491, members: []uint16{1495, 1496}},
	10: {count: 711, members: []uint16{315, 972, 973, 974, 975, 998, 1000, 1038, 1039, 1044, 1045, 1046, 1213, 1419, 1423, 1424, 1425, 1437, 1441, 1453, 1454, 1455, 1456, 1459, 1460}},
	11: {count: 864, members: []uint16{1145}},
}

// What laterOf has beside the members of laterGroups.
const (
	laterIsCount = 0x80 // with the index of the group
	laterVersion = 0x7f // ApplVerID
	laterLength  = 0x7e // SecurityXMLLen, right before
	laterText    = 0x7d // SecurityXML

	applVerID = "9" // FIX 5.0 SP2
)

// laterOf is what a tag is that FIX 4.4 does not have, 0 for a plain one.
var laterOf = makeLaterOf()

func makeLaterOf() (of [laterSize]uint8) {
	for i, g := range laterGroups {
		for _, tag := range g.members {
			of[tag] = uint8(i)
		}
		if g.first != 0 {
			of[g.count] = laterIsCount | uint8(i)
		}
	}
	of[1128], of[1184], of[1185] = laterVersion, laterLength, laterText
	return of
}

// laterDecides reports whether the value of a tag above those of fix_tags.go decides how a
// message of FIX 5.0 SP2 is read, or whether it is one.
func laterDecides(tag uint32) bool {
	return tag < laterSize && (laterOf[tag]&laterIsCount != 0 || laterOf[tag] >= laterText)
}

// later is what a parser keeps of a message of FIX 5.0 SP2.
type later struct {
	seen   [(laterSize - tableSize) / 64]uint64
	groups [nLaterGroups]groupCount
}

func (p *parser) hasLater(tag uint32) bool {
	if tag < tableSize {
		return p.seen.has(tag)
	}
	return p.later.seen[(tag-tableSize)/64]>>(tag%64)&1 != 0
}

func (p *parser) setLater(tag uint32) {
	if tag < tableSize {
		p.seen.set(tag)
		return
	}
	p.later.seen[(tag-tableSize)/64] |= 1 << (tag % 64)
}

// laterTag handles a field that begins at start, of a tag that FIX 4.4 does not have: its value
// is at from..to. It returns the start of the next one.
func (p *parser) laterTag(tag uint32, start, from, to int) (int, *Error) {
	if tag >= laterSize {
		return to + 1, p.customTag(tag, start)
	}
	what, v := laterOf[tag], p.msg[from:to]
	if p.later == nil {
		what = 0
	}
	g := &laterGroups[0]
	if n := what &^ laterIsCount; n < nLaterGroups {
		g = &laterGroups[n]
	}
	if what == 0 || what >= laterText && what < laterIsCount || what&laterIsCount != 0 && g.parent == 0 {
		if p.hasLater(tag) {
			return 0, twice(tag, start, v)
		}
	}
	switch {
	case what == laterVersion && string(v) != applVerID:
		return 0, &Error{Tag: tag, Reason: ReasonEnum, Offset: from, Value: quote(v), Allowed: "9 (FIX 5.0 SP2), or no such field"}
	case what == laterLength:
		return p.laterXML(tag, from, to)
	case what == laterText:
		return 0, &Error{Tag: tag, Reason: ReasonDataLength, Offset: from, Value: quote(v), Allowed: "a length field right before it"}
	case what&laterIsCount != 0:
		return to + 1, p.laterCount(tag, int(what&^laterIsCount), from, v)
	case what != 0 && what < nLaterGroups:
		if !p.hasLater(uint32(g.count)) {
			return 0, outside(tag, from, g.count)
		}
		if uint32(g.first) == tag {
			p.later.groups[what].found++
		}
		return to + 1, nil
	}
	p.setLater(tag)
	return to + 1, nil
}

// laterCount reads the count of a group.
func (p *parser) laterCount(tag uint32, g, off int, v []byte) *Error {
	n, ok := parseUint(v, 3)
	if !ok {
		return &Error{Tag: tag, Reason: ReasonNumber, Offset: off, Value: quote(v), Allowed: "1 to 3 digits"}
	}
	if parent := laterGroups[g].parent; parent != 0 && !p.hasLater(uint32(parent)) {
		return outside(tag, off, parent)
	}
	p.setLater(tag)
	p.later.groups[g].promised += uint32(n)
	p.grouped = true
	return nil
}

// laterXML reads SecurityXMLLen at from..to, and SecurityXML, which has to follow. Since it may
// not contain SOH, a reader that knows neither reads the message alike.
func (p *parser) laterXML(tag uint32, from, to int) (int, *Error) {
	n, ok := parseUint(p.msg[from:to], 4)
	if !ok || n == 0 || n > MaxValue {
		return 0, &Error{Tag: tag, Reason: ReasonDataLength, Offset: from, Value: quote(p.msg[from:to]), Allowed: "1 to 1024"}
	}
	const xml = "1185="
	at := to + 1 + len(xml)
	if at > len(p.msg)-trailer || string(p.msg[to+1:at]) != xml {
		return 0, &Error{Tag: tag + 1, Reason: ReasonDataLength, Offset: to + 1, Value: quote(upTo(p.msg[to+1:len(p.msg)-trailer], 12)), Allowed: "tag 1185 right after its length field"}
	}
	if end := skipPrintable(p.msg, at); end-at != n || p.msg[end] != SOH {
		return 0, &Error{Tag: tag + 1, Reason: ReasonDataLength, Offset: at, Value: quote(p.msg[from:to]), Allowed: "the number of bytes before the SOH that ends the field, all of them printable ASCII"}
	}
	p.setLater(tag)
	p.setLater(tag + 1)
	return at + n + 1, nil
}

// finish checks the counts of groups.
func (x *later) finish() *Error {
	for g := 1; g < nLaterGroups; g++ {
		if c := x.groups[g]; c.promised != c.found {
			return miscounted(laterGroups[g].count, laterGroups[g].first, c)
		}
	}
	return nil
}
