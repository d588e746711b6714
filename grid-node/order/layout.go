package order

// Layouts is Parse for a stream of similar orders, as from one source. It keeps the last
// messages that Parse accepted, and which of their bytes may change without affecting how
// any other field is read. A message of the same length is then compared with them word by
// word, and only differing bytes are checked. Everything else goes to Parse: results and
// errors are those of Parse.
//
// The zero value is ready. It allocates at most layoutSets*layoutWays*5 KiB, on demand,
// and nothing else. It is not safe for concurrent use.
type Layouts struct {
	sets   [layoutSets]layoutSet
	fitted int // 1 + the place among all layouts of that which the last message is like; 0: none
}

const (
	layoutSets = 16
	layoutWays = 2
	// maxLayout bounds the messages that are kept, in bytes. Below it sums of all bytes
	// fit 16 bits, see bytesSum.
	maxLayout = 1024
	maxChecks = 8
	maxPause  = 63
)

// layoutSet has the layouts of the lengths that are equal modulo layoutSets.
type layoutSet struct {
	ways   [layoutWays]*layout
	recent int   // the way that fitted last
	pause  uint8 // unmatched messages not kept between two that are
	left   uint8 // of pause
}

// layout is a message that Parse accepted, prepared for comparison.
type layout struct {
	raw    [maxLayout]byte           // the message, up to the SOH before "10="
	words  [maxLayout / 8]layoutWord // of raw, the last ones end where it does
	size   int                       // bytes of the message
	body   int                       // bytes of raw
	sum    uint8                     // of all bytes before "10="
	used   bool                      // a message matched
	checks [maxChecks]layoutCheck
	nCheck int
	order  Order

	terms        termPlaces // once termed
	termed, bare bool       // bare: there are none
}

// layoutWord is how eight bytes may change. Each mask has 0xff, digit 0x80, in the bytes
// concerned.
type layoutWord struct {
	keep   uint64 // must be equal: tags, separators, bytes that determine how others are read
	digit  uint64 // must stay a digit
	again  uint64 // on a change the values in checks are checked again
	checks uint8  // bit i for checks[i]
}

// layoutCheck is a value with more constraints than its characters.
type layoutCheck struct {
	off, end uint16
	time     bool // a UTCTimestamp; else a positive decimal number
}

// Parse is the function Parse.
func (ls *Layouts) Parse(msg []byte, o *Order) *Error {
	s := &ls.sets[len(msg)%layoutSets]
	for i := range layoutWays {
		way := (s.recent + i) % layoutWays
		if l := s.ways[way]; l != nil && l.size == len(msg) && l.fits(msg) {
			s.recent, l.used, ls.fitted = way, true, 1+len(msg)%layoutSets*layoutWays+way
			*o = l.order
			return nil
		}
	}
	ls.fitted = 0
	body, end, err := parse(msg, o)
	if err == nil && len(msg) <= maxLayout {
		s.remember(msg, o, body, end)
	}
	return err
}

// remember replaces the least recently matched layout. If no messages are alike it does so
// ever more rarely.
func (s *layoutSet) remember(msg []byte, o *Order, body, end int) {
	if s.left > 0 {
		s.left--
		return
	}
	way := (s.recent + 1) % layoutWays
	l := s.ways[way]
	switch {
	case l == nil:
		l = new(layout)
		s.ways[way] = l
	case l.used:
		s.pause = 0
	default:
		s.pause = min(2*s.pause+1, maxPause)
	}
	s.left, s.recent = s.pause, way
	l.learn(msg, o, body, end)
}

// fits reports whether msg, of the same size, is a valid order for the same reasons as the
// learned message, with all fields in the same places.
func (l *layout) fits(msg []byte) bool {
	var was, is uint64 // sums of the words that differ
	var due uint8
	if le.Uint64(l.raw[:]) != le.Uint64(msg) { // the version; the words begin somewhere in it
		return false
	}
	a, b := l.raw[l.body&7:l.body], msg[l.body&7:l.body]
	for i := 0; i+8 <= len(a) && i+8 <= len(b); {
		if i+32 <= len(a) && i+32 <= len(b) && same32(a[i:i+32], b[i:i+32]) {
			i += 32
			continue
		}
		for block := min(i+32, len(a), len(b)); i+8 <= block; i += 8 {
			t, w := le.Uint64(a[i:]), le.Uint64(b[i:])
			if t == w {
				continue
			}
			d, k := t^w, &l.words[i>>3]
			if d&k.keep != 0 || notPrintable(w)&^k.keep != 0 || notDigit(w)&k.digit != 0 {
				return false
			}
			if d&k.again != 0 {
				due |= k.checks
			}
			was += bytesSum(t)
			is += bytesSum(w)
		}
	}
	if !endsSealed(msg, l.sum+uint8(lanes(is))-uint8(lanes(was))) {
		return false
	}
	return due == 0 || l.again(msg, due)
}

