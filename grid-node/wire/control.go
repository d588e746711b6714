package wire

// How connections begin and end, and their liveness.
const (
	TypeHello   Type = 0x01
	TypeWelcome Type = 0x02
	TypeGoaway  Type = 0x03
	TypePing    Type = 0x62
	TypePong    Type = 0x63
)

var controlFrames = []Frame{
	{Type: TypeHello, Name: "Hello", From: FromEither, codec: codecOf(DecodeHello, AppendHello),
		Example: &Hello{MinVersion: MinVersion, MaxVersion: Version, Role: RolePeer, BootID: 0xa1, Grid: []byte("g"), Member: exampleMember.Member, Address: exampleMember.Address}},
	{Type: TypeWelcome, Name: "Welcome", From: FromEither, codec: codecOf(DecodeWelcome, AppendWelcome),
		Example: &Welcome{Version: Version, Features: uint16(FeatureReadOrders), MaxFrame: MaxFrame, Window: 512, Grid: []byte("g"), Member: exampleMember.Member}},
	{Type: TypeGoaway, Name: "Goaway", From: FromEither | FromClient | FromPeer | FromPulse | FromNode, codec: codecOf(DecodeGoaway, AppendGoaway),
		Example: &Goaway{Code: GoawayGrid, Text: []byte("this is grid g")}},
	{Type: TypePing, Name: "Ping", From: FromClient | FromPeer, codec: codecFor(TypePing, DecodeRequest, AppendRequest),
		Example: &Request{ReqID: 13}},
	{Type: TypePong, Name: "Pong", From: FromNode | FromPeer, codec: codecFor(TypePong, DecodeRequest, AppendRequest),
		Example: &Request{ReqID: 13}},
}

// Role is the role of the dialler of a connection.
type Role uint8

// Roles. They share one port; a node answers frames that do not belong to the connection's
// role with Goaway.
const (
	RoleClient   Role = 1
	RolePeer     Role = 2
	RoleAdmin    Role = 3
	RoleLiveness Role = 4 // of a node: Heartbeat and HeartbeatAck only, on a thread of their own
	RoleBulk     Role = 5 // of a node: catch-up of learners
)

// IsNode reports whether the dialler is another node of the shard.
func (r Role) IsNode() bool { return r == RolePeer || r == RoleLiveness || r == RoleBulk }

// Hello is the first frame of a connection, from the dialler.
type Hello struct {
	MinVersion, MaxVersion uint16
	Role                   Role
	BootID                 uint64 // of the dialling process; 0 for clients and tools
	Grid                   []byte // name of the grid the dialler wants
	Member                 []byte // "<pod>/<bootID>" of a node, a free name of a client
	Address                []byte // "ip:port" a node is reached at, empty for clients
}

const helloFixed = HeaderSize + 20

// AppendHello appends a Hello frame.
func AppendHello(dst []byte, m *Hello) []byte {
	dst, f := begin(dst, TypeHello, 0, 0, helloFixed+size8(m.Grid)+size8(m.Member)+size8(m.Address))
	le.PutUint32(f[8:], Magic)
	le.PutUint16(f[12:], m.MinVersion)
	le.PutUint16(f[14:], m.MaxVersion)
	f[16] = byte(m.Role)
	f[17], f[18], f[19] = 0, 0, 0
	le.PutUint64(f[20:], m.BootID)
	putString8(putString8(putString8(f[28:], m.Grid), m.Member), m.Address)
	return dst
}

// DecodeHello decodes a Hello frame.
func DecodeHello(f []byte, m *Hello) (err error) {
	if err = open(f, TypeHello, helloFixed, false); err != nil {
		return err
	}
	if v := le.Uint32(f[8:]); v != Magic {
		return &FrameError{Type: TypeHello, Field: "magic", Value: uint64(v), Allowed: `the bytes "OGR1"`}
	}
	m.MinVersion, m.MaxVersion = le.Uint16(f[12:]), le.Uint16(f[14:])
	if m.MinVersion > m.MaxVersion {
		return &FrameError{Type: TypeHello, Field: "minVersion", Value: uint64(m.MinVersion), Allowed: "at most maxVersion"}
	}
	m.Role = Role(f[16])
	if m.Role < RoleClient || m.Role > RoleBulk {
		return &FrameError{Type: TypeHello, Field: "role", Value: uint64(f[16]), Allowed: "1 client, 2 peer, 3 admin, 4 liveness, 5 bulk"}
	}
	m.BootID = le.Uint64(f[20:])
	b := f[28:]
	if m.Grid, b, err = cutString8(b, TypeHello, "grid"); err != nil {
		return err
	}
	if m.Member, b, err = cutString8(b, TypeHello, "member"); err != nil {
		return err
	}
	if m.Address, b, err = cutString8(b, TypeHello, "address"); err != nil {
		return err
	}
	return done(b, TypeHello)
}

