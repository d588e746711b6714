package order

// parser walks over the fields between MsgType and CheckSum.
type parser struct {
	msg     []byte
	order   *Order
	seen    tagSet
	custom  [maxCustom]uint32
	nCustom int
	groups  [nGroups]groupCount
	grouped bool   // groups has something
	later   *later // of FIX 5.0 SP2
}

type tagSet [tableSize / 64]uint64

func (s *tagSet) has(tag uint32) bool { return s[tag/64]>>(tag%64)&1 != 0 }
func (s *tagSet) set(tag uint32)      { s[tag/64] |= 1 << (tag % 64) }

// groupCount compares the promised count of a group with its actual entries.
type groupCount struct{ promised, found uint32 }

// field reads the field at i and returns the start of the next one.
func (p *parser) field(i, end int) (int, *Error) {
	start := i
	tag, i := readTag(p.msg, start, end)
	if i == 0 {
		return 0, &Error{Reason: ReasonTagNumber, Offset: start, Value: quote(upTo(p.msg[start:end], 16)), Allowed: "1 to 9 digits without leading zero, then ="}
	}
	m := p.msg[:end]
	from := i
	i = skipPrintable(p.msg, i)
	// m ends with SOH (envelope checked it), so i < len(m) here.
	if m[i] != SOH {
		return 0, &Error{Tag: tag, Reason: ReasonCharacter, Offset: i, Value: quote(upTo(m[from:], i-from+1)), Allowed: "printable ASCII; use the Encoded… fields for other text"}
	}
	if i == from {
		return 0, &Error{Tag: tag, Reason: ReasonEmpty, Offset: from, Value: `""`, Allowed: "at least one character"}
	}
	if i-from > MaxValue {
		return 0, &Error{Tag: tag, Reason: ReasonTooLong, Offset: from, Value: number(i-from) + " bytes", Allowed: "at most 1024 bytes"}
	}
	if tag >= tableSize {
		if p.later != nil {
			return p.laterTag(tag, start, from, i)
		}
		return i + 1, p.customTag(tag, start)
	}
	class := classes[tag]
	if class < classMember {
		if p.seen.has(tag) {
			return 0, twice(tag, start, m[from:i])
		}
		p.seen.set(tag)
		if class == classPlain {
			return i + 1, nil
		}
	}
	if class >= classDataLen {
		if class == classLater {
			return p.laterTag(tag, start, from, i)
		}
		return p.data(tag, m[from:i], i+1, end)
	}
	return i + 1, p.value(tag, class, from, m[from:i])
}

func twice(tag uint32, off int, v []byte) *Error {
	return &Error{Tag: tag, Reason: ReasonDuplicate, Offset: off, Value: quote(v), Allowed: "the tag once"}
}

// customTag remembers user-defined tags: they may not repeat either.
func (p *parser) customTag(tag uint32, off int) *Error {
	for _, t := range p.custom[:p.nCustom] {
		if t == tag {
			return &Error{Tag: tag, Reason: ReasonDuplicate, Offset: off, Value: number(int(tag)), Allowed: "the tag once"}
		}
	}
	if p.nCustom == maxCustom {
		return &Error{Tag: tag, Reason: ReasonTooMany, Offset: off, Value: number(int(tag)), Allowed: "at most 64 user-defined tags"}
	}
	p.custom[p.nCustom] = tag
	p.nCustom++
	return nil
}

// data reads the data field that must follow its length field: any bytes, including SOH.
func (p *parser) data(lenTag uint32, value []byte, i, end int) (int, *Error) {
	n, ok := parseUint(value, 5)
	want := dataTag(lenTag)
	if !ok || n == 0 {
		return 0, &Error{Tag: lenTag, Reason: ReasonDataLength, Offset: i, Value: quote(value), Allowed: "1 to 5 digits, not 0"}
	}
	if groupOf[lenTag] == 0 {
		if p.seen.has(lenTag) {
			return 0, twice(lenTag, i, value)
		}
		p.seen.set(lenTag)
		p.seen.set(want)
	} else if err := p.member(lenTag, i); err != nil {
		return 0, err
	}
	m := p.msg[:end]
	start, tag := i, uint32(0)
	for ; i < len(m) && m[i]-'0' <= 9 && i-start < 4; i++ {
		tag = tag*10 + uint32(m[i]-'0')
	}
	if tag != want || i == len(m) || m[i] != '=' {
		return 0, &Error{Tag: want, Reason: ReasonDataLength, Offset: start, Value: quote(upTo(m[start:], 12)), Allowed: "tag " + number(int(want)) + " right after its length field"}
	}
	i++
	if n > end-i-1 || m[i+n] != SOH {
		return 0, &Error{Tag: want, Reason: ReasonDataLength, Offset: i, Value: quote(value), Allowed: "the number of bytes before the SOH that ends the field"}
	}
	return i + n + 1, nil
}

// member checks that a field of a repeating group comes after the group's count.
func (p *parser) member(tag uint32, off int) *Error {
	g := &groups[groupOf[tag]]
	if !p.seen.has(uint32(g.count)) {
		return outside(tag, off, g.count)
	}
	if uint32(g.first) == tag {
		p.groups[groupOf[tag]].found++
	}
	return nil
}

func outside(tag uint32, off int, count uint16) *Error {
	return &Error{Tag: tag, Reason: ReasonGroup, Offset: off, Value: number(int(tag)), Allowed: "inside the group that begins with tag " + number(int(count))}
}

