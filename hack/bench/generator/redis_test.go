package generator

import (
	"net"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// scripted is a server that answers whatever comes with these bytes, in pieces.
func scripted(t *testing.T, pieces ...string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 64<<10)); err != nil {
			return
		}
		for _, p := range pieces {
			if _, err := c.Write([]byte(p)); err != nil {
				return
			}
		}
	}()
	return ln.Addr().String()
}

func redisConnTo(t *testing.T, address string, copies int) Conn {
	t.Helper()
	d := &redisDriver{spec: &Spec{Addresses: []string{address}, Copies: copies, Shape: Shape{Threads: 1}}}
	c, err := d.Connect(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestRedisAnswers(t *testing.T) {
	o, err := newOrders(fixorder.Size, fixorder.ID{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	submit := func(c Conn) error { return c.Submit(o.next()) }
	get := func(c Conn) error { return c.Get([]byte(fixorder.ID{}.ClOrdID(0))) }
	for _, c := range []struct {
		name   string
		copies int
		do     func(Conn) error
		pieces []string
		want   string // "" is success
	}{
		{"set", 1, submit, []string{"+OK\r\n"}, ""},
		{"set and wait", 2, submit, []string{"+O", "K\r\n:", "1\r\n"}, ""},
		{"not replicated", 2, submit, []string{"+OK\r\n:0\r\n"}, "WAIT 1 was answered \":0\""},
		{"refused", 1, submit, []string{"-OOM command not allowed\r\n"}, "submit was answered \"-OOM"},
		{"gone", 1, submit, []string{"+O"}, "unexpected EOF"},
		{"get", 1, get, []string{"$5\r\nab", "cde\r\n"}, ""},
		{"not there", 1, get, []string{"$-1\r\n"}, "wanted: an order"},
		{"not a length", 1, get, []string{"$many\r\n"}, "wanted: an order"},
		{"too long", 1, get, []string{"$9999999\r\n" + strings.Repeat("x", 300<<10)}, "an answer of more than"},
		{"something else", 1, get, []string{"*1\r\n"}, "get was answered"},
	} {
		err := c.do(redisConnTo(t, scripted(t, c.pieces...), c.copies))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A batch with WAIT counts as answered when WAIT is.
func TestRedisBatch(t *testing.T) {
	o, err := newOrders(fixorder.Size, fixorder.ID{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &Stream{next: o.next, left: 3, from: clock.Now()}
	if err := redisConnTo(t, scripted(t, "+OK\r\n+OK\r\n", "+OK\r\n:1\r\n"), 2).Pipe(Submit, 64, s); err != nil {
		t.Fatal(err)
	}
	if s.head != 3 {
		t.Errorf("%d answered, want 3", s.head)
	}
}
