package wire

// Authentication of clients.
const (
	TypeAuthenticate  Type = 0x04
	TypeAuthenticated Type = 0x07
)

var authFrames = []Frame{
	{Type: TypeAuthenticate, Name: "Authenticate", From: FromEither | FromClient, codec: codecOf(DecodeAuthenticate, AppendAuthenticate),
		Example: &Authenticate{ReqID: 8, Token: []byte("eyJhbGciOi.eyJhdWQiOl.c2lnbmF0dX")}},
	{Type: TypeAuthenticated, Name: "Authenticated", From: FromNode, codec: codecOf(DecodeAuthenticated, AppendAuthenticated),
		Example: &Authenticated{ReqID: 8, Permissions: MaySubmit | MayRead, ForS: 300, User: []byte("system:serviceaccount:trading:gateway")}},
}

// MaxToken bounds the token of an Authenticate frame, in bytes. A service account's
// has about 1,000, one of an OpenID provider with many groups several thousand.
const MaxToken = 16 << 10

// MaxAuthenticate is the size of the largest Authenticate frame.
const MaxAuthenticate = authenticateFixed + MaxToken

// Authenticate carries a token that identifies the client, over TLS only. The client waits
// for Authenticated before it sends anything else.
type Authenticate struct {
	ReqID uint64
	Token []byte // as after "Bearer " in HTTP; a secret
}

const authenticateFixed = HeaderSize + 12

// AppendAuthenticate appends an Authenticate frame. A token over MaxToken is cut: check
// before.
func AppendAuthenticate(dst []byte, m *Authenticate) []byte {
	token := clip(m.Token, MaxToken)
	dst, f := begin(dst, TypeAuthenticate, 0, 0, authenticateFixed+len(token))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], uint32(len(token)))
	copy(f[authenticateFixed:], token)
	return dst
}

// DecodeAuthenticate decodes an Authenticate frame.
func DecodeAuthenticate(f []byte, m *Authenticate) error {
	if err := open(f, TypeAuthenticate, authenticateFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Token = le.Uint64(f[8:]), f[authenticateFixed:]
	if n := le.Uint32(f[16:]); uint64(n) != uint64(len(m.Token)) || n == 0 || n > MaxToken {
		return &FrameError{Type: TypeAuthenticate, Field: "tokenLen", Value: uint64(n), Allowed: "the bytes that follow, 1..16384"}
	}
	return nil
}

// Permission bits of Authenticated.
const (
	MaySubmit uint16 = 1  // OpenSession, Submit
	MayRead   uint16 = 2  // Get
	MayAdmin  uint16 = 4  // ReadLog, ListSinks, ReadSink, Market: the whole log and the sink, and the state of books
	MayWatch  uint16 = 8  // Follow, ReadExecutions, ReadBook: the committed log as it grows, what it did, and the books
	MaySink   uint16 = 16 // Advance, and Follow as a reader of the configuration: it holds the log
	MayLink   uint16 = 32 // LinkOpen, LinkEntries: the log of another site, in the name of all its clients
	MayQuery  uint16 = 64 // Query: questions about the orders of a partition

	MayWrite uint16 = 512 // RegionApply, RegionBatch, Invoke: changes of regions

	MayGateway uint16 = 128 // FixOpen, FixSubmit, FixStep, FixResend, FixHere: every FIX session

	MayRisk uint16 = 256 // Kill, ReadKill, ReadLimits: the kill switch, and the limits in force
)

// Authenticated answers an Authenticate that was accepted.
type Authenticated struct {
	ReqID       uint64
	Permissions uint16 // May* bits; unknown ones are ignored
	ForS        uint32 // seconds until the node reviews the token again, or it expires; 0 for never
	User        []byte // the identity that the node assigns the client
}

const authenticatedFixed = HeaderSize + 16

// AppendAuthenticated appends an Authenticated frame.
func AppendAuthenticated(dst []byte, m *Authenticated) []byte {
	dst, f := begin(dst, TypeAuthenticated, 0, 0, authenticatedFixed+size8(m.User))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint16(f[16:], m.Permissions)
	f[18], f[19] = 0, 0
	le.PutUint32(f[20:], m.ForS)
	putString8(f[authenticatedFixed:], m.User)
	return dst
}

// DecodeAuthenticated decodes an Authenticated frame.
func DecodeAuthenticated(f []byte, m *Authenticated) (err error) {
	if err = open(f, TypeAuthenticated, authenticatedFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Permissions, m.ForS = le.Uint64(f[8:]), le.Uint16(f[16:]), le.Uint32(f[20:])
	b := f[authenticatedFixed:]
	if m.User, b, err = cutString8(b, TypeAuthenticated, "user"); err != nil {
		return err
	}
	return done(b, TypeAuthenticated)
}
