package fix

// countedTypes are the message types that are counted one by one, each a character; all
// others are counted together.
const countedTypes = "012345A9DFGHqj8"

// Counts are messages since the start, of all links together: those received that could
// be read, before a logon too, and those written, resent ones included.
type Counts struct{ in, out [len(countedTypes) + 1]uint64 }

// Each calls f with the numbers of every type, and those of all other types as "other".
func (c *Counts) Each(f func(msgType string, in, out uint64)) {
	for i := range countedTypes {
		f(countedTypes[i:i+1], c.in[i], c.out[i])
	}
	f("other", c.in[len(countedTypes)], c.out[len(countedTypes)])
}

// place is the index of a type in Counts.
var place = func() (p [256]uint8) {
	for i := range p {
		p[i] = uint8(len(countedTypes))
	}
	for i := range countedTypes {
		p[countedTypes[i]] = uint8(i)
	}
	return p
}()

func placeOf[T string | []byte](msgType T) int {
	if len(msgType) != 1 {
		return len(countedTypes)
	}
	return int(place[msgType[0]])
}

// Counts returns a copy of the counters.
func (a *Acceptor) Counts() Counts { return a.counts }
