package fix

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// ID names a session: its version, and the CompIDs as the acceptor sees them.
type ID struct {
	Version   Version
	Acceptor  string // TargetCompID of what is received
	Initiator string // SenderCompID of what is received
}

func (id ID) String() string {
	return fmt.Sprintf("%s:%s->%s", id.Version, id.Initiator, id.Acceptor)
}

// Profile is how a session is kept. Zero fields take the documented default.
type Profile struct {
	ID
	ResetOnLogon  bool // both numbers begin at 1 with each logon
	NextExpected  bool // NextExpectedMsgSeqNum (789) in logons
	LastProcessed bool // LastMsgSeqNumProcessed (369) in each message
	ResendChunk   uint64
	// HeartBtInt (108) may be from MinHeartBt to MaxHeartBt; default 1 s to 1 h.
	MinHeartBt, MaxHeartBt time.Duration
	// Accuracy is how far SendingTime may be from the clock; default 2 min.
	Accuracy time.Duration
	ApplVer  string // DefaultApplVerID of FIXT 1.1; default "9", FIX 5.0 SP2
	// CancelOnDisconnect is when the grid cancels the orders of the session because its
	// counterparty is gone, for CancelGrace: 1 ms to 60 s, counted in milliseconds.
	CancelOnDisconnect CancelMode
	CancelGrace        time.Duration
}

// CancelMode is when orders are cancelled because their counterparty is gone.
type CancelMode string

// Modes.
const (
	CancelNever    CancelMode = ""                     // None in a file
	CancelOnLoss   CancelMode = "OnDisconnect"         // its connection or its gateway ended without a Logout of the counterparty
	CancelOnLogout CancelMode = "OnDisconnectOrLogout" // after a Logout, too
)

// Limits of an Acceptor. Zero fields take the documented default.
type Limits struct {
	Message       int           // bytes of a message; default 16 KiB
	Unsent        int           // bytes that a connection has not read; default 1 MiB
	GapMessages   int           // kept behind a gap; default 512
	GapBytes      int           // default 256 KiB
	LogonTimeout  time.Duration // default 5 s
	LogoutTimeout time.Duration // wait for the answer to a Logout; default 2 s
}

// Config of an Acceptor.
type Config struct {
	Limits Limits
	// Find returns the session of an id, nil if there is none. The strings are valid
	// during the call.
	Find func(id ID) *Session
	// Authenticate decides about a logon; nil accepts each. The error is for the log; ErrUndecided has the logon wait.
	Authenticate func(s *Session, l *Link, user, password []byte) error
	// Event is told of what is refused or ends; may be nil.
	Event func(l *Link, s *Session, err error)
	// Began and Ended are told of the answer to a link's Logon, and of its end; may be nil.
	Began, Ended func(l *Link)
}

// Acceptor has what its links share.
type Acceptor struct {
	cfg   Config
	msg   Message
	check checker
	body  Body // of the message that is made
	inner Body // its header

	counts Counts

	orders orderScratch

	stamp, origStamp stamper
}

