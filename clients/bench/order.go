package main

import (
	"bytes"
	"fmt"
	"strings"
)

func endpoints(s string) []string { return strings.Split(s, ",") }

// counter is an order whose ClOrdID counts up in place.
type counter struct {
	fix []byte
	at  int // last digit of the ClOrdID
	sum int // of the bytes before tag 10
}

const digits = 10

func newCounter(prefix string, size int) *counter {
	body := "35=D|49=CLIENT|56=GRID|34=1|52=20261121-09:30:00|11=" + prefix + strings.Repeat("0", digits) +
		"|1=ACC|21=1|55=IBM|54=1|60=20261121-09:30:00|38=100|40=2|44=125.25|59=0|"
	if pad := size - len(body) - len("8=FIX.4.2|9=000|10=000|58=|"); pad > 0 {
		body += "58=" + strings.Repeat("x", pad) + "|"
	}
	fix := []byte(strings.ReplaceAll(fmt.Sprintf("8=FIX.4.2|9=%d|%s10=000|", len(body), body), "|", "\x01"))
	c := &counter{fix: fix, at: bytes.Index(fix, []byte("\x0111=")) + 4 + len(prefix) + digits - 1}
	for _, b := range fix[:len(fix)-7] {
		c.sum += int(b)
	}
	return c
}

// next is the order with the next ClOrdID, valid until the next call.
func (c *counter) next() []byte {
	i := c.at
	for ; c.fix[i] == '9'; i-- {
		c.fix[i] = '0'
		c.sum -= 9
	}
	c.fix[i]++
	c.sum++
	copy(c.fix[len(c.fix)-4:], fmt.Appendf(make([]byte, 0, 8), "%03d", c.sum&0xff))
	return c.fix
}