// same32 reports whether 32 bytes are equal.
func same32(a, b []byte) bool {
	_, _ = a[31], b[31]
	return (le.Uint64(a)^le.Uint64(b))|(le.Uint64(a[8:])^le.Uint64(b[8:]))|
		(le.Uint64(a[16:])^le.Uint64(b[16:]))|(le.Uint64(a[24:])^le.Uint64(b[24:])) == 0
}

// again checks values with more constraints than their characters. A message that passes
// replaces the reference: its times are closer to the next.
func (l *layout) again(msg []byte, due uint8) bool {
	for i := range l.checks[:l.nCheck] {
		c := &l.checks[i]
		if due>>i&1 == 0 {
			continue
		}
		v := msg[c.off:c.end]
		if c.time && !timestamp(v) || !c.time && !decimal(v, false) {
			return false
		}
	}
	copy(l.raw[:l.body], msg)
	l.sum = CheckSum(msg[:l.size-trailer])
	return true
}

// endsSealed reports whether a message ends with SOH, CheckSum, and SOH.
func endsSealed(msg []byte, sum uint8) bool {
	const (
		want = SOH | '1'<<8 | '0'<<16 | '='<<24 | SOH<<56
		text = 0xff<<56 | 0xffffffff
	)
	w := le.Uint64(msg[len(msg)-8:])
	if w&text != want || notDigit(w)&(0x808080<<32) != 0 {
		return false
	}
	return (w>>32&15)*100+(w>>40&15)*10+w>>48&15 == uint64(sum)
}

// learn keeps msg, which parse accepted with o, body and end.
func (l *layout) learn(msg []byte, o *Order, body, end int) {
	*l = layout{size: len(msg), body: end - 1, sum: CheckSum(msg[:end]), order: *o}
	copy(l.raw[:l.body], msg)
	for i := body; i < end; {
		tag, from := readTag(msg, i, end)
		to := skipPrintable(msg, from)
		if tag < tableSize && classes[tag] == classDataLen {
			i = behindData(msg, from, to)
			continue
		}
		l.field(tag, from, to)
		i = to + 1
	}
	l.keepRest()
}

// behindData returns the start of the field after a data field, whose length is at
// from..to. Data and length may not change.
func behindData(msg []byte, from, to int) int {
	n, _ := parseUint(msg[from:to], 5)
	for to++; msg[to] != '='; to++ {
	}
	return to + 1 + n + 1
}

// field records how the value at from..to may change.
func (l *layout) field(tag uint32, from, to int) {
	class := classPlain
	switch {
	case tag < tableSize:
		class = classes[tag]
	case l.order.Version == FIX50 && laterDecides(tag):
		return
	}
	switch class {
	case classPlain, classMember, classClOrdID, classSymbol, classAccount:
		for i := from; i < to; i++ {
			l.free(i)
		}
	case classInt, classPrice:
		l.digits(from, to)
	case classQty, classTime:
		if l.nCheck == maxChecks {
			return
		}
		l.checks[l.nCheck] = layoutCheck{off: uint16(from), end: uint16(to), time: class == classTime}
		l.digits(from, to)
		coarse := to
		if class == classTime {
			coarse = min(to, from+len("20060102-15:04:05")) // any three digits are milliseconds
		}
		for i := from; i < coarse; i++ {
			k, bit := l.at(i)
			k.again |= 0xff << bit
			k.checks |= 1 << l.nCheck
		}
		l.nCheck++
	}
}

// digits lets each digit from..to become any other.
func (l *layout) digits(from, to int) {
	for i := from; i < to; i++ {
		if l.raw[i]-'0' <= 9 {
			l.free(i)
			k, bit := l.at(i)
			k.digit |= 0x80 << bit
		}
	}
}

// free lets a byte become any other printable one. keep is inverted until keepRest.
func (l *layout) free(i int) {
	k, bit := l.at(i)
	k.keep |= 0xff << bit
}

// at returns the word that checks a byte, and the position of its lowest bit there.
func (l *layout) at(i int) (k *layoutWord, bit int) {
	i -= l.body & 7
	return &l.words[i>>3], i & 7 * 8
}

// keepRest ends learning: bytes that were not freed must stay.
func (l *layout) keepRest() {
	for i := range l.words {
		l.words[i].keep = ^l.words[i].keep
	}
}

// notPrintable has the high bit of each byte that is not printable ASCII. No sum
// here carries into the next byte.
func notPrintable(w uint64) uint64 {
	low := w &^ highs
	return (^(low + 0x60*ones) | (low + ones) | w) & highs
}

// notDigit has the high bit of each byte that is not '0' to '9'.
func notDigit(w uint64) uint64 {
	x := w ^ '0'*ones
	return (x&^highs + 0x76*ones | x) & highs
}

// bytesSum adds neighbouring bytes: four sums of 16 bits, of at most 510 each.
func bytesSum(w uint64) uint64 {
	const low = 0x00ff00ff00ff00ff
	return w&low + w>>8&low
}
