// Package floor is what no system of two processes can be faster than on this
// machine: a relay that takes messages of a fixed size, hands them to a second
// process and answers once that has them. It parses, stores, orders and looks up
// nothing.
//
// There are three, and the better one counts. In Go: one epoll loop by raw
// system calls, which keeps its P while it waits, and one replication link that
// all clients share; that is the shape of a grid node. In C, where a compiler is
// installed: the same, and a thread per connection with a replication link for
// each.
//
// A message is Request bytes, an answer Reply bytes of which the first eight
// count the answers of the connection. All messages that one wake-up brings go
// to the second process in one write; it answers with a count of all messages it
// has (eight bytes, cumulative), and all answers of a wake-up leave in one write
// per client.
package floor

import (
	"errors"
	"fmt"
	"net/netip"
)

// Config of one relay process.
type Config struct {
	// Listen is "ip:port"; port 0 takes any.
	Listen string
	// Backup is where messages are forwarded to, "" for none.
	Backup string
	// Sink makes this process the second one: it answers with counts.
	Sink bool
	// Request and Reply are sizes in bytes, at least 8 and at most MaxMessage.
	Request, Reply int
}

// MaxMessage bounds Request and Reply.
const MaxMessage = 64 << 10

func (c Config) check() error {
	if _, err := netip.ParseAddrPort(c.Listen); err != nil {
		return fmt.Errorf("--listen: value %q, allowed: ip:port", c.Listen)
	}
	if _, err := netip.ParseAddrPort(c.Backup); c.Backup != "" && err != nil {
		return fmt.Errorf("--backup: value %q, allowed: ip:port", c.Backup)
	}
	if c.Sink && c.Backup != "" {
		return errors.New("--sink and --backup: allowed: one of them")
	}
	for _, s := range []struct {
		flag string
		n    int
	}{{"--request", c.Request}, {"--reply", c.Reply}} {
		if s.n < 8 || s.n > MaxMessage {
			return fmt.Errorf("%s: value %d, allowed: 8..%d bytes", s.flag, s.n, MaxMessage)
		}
	}
	return nil
}
