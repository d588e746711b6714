package gateway

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// party is a counterparty that keeps what was sent in both directions by number, and connects
// to another gateway at once when it loses its connection.
type party struct {
	t     *testing.T
	name  string
	addrs []string

	mu       sync.Mutex
	c        net.Conn
	loggedOn bool
	ended    bool
	mute     bool // it answers nothing, like one behind a cut network
	turn     int
	tries    int               // Logons sent
	logons   int               // answered
	out      uint64            // the next number to send
	sent     map[uint64]string // type and fields of orders
	in       uint64            // the number expected
	asked    bool              // a ResendRequest is under way
	seen     map[uint64]string // what was received, without what a resend may change
	reports  map[string][]string
	again    int // resent messages that were compared
	killed   kill
	outages  []time.Duration // from the kill of its gateway to the next report, over a new connection
}

// kill is that of the gateway that a party is logged on to.
type kill struct {
	at     time.Time // zero: the next report has come
	logons int       // of the party until then
}

// kills has the party time how long it is without a gateway. It is called at the moment of the kill.
func (p *party) kills() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = kill{time.Now(), p.logons}
}

// isServed reports whether a report has come since the kill of its gateway.
func (p *party) isServed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed.at.IsZero()
}

// newParty returns one whose first number is out.
func newParty(t *testing.T, out uint64, name string, addrs ...string) *party {
	p := &party{t: t, name: name, addrs: addrs, out: out, in: 1, sent: map[uint64]string{}, seen: map[uint64]string{}, reports: map[string][]string{}}
	var done sync.WaitGroup
	done.Go(p.run)
	t.Cleanup(func() {
		p.mu.Lock()
		p.ended = true
		if p.c != nil {
			_ = p.c.Close()
		}
		p.mu.Unlock()
		done.Wait()
	})
	return p
}

// run keeps a connection until the test ends.
func (p *party) run() {
	for {
		p.mu.Lock()
		ended, addr := p.ended, p.addrs[p.turn%len(p.addrs)]
		p.turn++
		p.mu.Unlock()
		if ended {
			return
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		p.mu.Lock()
		p.c, p.loggedOn, p.asked = c, false, false
		p.tries++
		p.write(p.next(), "A", "98=0|108=5|553=user|554=right|")
		p.mu.Unlock()
		p.read(bufio.NewReader(c))
		p.mu.Lock()
		p.c, p.loggedOn = nil, false
		_ = c.Close()
		p.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

func (p *party) next() uint64 {
	p.out++
	return p.out - 1
}

// write sends a message; what cannot be written is asked for after the next Logon.
func (p *party) write(seq uint64, kind, fields string) {
	if p.c == nil {
		return
	}
	at := time.Now().UTC().Format("20060102-15:04:05.000")
	body := strings.ReplaceAll(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=GRID|%s", kind, seq, p.name, at, strings.ReplaceAll(fields, "NOW", at)), "|", "\x01")
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s", len(body), body)
	_, _ = p.c.Write(fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m)))
}

// order sends one, or keeps it for when it is asked for.
func (p *party) order(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seq := p.next()
	p.sent[seq] = "11=" + id + "|1=ACCT|55=INTC|54=1|60=" + time.Now().UTC().Format("20060102-15:04:05.000") + "|38=500|40=2|44=21.35|59=0|"
	if p.loggedOn {
		p.write(seq, "D", p.sent[seq])
	}
}

func (p *party) read(r *bufio.Reader) {
	for {
		var m strings.Builder
		for last := ""; !strings.HasPrefix(last, "10="); m.WriteString(strings.TrimSuffix(last, "\x01") + "|") {
			var err error
			if last, err = r.ReadString(1); err != nil {
				return
			}
		}
		p.mu.Lock()
		if !p.mute {
			p.received(m.String())
		}
		p.mu.Unlock()
	}
}

func field(m, tag string) string {
	_, v, _ := strings.Cut("|"+m, "|"+tag+"=")
	v, _, _ = strings.Cut(v, "|")
	return v
}

// lasting returns a message without what a resend may change.
func lasting(m string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(m, "|"), func(f string) bool {
		tag, _, _ := strings.Cut(f, "=")
		return slices.Contains([]string{"9", "10", "43", "52", "122"}, tag)
	}), "|")
}

func (p *party) received(m string) {
	seq, _ := strconv.ParseUint(field(m, "34"), 10, 64)
	kind := field(m, "35")
	if first, is := p.seen[seq]; is && kind != "4" {
		if p.again++; first != lasting(m) {
			p.t.Errorf("%s: number %d was sent as\n%s\nand then as\n%s", p.name, seq, first, lasting(m))
		}
	} else if kind == "8" {
		p.seen[seq] = lasting(m)
		id := field(m, "11")
		p.reports[id] = append(p.reports[id], field(m, "150"))
		if !p.killed.at.IsZero() && p.logons > p.killed.logons {
			p.outages = append(p.outages, time.Since(p.killed.at))
			p.killed = kill{}
		}
	}
	switch {
	case kind == "2" && seq >= p.in:
		p.resend(m)
	case seq < p.in && field(m, "43") != "Y":
		p.t.Errorf("%s: expected number %d: %s", p.name, p.in, m)
	}
	if kind == "A" && !p.loggedOn {
		p.loggedOn = true
		p.logons++
	}
	switch {
	case seq > p.in:
		if kind == "8" {
			p.drop(seq, field(m, "11"))
		}
		if !p.asked && kind != "5" {
			p.asked = true
			p.write(p.next(), "2", fmt.Sprintf("7=%d|16=0|", p.in))
		}
		return
	case seq < p.in:
		return
	}
	p.in++
	p.asked = false
	switch kind {
	case "4":
		p.in, _ = strconv.ParseUint(field(m, "36"), 10, 64)
	case "1":
		p.write(p.next(), "0", "112="+field(m, "112")+"|")
	case "5":
		p.write(p.next(), "5", "")
	}
}

// drop forgets a report that came too early: it is asked for again.
func (p *party) drop(seq uint64, id string) {
	if r := p.reports[id]; len(r) > 0 {
		p.reports[id] = r[:len(r)-1]
	}
	delete(p.seen, seq)
}

// resend sends again what is asked for: orders, and gap fills for the rest.
func (p *party) resend(m string) {
	from, _ := strconv.ParseUint(field(m, "7"), 10, 64)
	to, _ := strconv.ParseUint(field(m, "16"), 10, 64)
	if to == 0 || to >= p.out {
		to = p.out - 1
	}
	for from <= to {
		if fields, is := p.sent[from]; is {
			p.write(from, "D", "43=Y|122=NOW|"+fields)
			from++
			continue
		}
		end := from + 1
		for end <= to && p.sent[end] == "" {
			end++
		}
		p.write(from, "4", fmt.Sprintf("43=Y|122=NOW|36=%d|123=Y|", end))
		from = end
	}
}

// isOn reports whether its Logon was answered, on the present connection.
func (p *party) isOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loggedOn
}

func (p *party) answeredLogons() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logons
}

// answered returns how many orders have a report.
func (p *party) answered() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.reports {
		n += min(len(r), 1)
	}
	return n
}

// askAll asks for everything again, and waits for it.
func (p *party) askAll() {
	p.t.Helper()
	p.mu.Lock()
	before := p.again
	p.write(p.next(), "2", "7=1|16=0|")
	want := len(p.seen)
	p.mu.Unlock()
	waitFor(p.t, p.name+": all reports again", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.again-before >= want
	})
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited a minute in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
