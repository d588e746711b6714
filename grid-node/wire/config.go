package wire

// Membership.
const (
	TypeJoin      Type = 0x46
	TypeJoinReply Type = 0x47
	TypeNewConfig Type = 0x48
)

var configFrames = []Frame{
	{Type: TypeJoin, Name: "Join", From: FromPeer, ToReplica: true, codec: codecOn(DecodeJoin, AppendJoin),
		Example: &Join{PeerHead: exampleHead, LastSeq: 0, LastHash: 0, Member: exampleOther.Member, Address: exampleOther.Address}},
	{Type: TypeJoinReply, Name: "JoinReply", From: FromPeer, ToReplica: true, codec: codecOn(DecodeJoinReply, AppendJoinReply),
		Example: &JoinReply{PeerHead: exampleHead, FromSeq: 1, Code: JoinBusy, Text: []byte("later")}},
	{Type: TypeNewConfig, Name: "NewConfig", From: FromPeer, ToReplica: true, codec: codecOn(DecodeNewConfig, AppendNewConfig),
		Example: &NewConfig{PeerHead: exampleHead, Lineage: 1, ChangeID: []byte("c-1"), Version: []byte("4711"),
			N: 2, Members: [MaxMembers]TableMember{exampleMember, exampleOther}}},
}

// Join registers a learner with the primary.
type Join struct {
	PeerHead        // Epoch is the configuration the learner read
	LastSeq  uint64 // last entry that the learner stores; 0 for none
	LastHash uint64 // hash of that entry
	Member   []byte // "<pod>/<bootID>"; the boot id equals From
	Address  []byte // "ip:port"
	Flags    uint8  // FlagDraining, FlagHeir
}

const joinFixed = peerFixed + 16

// AppendJoin appends a Join frame.
func AppendJoin(dst []byte, p PartitionID, m *Join) []byte {
	dst, f := begin(dst, TypeJoin, m.Flags, p, joinFixed+size8(m.Member)+size8(m.Address))
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.LastSeq)
	le.PutUint64(f[40:], m.LastHash)
	putString8(putString8(f[joinFixed:], m.Member), m.Address)
	return dst
}

// DecodeJoin decodes a Join frame.
func DecodeJoin(f []byte, m *Join) (err error) {
	if err = open(f, TypeJoin, joinFixed, false); err != nil {
		return err
	}
	m.get(f)
	m.Flags = f[5]
	m.LastSeq = le.Uint64(f[32:])
	m.LastHash = le.Uint64(f[40:])
	b := f[joinFixed:]
	if m.Member, b, err = cutString8(b, TypeJoin, "member"); err != nil {
		return err
	}
	if m.Address, b, err = cutString8(b, TypeJoin, "address"); err != nil {
		return err
	}
	return done(b, TypeJoin)
}

// JoinReply answers a Join.
type JoinReply struct {
	PeerHead
	FromSeq uint64 // with JoinAccepted: the first entry that will be sent
	Code    uint16 // Join* constants
	Text    []byte // human-readable
}

const joinReplyFixed = peerFixed + 16

// AppendJoinReply appends a JoinReply frame.
func AppendJoinReply(dst []byte, p PartitionID, m *JoinReply) []byte {
	text := clip(m.Text, MaxText)
	dst, f := begin(dst, TypeJoinReply, 0, p, joinReplyFixed+len(text))
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.FromSeq)
	le.PutUint16(f[40:], m.Code)
	le.PutUint16(f[42:], uint16(len(text)))
	le.PutUint32(f[44:], 0)
	copy(f[joinReplyFixed:], text)
	return dst
}

// DecodeJoinReply decodes a JoinReply frame.
func DecodeJoinReply(f []byte, m *JoinReply) (err error) {
	if err = open(f, TypeJoinReply, joinReplyFixed, false); err != nil {
		return err
	}
	m.get(f)
	m.FromSeq = le.Uint64(f[32:])
	m.Code = le.Uint16(f[40:])
	m.Text, err = cutText(f[joinReplyFixed:], le.Uint16(f[42:]), TypeJoinReply)
	return err
}

// NewConfig notifies the members of a configuration that the arbiter accepted, so that
// they need not wait for their own watch. Epoch is the new epoch; the first of Members is
// its primary and all of them are in sync.
type NewConfig struct {
	PeerHead
	Lineage  uint64
	ChangeID []byte
	Version  []byte // the arbiter's version of the record (resourceVersion)
	Flags    uint8  // FlagStandby
	N        uint8  // 1..MaxMembers
	Members  [MaxMembers]TableMember
}

const newConfigFixed = peerFixed + 16

// AppendNewConfig appends a NewConfig frame.
func AppendNewConfig(dst []byte, p PartitionID, m *NewConfig) []byte {
	n := min(int(m.N), MaxMembers)
	size := newConfigFixed + size8(m.ChangeID) + size8(m.Version)
	for i := range n {
		size += size8(m.Members[i].Address) + size8(m.Members[i].Member)
	}
	dst, f := begin(dst, TypeNewConfig, m.Flags, p, size)
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.Lineage)
	le.PutUint64(f[40:], uint64(n))
	b := putString8(putString8(f[newConfigFixed:], m.ChangeID), m.Version)
	for i := range n {
		b = putString8(putString8(b, m.Members[i].Address), m.Members[i].Member)
	}
	return dst
}

// DecodeNewConfig decodes a NewConfig frame.
func DecodeNewConfig(f []byte, m *NewConfig) (err error) {
	if err = open(f, TypeNewConfig, newConfigFixed, false); err != nil {
		return err
	}
	m.get(f)
	m.Flags = f[5]
	m.Lineage = le.Uint64(f[32:])
	m.N = f[40]
	if m.N == 0 || m.N > MaxMembers {
		return &FrameError{Type: TypeNewConfig, Field: "nMembers", Value: uint64(m.N), Allowed: "1..4"}
	}
	b := f[newConfigFixed:]
	if m.ChangeID, b, err = cutString8(b, TypeNewConfig, "changeID"); err != nil {
		return err
	}
	if m.Version, b, err = cutString8(b, TypeNewConfig, "version"); err != nil {
		return err
	}
	m.Members = [MaxMembers]TableMember{}
	for i := range int(m.N) {
		if m.Members[i].Address, b, err = cutString8(b, TypeNewConfig, "address"); err != nil {
			return err
		}
		if m.Members[i].Member, b, err = cutString8(b, TypeNewConfig, "member"); err != nil {
			return err
		}
	}
	return done(b, TypeNewConfig)
}
