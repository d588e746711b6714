package order

// Span is where a value is in a message. Len is 0 if the message has no such tag: no value
// is empty.
type Span struct{ Off, Len uint16 }

// Of returns the value in the message that the span was found in.
func (s Span) Of(msg []byte) []byte { return msg[s.Off : int(s.Off)+int(s.Len)] }

// Locator finds the values of some tags in messages that Parse accepted. As Layouts does,
// it keeps the last messages and compares: a message of the same length with the same bytes
// wherever a kept one has tags, separators and data fields, and with printable bytes
// elsewhere, has its values in the same places. Any other message is read field by field.
// What it returns depends on the message alone.
//
// A message that Parse would refuse is harmless: each value found lies inside it.
//
// It allocates at most locatorSets*locatorWays*3 KiB, on demand. It is not safe for
// concurrent use.
type Locator struct {
	tags  []uint32
	small [tableSize]uint8 // 1 + index in tags of those below tableSize
	sets  [locatorSets]locatorSet
	spans []Span // of the last message that was read
}

const (
	locatorSets = 32
	locatorWays = 4
)

type locatorSet struct {
	ways   [locatorWays]*located
	recent int   // the way that fitted last
	pause  uint8 // messages read and not kept between two that are
	left   uint8 // of pause
}

// located is a message that was read.
type located struct {
	raw  [maxLayout]byte
	keep [maxLayout]byte // 0xff: must be equal, 0: any printable byte
	body int             // bytes before "10="
	used bool            // a message matched
	hint uint64
	span []Span
}

// Places is a hint for Locate.
func (f *Fields) Places() uint64 {
	return uint64(f.SymbolOff) ^ uint64(f.QtyOff)<<16 ^ uint64(f.PriceOff)<<32 ^ uint64(f.AccountOff)<<48
}

// NewLocator returns a locator of the first value of each tag; at most 255 tags.
func NewLocator(tags ...uint32) *Locator {
	l := &Locator{tags: tags, spans: make([]Span, len(tags))}
	for i, t := range tags {
		if t < tableSize {
			l.small[t] = uint8(i + 1)
		}
	}
	return l
}

// Locate returns where the values of the tags are, in the order of NewLocator. The result
// is valid until the next call. hint is anything that is known of the places of values, such
// as Fields.Places: messages that differ in it are not compared. If msg is not of the form tag=value SOH to its end, no tag
// is there.
func (l *Locator) Locate(msg []byte, hint uint64) []Span {
	s := &l.sets[(uint64(len(msg))^hint^hint>>16^hint>>32^hint>>48)%locatorSets]
	for i := range locatorWays {
		way := (s.recent + i) % locatorWays
		if k := s.ways[way]; k != nil && k.hint == hint && k.body == len(msg)-trailer && k.fits(msg) {
			s.recent, k.used = way, true
			return k.span
		}
	}
	ok := l.read(msg, nil)
	if ok && len(msg) <= maxLayout {
		l.remember(s, msg, hint)
	}
	return l.spans
}

// remember keeps a message that was read in place of the one after the recent, ever more
// rarely if no messages are alike.
func (l *Locator) remember(s *locatorSet, msg []byte, hint uint64) {
	if s.left > 0 {
		s.left--
		return
	}
	way := (s.recent + 1) % locatorWays
	k := s.ways[way]
	switch {
	case k == nil:
		k = &located{span: make([]Span, len(l.tags))}
		s.ways[way] = k
	case k.used:
		s.pause = 0
	default:
		s.pause = min(2*s.pause+1, maxPause)
	}
	s.left, s.recent = s.pause, way
	k.body, k.used, k.hint = len(msg)-trailer, false, hint
	copy(k.raw[:], msg)
	for i := range k.body {
		k.keep[i] = 0xff
	}
	l.read(msg, k)
	copy(k.span, l.spans)
}

// fits reports whether msg, of the same length, has its values in the same places.
func (k *located) fits(msg []byte) bool {
	n := k.body
	if n < 8 {
		return false
	}
	raw, keep := k.raw[:n], k.keep[:n]
	msg = msg[:n]
	for i := 0; i+8 <= n; i += 8 {
		if w := le.Uint64(msg[i:]); w != le.Uint64(raw[i:]) && !sameWord(w, le.Uint64(raw[i:]), le.Uint64(keep[i:])) {
			return false
		}
	}
	i := n - 8 // the bytes after the last whole word
	return sameWord(le.Uint64(msg[i:]), le.Uint64(raw[i:]), le.Uint64(keep[i:]))
}

func sameWord(w, raw, keep uint64) bool { return (w^raw)&keep == 0 && notPrintable(w)&^keep == 0 }

// read fills spans field by field and, if k is given, which bytes of it may change. It
// reports whether the message has the form.
func (l *Locator) read(msg []byte, k *located) bool {
	clear(l.spans)
	from, end := BeginStringLen(msg), len(msg)-trailer
	if from == 0 || len(msg) > MaxPayload || msg[end-1] != SOH {
		return false
	}
	for i := from; i < end; {
		tag, value := readTag(msg, i, end)
		if tag == 0 || value >= end {
			clear(l.spans)
			return false
		}
		to := skipPrintable(msg, value)
		if msg[to] != SOH || to == value {
			clear(l.spans)
			return false
		}
		class := classPlain
		if tag < tableSize {
			class = classes[tag]
		}
		if class == classDataLen {
			if i = skipData(msg, value, to, end); i < 0 {
				clear(l.spans)
				return false
			}
			continue
		}
		l.note(tag, value, to-value)
		if k != nil && class != classEnvelope {
			clear(k.keep[value:to])
		}
		i = to + 1
	}
	return true
}

func (l *Locator) note(tag uint32, off, n int) {
	if tag < tableSize {
		if i := l.small[tag]; i > 0 && l.spans[i-1].Len == 0 {
			l.spans[i-1] = Span{uint16(off), uint16(n)}
		}
		return
	}
	for i, t := range l.tags {
		if t == tag && l.spans[i].Len == 0 {
			l.spans[i] = Span{uint16(off), uint16(n)}
		}
	}
}

// skipData returns the start of the field after a data field, whose length is at from..to;
// -1 if it does not lie before end.
func skipData(msg []byte, from, to, end int) int {
	n, ok := parseUint(msg[from:to], 5)
	for to++; ok && to < end && msg[to] != '='; to++ {
	}
	if next := to + 1 + n + 1; ok && next <= end && msg[next-1] == SOH {
		return next
	}
	return -1
}

// TagValue returns the first value of a tag in a message, nil if it has none: for reading
// one field now and then.
func TagValue(msg []byte, tag uint32) []byte {
	spans := [1]Span{}
	l := Locator{tags: []uint32{tag}, spans: spans[:]}
	if tag < tableSize {
		l.small[tag] = 1
	}
	l.read(msg, nil)
	return l.spans[0].Of(msg)[:l.spans[0].Len:l.spans[0].Len]
}
