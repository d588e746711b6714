package script

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
)

// Virtual is a session layer without sockets, in a time that passes only while a script
// waits.
type Virtual struct {
	acceptor *fix.Acceptor
	session  *fix.Session
	store    *fix.Memory
	now      time.Time
	began    time.Time
	links    map[int]*virtualLink
	Events   []string // what was refused, and why
}

type virtualLink struct {
	link *fix.Link
	buffer
	in []byte
}

// buffer is an output that is always read.
type buffer struct{ b []byte }

func (b *buffer) Out() []byte       { return b.b }
func (b *buffer) SetOut(out []byte) { b.b = out }
func (b *buffer) Buffered() int     { return 0 }

// NewVirtual returns an acceptor with one session.
func NewVirtual(p fix.Profile) (*Virtual, error) {
	v := &Virtual{store: fix.NewMemory(1 << 20), now: time.Now(), links: map[int]*virtualLink{}}
	v.began = v.now
	var err error
	v.acceptor, err = fix.New(fix.Config{
		Find: func(id fix.ID) *fix.Session {
			if id != p.ID {
				return nil
			}
			return v.session
		},
		Event: func(_ *fix.Link, _ *fix.Session, err error) { v.Events = append(v.Events, err.Error()) },
	})
	if err == nil {
		v.session, err = v.acceptor.Session(p, v.store, &Echo{})
	}
	return v, err
}

func (v *Virtual) time() fix.Now {
	return fix.Now{Wall: v.now.UnixNano(), Mono: int64(v.now.Sub(v.began))}
}

// Now implements Acceptor.
func (v *Virtual) Now() time.Time { return v.now }

// Connect implements Acceptor.
func (v *Virtual) Connect(n int) error {
	l := &virtualLink{}
	l.link = v.acceptor.Open(v.time(), l)
	v.links[n] = l
	return nil
}

// Disconnect implements Acceptor.
func (v *Virtual) Disconnect(n int) { v.links[n].link.Closed(errors.New("disconnected by the script")) }

// Write implements Acceptor.
func (v *Virtual) Write(n int, b []byte) error {
	l := v.links[n]
	if err := l.link.Err(); err != nil {
		return fmt.Errorf("the connection ended: %w", err)
	}
	l.in = append(l.in, b...)
	l.in = l.in[l.link.Receive(v.time(), l.in):]
	return nil
}

// Read implements Acceptor.
func (v *Virtual) Read(n int, within time.Duration) ([]byte, error) {
	l := v.links[n]
	for until := v.now.Add(within); ; v.pass() {
		if m, rest := Cut(l.b); m != nil {
			l.b = rest
			return m, nil
		}
		switch {
		case l.link.Err() != nil:
			return nil, fmt.Errorf("the connection ended: %w", l.link.Err())
		case v.now.After(until):
			return nil, fmt.Errorf("nothing came within %s", within)
		}
	}
}

// Ended implements Acceptor.
func (v *Virtual) Ended(n int, within time.Duration) error {
	l := v.links[n]
	for until := v.now.Add(within); ; v.pass() {
		switch {
		case len(l.b) > 0:
			return fmt.Errorf("expected the end of the connection, received %s", show(l.b))
		case l.link.Err() != nil:
			return nil
		case v.now.After(until):
			return fmt.Errorf("the connection did not end within %s", within)
		}
	}
}

// pass lets 100 ms pass.
func (v *Virtual) pass() {
	v.now = v.now.Add(100 * time.Millisecond)
	for _, l := range v.links {
		l.link.Tick(v.time())
	}
}

// Set implements Acceptor.
func (v *Virtual) Set(key string, value uint64) error { return setNumber(v.store, key, value) }
