package flow

import (
	"math"
	"slices"
)

// The mix of messages and the lifetimes of orders come from the same public record as the Hawkes
// kernel: 49.95 % new, 49.96 % cancelled or done, 0.09 % changed.
const (
	replaceShare = 0.0009
	replaceSalt  = 0x7265706c616365
	timeSalt     = 0x6c69666574696d
)

// lifetimes are points of the distribution of the time from an order to its end: share of orders,
// and that time in seconds. Between points the logarithm of the time is linear. Half live less than
// the record's resolution of 1 ms; it has no data beyond the 99th percentile, so the last point is
// a guess.
var lifetimes = [...]struct{ share, seconds float64 }{
	{0.5, 0.001}, {0.809, 0.1}, {0.892, 1}, {0.9, 1.277}, {0.99, 36.683}, {1, 120},
}

// lifetime in ns at u in (0, 1).
func lifetime(u float64) int64 {
	if u < lifetimes[0].share {
		return 0
	}
	i := 1
	for i < len(lifetimes)-1 && u > lifetimes[i].share {
		i++
	}
	a, b := lifetimes[i-1], lifetimes[i]
	f := (u - a.share) / (b.share - a.share)
	return int64(1e9 * math.Exp(math.Log(a.seconds)+f*math.Log(b.seconds/a.seconds)))
}

// generate determines the event at every intended time: the end of the order that is longest past
// its time, else a new order, sometimes a change of a live one. So the times stay those of the
// arrival process, and an order lives for its lifetime and until the next event.
func generate(at []int64, seed uint64) *Messages {
	m := &Messages{seed: seed, events: make([]event, len(at))}
	rng := random{state: hash(seed, 1)}
	var alive dueHeap
	for i, now := range at {
		switch {
		case len(alive) > 0 && rng.float() < replaceShare:
			d := &alive[rng.next()%uint64(len(alive))]
			m.events[i] = event{target: d.current, root: ^d.root}
			d.current = int32(i)
		case len(alive) > 0 && alive[0].at <= now:
			d := alive.pop()
			m.events[i] = event{target: d.current, root: d.root}
		default:
			m.events[i] = event{target: -1, root: int32(i)}
			alive.push(due{at: now + lifetime(unit(hash(seed^timeSalt, uint64(i)))), root: int32(i), current: int32(i)})
		}
	}
	return m
}

// due is a live order: when it ends, and its last message.
type due struct {
	at            int64
	root, current int32
}

// dueHeap has the order that ends first at its top. Equal times keep the order
// of creation, so that the result does not depend on the heap's shape.
type dueHeap []due

func (h dueHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].root < h[j].root
}

func (h *dueHeap) push(d due) {
	*h = append(*h, d)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *dueHeap) pop() due {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	*h = s
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < n && s.less(c, least) {
				least = c
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}

// symbolCount is the number of instruments of generated orders; the k-th has a share proportional
// to 1/k (Zipf).
const symbolCount = 500

var (
	symbols   = makeSymbols()
	symbolCDF = makeSymbolCDF()
)

// makeSymbols returns AAA, AAB ..., which are not real symbols.
func makeSymbols() (s [symbolCount]string) {
	for i := range s {
		s[i] = string([]byte{'A' + byte(i/676), 'A' + byte(i/26%26), 'A' + byte(i%26)})
	}
	return s
}

func makeSymbolCDF() (c [symbolCount]float64) {
	sum := 0.
	for i := range c {
		sum += 1 / float64(i+1)
		c[i] = sum
	}
	for i := range c {
		c[i] /= sum
	}
	return c
}

// draw determines an order from its number alone.
func (m *Messages) draw(root uint64, into *Message) {
	r := random{state: hash(m.seed, root)}
	n, _ := slices.BinarySearch(symbolCDF[:], r.float())
	n = min(n, symbolCount-1)
	into.Symbol = symbols[n]
	z := r.next()
	into.Side = "1112225112211122"[z&15] // some of the sellers sell short
	into.Type = orderType(z >> 4 & 127)
	into.Time = "0000000000000001"[z>>11&15]
	r.price(n, into)
	into.Qty = r.quantity()
}

// orderType: 1.6 % market, 6.2 % stop limit, the rest limit orders.
func orderType(z uint64) byte {
	switch {
	case z < 2:
		return '1'
	case z < 10:
		return '4'
	}
	return '2'
}

// price near the instrument's own, which is between 5 and 500, in whole cents.
func (r *random) price(symbol int, into *Message) {
	if into.Type == '1' {
		return
	}
	own := 5 * math.Exp(unit(hash(uint64(symbol), 2))*math.Log(100))
	cents := own * 100 * (1 + 0.002*(r.exponential()-r.exponential()))
	into.Price = uint32(max(1, cents)) * 100
	if into.Type == '4' {
		into.Stop = into.Price
	}
}

// quantity: mostly round lots of 100, many of one lot, few of many; one in five
// is odd.
func (r *random) quantity() uint32 {
	z := r.next()
	lots := uint32(1 + r.exponential()*r.exponential()*2)
	if z%5 == 0 {
		return uint32(1 + z>>8%99)
	}
	return min(lots, 9999) * 100
}

// redraw changes quantity and price, as a replace does.
func redraw(seed uint64, into *Message) {
	r := random{state: seed}
	into.Qty = r.quantity()
	if into.Price > 0 {
		step := int64(r.next()%11) - 5 // cents
		into.Price = uint32(max(100, int64(into.Price)+step*100))
	}
}