// New returns an acceptor.
func New(cfg Config) (*Acceptor, error) {
	if cfg.Find == nil {
		return nil, errors.New("fix: Config.Find is nil, allowed: a function")
	}
	l := &cfg.Limits
	for _, v := range []struct {
		p    *int
		what string
		def  int
	}{{&l.Message, "Message", 16 << 10}, {&l.Unsent, "Unsent", 1 << 20}, {&l.GapMessages, "GapMessages", 512}, {&l.GapBytes, "GapBytes", 256 << 10}} {
		if *v.p < 0 {
			return nil, fmt.Errorf("fix: Limits.%s is %d, allowed: 1 or more, or 0 for %d", v.what, *v.p, v.def)
		}
		if *v.p == 0 {
			*v.p = v.def
		}
	}
	setDefault(&l.LogonTimeout, 5*time.Second)
	setDefault(&l.LogoutTimeout, 2*time.Second)
	return &Acceptor{cfg: cfg}, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Now is the time: Wall, unix nanoseconds, is sent and compared with what is received;
// timers go by Mono.
type Now struct{ Wall, Mono int64 }

// Session is a conversation. It is bound to one Link at a time, or to none.
type Session struct {
	a       *Acceptor
	profile Profile
	store   Store
	app     Application

	link      *Link
	opening   bool  // the Store has not answered Open
	begun     bool  // the Logon of the link is answered
	logon     logon // the last one
	heartBt   int64 // ns
	sentAt    int64 // Mono of the last message that a number was asked for, or that was sent,
	heardAt   int64 // of the last received,
	numbersAt int64 // and of the last number
	probeBy   int64 // Mono; whether the counterparty is there has to be known; 0: it was not asked
	closing   error // the link ends with it when the Logout is sent
	testAt    int64 // Mono of a TestRequest without an answer, 0: none
	logoutBy  int64 // Mono; a Logout was sent and its answer is awaited; 0: no
	gap       gap
	resending resending
}

// Session returns a new session in the state of its store.
func (a *Acceptor) Session(p Profile, store Store, app Application) (*Session, error) {
	switch {
	case p.Version < FIX42 || p.Version > FIXT11:
		return nil, fmt.Errorf("fix: session %s: version is %d, allowed: FIX42, FIX44, FIXT11", p.ID, p.Version)
	case p.Acceptor == "" || p.Initiator == "":
		return nil, fmt.Errorf("fix: session %s: a CompID is empty, allowed: both set", p.ID)
	case store == nil || app == nil:
		return nil, fmt.Errorf("fix: session %s: Store or Application is nil, allowed: both set", p.ID)
	}
	setDefault(&p.MinHeartBt, time.Second)
	setDefault(&p.MaxHeartBt, time.Hour)
	setDefault(&p.Accuracy, 2*time.Minute)
	if p.ApplVer == "" {
		p.ApplVer = "9"
	}
	s := &Session{a: a, profile: p, store: store, app: app}
	store.Bind(s)
	return s, nil
}

// Store returns the session's store.
func (s *Session) Store() Store { return s.store }

// Profile returns the session's profile with its defaults.
func (s *Session) Profile() *Profile { return &s.profile }

// ID returns the session's id.
func (s *Session) ID() ID { return s.profile.ID }

// LoggedOn reports whether the session has a connection.
func (s *Session) LoggedOn() bool { return s.link != nil }

// Logout ends the connection of the session, if it has one, in order.
func (s *Session) Logout(now Now, why string) {
	switch {
	case s.link == nil || s.logoutBy != 0:
	case s.opening && !s.begun:
		s.end(fmt.Errorf("%w: %s", ErrLogout, why))
	default:
		s.sendLogout(now, why)
	}
}

// Lost ends the connection of a session that goes on elsewhere: no Logout is sent, since
// there is no number for one.
func (s *Session) Lost(why error) {
	s.end(fmt.Errorf("%w: session %s: %w", ErrMoved, s.profile.ID, why))
}

// accurate reports whether a SendingTime is close to the clock.
func (s *Session) accurate(now Now, ns int64) bool {
	d := now.Wall - ns
	return max(d, -d) <= int64(s.profile.Accuracy)
}

// send asks for a number for a message, which sends it.
func (s *Session) send(now Now, msgType string, body []byte) {
	s.sentAt = now.Mono
	s.store.Take(now, Sent{TimeNs: now.Wall, Type: msgType, Body: body})
}

// sendKept is send for a message that is resent; ref is the number that it refuses, or 0.
func (s *Session) sendKept(now Now, msgType string, body []byte, ref uint64) {
	s.sentAt = now.Mono
	s.store.Take(now, Sent{TimeNs: now.Wall, Type: msgType, Body: body, Kept: true, Ref: ref})
}

// Numbered sends a message that has its number, unless there is no connection, or messages
// are resent: then it follows from the store.
func (s *Session) Numbered(now Now, n uint64, m Sent) {
	if s.link == nil {
		return
	}
	s.numbersAt = now.Mono
	if s.resending.active && !asks(m.Type) {
		s.resending.to = n
		return
	}
	s.write(now, &header{msgType: m.Type, seq: n, timeNs: m.TimeNs}, m.Body)
	if m.Type == "5" && s.closing != nil {
		s.end(s.closing)
	}
}

// Skipped tells that numbers were given to messages that are not sent: they are gap filled.
func (s *Session) Skipped(now Now, from, next uint64) {
	switch {
	case s.link == nil || from >= next:
	case s.resending.active:
		s.resending.to = next - 1
	default:
		s.sendFill(now, from, next)
	}
}

// asks reports whether a message cannot be replaced by a gap fill: it wants an answer.
func asks(msgType string) bool { return msgType == "5" || msgType == "2" || msgType == "1" }

// end closes the session's connection, if it has one.
func (s *Session) end(err error) {
	if s.link != nil {
		s.link.end(err)
	}
}

func (s *Session) event(err error) {
	if e := s.a.cfg.Event; e != nil {
		e(s.link, s, err)
	}
}

// write writes a message to the connection.
func (s *Session) write(now Now, h *header, body []byte) {
	l := s.link
	if s.profile.LastProcessed {
		in, _ := s.store.Next()
		h.lastDone, h.hasLast = in-1, true
	}
	s.sentAt = now.Mono
	s.a.counts.out[placeOf(h.msgType)]++
	l.out.SetOut(s.a.message(l.out.Out(), &s.profile.ID, h, body))
	if l.err == nil && s.logoutBy == 0 && l.out.Buffered() > s.a.cfg.Limits.Unsent {
		err := fmt.Errorf("%w: session %s: %d bytes were not read, allowed: %d", ErrSlow, s.profile.ID, l.out.Buffered(), s.a.cfg.Limits.Unsent)
		s.closing = err
		s.sendLogout(now, err.Error())
	}
}

func checkSum(b []byte) byte { return order.CheckSum(b) }
