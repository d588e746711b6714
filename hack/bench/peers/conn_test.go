package peers

import (
	"bufio"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
)

// Answers of all kinds, and what is none.
func TestReceive(t *testing.T) {
	conn := func(text string) *RedisConn { return &RedisConn{in: bufio.NewReader(strings.NewReader(text))} }
	for text, want := range map[string]any{
		"+OK\r\n": "OK", ":42\r\n": int64(42), "$5\r\na\r\nbc\r\n": "a\r\nbc", "$-1\r\n": nil, "*-1\r\n": nil,
		"*3\r\n$1\r\nx\r\n:7\r\n*1\r\n+y\r\n": []any{"x", int64(7), []any{"y"}},
	} {
		if got, err := conn(text).Receive(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v, wanted %#v", text, got, err, want)
		}
	}
	var refused RedisError
	if _, err := conn("-ERR no\r\n").Receive(); !errors.As(err, &refused) || refused != "ERR no" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "\r\n", "?1\r\n", "$x\r\n", "$5\r\nabc", "*2\r\n:1\r\n"} {
		if got, err := conn(bad).Receive(); err == nil {
			t.Errorf("%q: %#v", bad, got)
		}
	}
}

// A command is an array of its words, whatever is in them.
func TestSend(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close() //nolint:errcheck // nothing is lost
	defer b.Close() //nolint:errcheck // nothing is lost
	c := &RedisConn{a, bufio.NewReader(a), bufio.NewWriter(a)}
	const want = "*2\r\n$4\r\necho\r\n$3\r\n\r\n\x01\r\n"
	sent := make(chan error, 1)
	go func() {
		got := make([]byte, len(want))
		_, err := b.Read(got)
		if err == nil && string(got) != want {
			err = errors.New(string(got))
		}
		if err == nil {
			_, err = b.Write([]byte("+ok\r\n"))
		}
		sent <- err
	}()
	if got, err := c.Do("echo", "\r\n\x01"); got != "ok" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