// Negotiate picks the version both sides speak: the highest in common, or 0 when there is
// none.
func Negotiate(m *Hello) uint16 {
	v := min(m.MaxVersion, Version)
	if v < MinVersion || v < m.MinVersion {
		return 0
	}
	return v
}

// Welcome answers a Hello.
type Welcome struct {
	Version  uint16 // the version spoken from here on
	Features uint16 // what the node knows beyond it, the lowest bits of its FeatureSet; 0 of a release before
	MaxFrame uint32 // bytes; the largest frame the node accepts
	Window   uint32 // submits one session may have in flight
	Grid     []byte
	Member   []byte // "<pod>/<bootID>" of the answering node
}

const welcomeFixed = HeaderSize + 12

// AppendWelcome appends a Welcome frame.
func AppendWelcome(dst []byte, m *Welcome) []byte {
	dst, f := begin(dst, TypeWelcome, 0, 0, welcomeFixed+size8(m.Grid)+size8(m.Member))
	le.PutUint16(f[8:], m.Version)
	le.PutUint16(f[10:], m.Features)
	le.PutUint32(f[12:], m.MaxFrame)
	le.PutUint32(f[16:], m.Window)
	putString8(putString8(f[20:], m.Grid), m.Member)
	return dst
}

// DecodeWelcome decodes a Welcome frame.
func DecodeWelcome(f []byte, m *Welcome) (err error) {
	if err = open(f, TypeWelcome, welcomeFixed, false); err != nil {
		return err
	}
	m.Version, m.Features = le.Uint16(f[8:]), le.Uint16(f[10:])
	m.MaxFrame = le.Uint32(f[12:])
	m.Window = le.Uint32(f[16:])
	b := f[20:]
	if m.Grid, b, err = cutString8(b, TypeWelcome, "grid"); err != nil {
		return err
	}
	if m.Member, b, err = cutString8(b, TypeWelcome, "member"); err != nil {
		return err
	}
	return done(b, TypeWelcome)
}

// Goaway is the reason why the connection closes. Nothing follows it.
type Goaway struct {
	Code uint16 // Goaway* constants
	Text []byte // human-readable
}

const goawayFixed = HeaderSize + 4

// AppendGoaway appends a Goaway frame.
func AppendGoaway(dst []byte, m *Goaway) []byte {
	text := clip(m.Text, MaxText)
	dst, f := begin(dst, TypeGoaway, 0, 0, goawayFixed+len(text))
	le.PutUint16(f[8:], m.Code)
	le.PutUint16(f[10:], uint16(len(text)))
	copy(f[12:], text)
	return dst
}

// DecodeGoaway decodes a Goaway frame.
func DecodeGoaway(f []byte, m *Goaway) (err error) {
	if err = open(f, TypeGoaway, goawayFixed, false); err != nil {
		return err
	}
	m.Code = le.Uint16(f[8:])
	m.Text, err = cutText(f[12:], le.Uint16(f[10:]), TypeGoaway)
	return err
}

// cutText checks that exactly n bytes of text end the frame.
func cutText(b []byte, n uint16, t Type) ([]byte, error) {
	if int(n) != len(b) || n > MaxText {
		return nil, &FrameError{Type: t, Field: "textLen", Value: uint64(n), Allowed: "the bytes that follow, at most 1024"}
	}
	return b, nil
}

// Request is a frame that carries only a request id: TableRequest, Ping, Pong.
type Request struct {
	ReqID uint64
}

// AppendRequest appends a TableRequest, Ping or Pong frame.
func AppendRequest(dst []byte, t Type, m *Request) []byte { return AppendRequestOn(dst, t, 0, m) }

// AppendRequestOn appends a ListSinks frame, which is about a partition.
func AppendRequestOn(dst []byte, t Type, p PartitionID, m *Request) []byte {
	dst, f := begin(dst, t, 0, p, HeaderSize+8)
	le.PutUint64(f[8:], m.ReqID)
	return dst
}

// DecodeRequest decodes a TableRequest, Ping, Pong or ListSinks frame.
func DecodeRequest(f []byte, t Type, m *Request) error {
	if err := open(f, t, HeaderSize+8, true); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	return nil
}

func (m *Request) request() (uint64, uint32) { return m.ReqID, 0 }