// value checks a value against the class of its tag.
func (p *parser) value(tag uint32, class uint8, off int, v []byte) *Error {
	f := &p.order.Fields
	switch class {
	case classMember:
		return p.member(tag, off)
	case classCount, classNestedCount:
		return p.count(tag, off, v)
	case classClOrdID:
		f.ClOrdIDOff, f.ClOrdIDLen = uint16(off), uint8(min(len(v), 255))
		return maxLen(tag, off, v, MaxClOrdID)
	case classSymbol:
		f.SymbolOff, f.SymbolLen = uint16(off), uint8(min(len(v), 255))
		return maxLen(tag, off, v, MaxSymbol)
	case classAccount:
		f.AccountOff, f.AccountLen = uint16(off), uint8(min(len(v), 255))
		return maxLen(tag, off, v, MaxAccount)
	case classEnum:
		return p.enum(tag, off, v)
	case classQty:
		if tag == 38 {
			f.QtyOff = uint16(off)
		}
		if !decimal(v, false) {
			return &Error{Tag: tag, Reason: ReasonNumber, Offset: off, Value: quote(v), Allowed: "a positive decimal number of at most 20 characters"}
		}
	case classPrice:
		if tag == 44 {
			f.PriceOff = uint16(off)
		}
		if !decimal(v, true) {
			return &Error{Tag: tag, Reason: ReasonNumber, Offset: off, Value: quote(v), Allowed: "a decimal number of at most 20 characters"}
		}
	case classInt:
		if _, ok := parseUint(v, 10); !ok {
			return &Error{Tag: tag, Reason: ReasonNumber, Offset: off, Value: quote(v), Allowed: "1 to 10 digits"}
		}
	case classBool:
		if len(v) != 1 || v[0] != 'Y' && v[0] != 'N' {
			return &Error{Tag: tag, Reason: ReasonEnum, Offset: off, Value: quote(v), Allowed: "Y, N"}
		}
	case classTime:
		if !timestamp(v) {
			return &Error{Tag: tag, Reason: ReasonTimestamp, Offset: off, Value: quote(v), Allowed: "UTC YYYYMMDD-HH:MM:SS or YYYYMMDD-HH:MM:SS.sss"}
		}
	case classData:
		return &Error{Tag: tag, Reason: ReasonDataLength, Offset: off, Value: quote(v), Allowed: "a length field right before it"}
	case classEnvelope:
		return &Error{Tag: tag, Reason: ReasonOutOfPlace, Offset: off, Value: quote(v), Allowed: "8, 9, 35 first, 10 last, each once"}
	}
	return nil
}

func (p *parser) count(tag uint32, off int, v []byte) *Error {
	n, ok := parseUint(v, 3)
	if !ok {
		return &Error{Tag: tag, Reason: ReasonNumber, Offset: off, Value: quote(v), Allowed: "1 to 3 digits"}
	}
	g := groupByCount(tag)
	if parent := groups[g].parent; parent != 0 { // a nested group counts once per outer entry
		if !p.seen.has(uint32(groups[parent].count)) {
			return &Error{Tag: tag, Reason: ReasonGroup, Offset: off, Value: quote(v), Allowed: "inside the group that begins with tag " + number(int(groups[parent].count))}
		}
		p.seen.set(tag)
	}
	p.groups[g].promised += uint32(n)
	p.grouped = true
	return nil
}

// finish checks the required fields.
func (p *parser) finish() *Error {
	if p.grouped {
		for g := 1; g < nGroups; g++ {
			if c := p.groups[g]; c.promised != c.found {
				return miscounted(groups[g].count, groups[g].first, c)
			}
		}
		if p.later != nil {
			if err := p.later.finish(); err != nil {
				return err
			}
		}
	}
	o := p.order
	if o.MsgType != 'D' {
		if !p.seen.has(41) {
			return missing(41, "in a cancel or replace")
		}
		if o.MsgType == 'F' {
			p.seen.set(40) // a cancel has none
			p.seen.set(21)
		}
	}
	if p.seen[0]&requiredMask != requiredMask {
		for _, tag := range required {
			if !p.seen.has(uint32(tag)) {
				return missing(uint32(tag), "in every order")
			}
		}
	}
	switch {
	case o.Version == FIX42 && !p.seen.has(21):
		return missing(21, "in FIX 4.2")
	case !p.seen.has(38) && !p.seen.has(152):
		return missing(38, "unless CashOrderQty (152) is there")
	case o.PriceOff == 0 && limited(o.OrdType):
		return missing(44, "for OrdType "+string(o.OrdType))
	case !p.seen.has(99) && (o.OrdType == '3' || o.OrdType == '4'):
		return missing(99, "for OrdType "+string(o.OrdType))
	case o.TimeInForce == '6' && !p.seen.has(126) && !p.seen.has(432):
		return missing(126, "or ExpireDate (432) for TimeInForce 6")
	}
	return nil
}

func miscounted(count, first uint16, c groupCount) *Error {
	return &Error{Tag: uint32(count), Reason: ReasonGroup, Value: number(int(c.promised)), Allowed: number(int(c.found)) + ", the times tag " + number(int(first)) + " is there"}
}

func missing(tag uint32, when string) *Error {
	return &Error{Tag: tag, Reason: ReasonMissing, Value: "none", Allowed: "the tag is required " + when}
}

// limited reports whether the order type has a limit price.
func limited(t byte) bool {
	switch t {
	case '2', '4', '7', '8', 'B', 'F':
		return true
	}
	return false
}
