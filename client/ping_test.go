package client

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestPingHostileServer: a node that breaks the protocol ends a Ping with an error that describes
// the violation.
func TestPingHostileServer(t *testing.T) {
	frame := func(typ wire.Type, id uint64) []byte {
		return wire.AppendRequest(nil, typ, &wire.Request{ReqID: id})
	}
	for name, c := range map[string]struct {
		reply []byte
		want  string
	}{
		"a pong":          {frame(wire.TypePong, 1), ""},
		"of another ping": {frame(wire.TypePong, 2), "Pong.reqID is 2, allowed: 1, that of the Ping"},
		"a ping":          {frame(wire.TypePing, 1), "answer to Ping"},
		"cut short":       {[]byte("\x09\x00\x00\x00\x63\x00\x00\x00\x00"), "answer to Ping"},
		"garbage":         {[]byte("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7"), "undecodable bytes"},
		"goaway":          {wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayLimit, Text: []byte("too many connections")}), "too many connections"},
		"silence":         {nil, "deadline exceeded"},
		"closes":          {[]byte{}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			go func() {
				defer far.Close()
				if _, err := far.Read(make([]byte, 64)); err != nil {
					return
				}
				if c.reply == nil {
					time.Sleep(2 * time.Second)
					return
				}
				_, _ = far.Write(c.reply) // the client may have gone
			}()
			timeout := time.Minute
			if c.reply == nil {
				timeout = 100 * time.Millisecond
			}
			p := &Pinger{c: &Client{cfg: Config{RequestTimeout: timeout}}, k: newConn(&netStream{conn: near}, "node:1")}
			err := p.Ping(t.Context())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
