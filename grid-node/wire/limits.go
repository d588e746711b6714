package wire

// Limits of a partition: the kill switch, and what is in force.
const (
	TypeKill       Type = 0x34
	TypeKillDone   Type = 0x35
	TypeReadLimits Type = 0x36
	TypeLimitsAre  Type = 0x37
)

var limitFrames = []Frame{
	{Type: TypeKill, Name: "Kill", From: FromClient, ToReplica: true, Needs: MayRisk, codec: codecOn(DecodeKill, AppendKill),
		Example: &Kill{ReqID: 13, Op: KillOn, Scope: 1, Name: []byte("ann"), Who: []byte("bob"), Why: []byte("runaway algorithm")}},
	{Type: TypeKillDone, Name: "KillDone", From: FromNode, codec: codecOn(DecodeKillDone, AppendKillDone),
		Example: &KillDone{ReqID: 13, Entry: 17, TimeNs: 1795435380000000000, Was: true}},
	{Type: TypeReadLimits, Name: "ReadLimits", From: FromClient, ToReplica: true, Needs: MayRisk, codec: codecOn(DecodeReadLimits, AppendReadLimits),
		Example: &ReadLimits{ReqID: 14}},
	{Type: TypeLimitsAre, Name: "LimitsAre", From: FromNode, codec: codecOn(DecodeLimitsAre, AppendLimitsAre),
		Example: &LimitsAre{ReqID: 14, CommitSeq: 20, Decree: Decree{Entry: 5, TimeNs: 1795435380000000000, Who: []byte("g-s0-0/00000000000000a1")}, Text: []byte("{}"),
			Kills: []ActiveKill{{Decree: Decree{Entry: 17, TimeNs: 1795435380000000000, Who: []byte("bob"), Why: []byte("runaway algorithm")}, Scope: 1, Name: []byte("ann")}}}},
}

func (m *Kill) request() (uint64, uint32)       { return m.ReqID, 0 }
func (m *ReadLimits) request() (uint64, uint32) { return m.ReqID, 0 }

// Operations of Kill, with the values of the log entry.
const (
	KillOn  uint8 = 2
	KillOff uint8 = 3
)

// MaxKillText bounds each text of a Kill, in bytes; order.MaxGuardName and its neighbours
// are less.
const MaxKillText = 1024

// Kill makes a partition refuse orders of what Scope and Name mean, or take them again. It
// is answered when that is committed, and refused where this is not the primary. It may be
// repeated.
type Kill struct {
	ReqID uint64
	Op    uint8
	Scope uint8  // 0 session, 1 trader, 2 desk, 3 algorithm, 4 client, 5 all
	Name  []byte // none of all
	Who   []byte // the node puts the identity of an authenticated client in its place
	Why   []byte
}

const killFixed = HeaderSize + 16

// AppendKill appends a Kill frame.
func AppendKill(dst []byte, p PartitionID, m *Kill) []byte {
	name, who, why := clip(m.Name, MaxKillText), clip(m.Who, MaxKillText), clip(m.Why, MaxKillText)
	dst, f := begin(dst, TypeKill, 0, p, killFixed+len(name)+len(who)+len(why))
	le.PutUint64(f[8:], m.ReqID)
	f[16], f[17] = m.Op, m.Scope
	le.PutUint16(f[18:], uint16(len(name)))
	le.PutUint16(f[20:], uint16(len(who)))
	le.PutUint16(f[22:], uint16(len(why)))
	copy(f[killFixed:], name)
	copy(f[killFixed+len(name):], who)
	copy(f[killFixed+len(name)+len(who):], why)
	return dst
}

// DecodeKill decodes a Kill frame.
func DecodeKill(f []byte, m *Kill) error {
	if err := open(f, TypeKill, killFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Op, m.Scope = le.Uint64(f[8:]), f[16], f[17]
	name, who, why := int(le.Uint16(f[18:])), int(le.Uint16(f[20:])), int(le.Uint16(f[22:]))
	b := f[killFixed:]
	if name+who+why != len(b) || max(name, who, why) > MaxKillText {
		return &FrameError{Type: TypeKill, Field: "nameLen", Value: uint64(name), Allowed: "with whoLen and whyLen the bytes that follow, each at most 1024"}
	}
	m.Name, m.Who, m.Why = b[:name:name], b[name:][:who:who], b[name+who:]
	if m.Op != KillOn && m.Op != KillOff {
		return &FrameError{Type: TypeKill, Field: "op", Value: uint64(m.Op), Allowed: "2 kill, 3 unkill"}
	}
	return nil
}

// KillDone answers a Kill that is committed.
type KillDone struct {
	ReqID  uint64
	Entry  uint64 // that has it: it holds for the entries behind
	TimeNs int64  // of the entry
	Was    bool   // it was so before
}

const killDoneSize = HeaderSize + 32

// AppendKillDone appends a KillDone frame.
func AppendKillDone(dst []byte, p PartitionID, m *KillDone) []byte {
	dst, f := begin(dst, TypeKillDone, 0, p, killDoneSize)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Entry)
	le.PutUint64(f[24:], uint64(m.TimeNs))
	was := uint64(0)
	if m.Was {
		was = 1
	}
	le.PutUint64(f[32:], was)
	return dst
}

// DecodeKillDone decodes a KillDone frame.
func DecodeKillDone(f []byte, m *KillDone) error {
	if err := open(f, TypeKillDone, killDoneSize, true); err != nil {
		return err
	}
	*m = KillDone{ReqID: le.Uint64(f[8:]), Entry: le.Uint64(f[16:]), TimeNs: int64(le.Uint64(f[24:])), Was: f[32] == 1}
	if v := le.Uint64(f[32:]); v > 1 {
		return &FrameError{Type: TypeKillDone, Field: "was", Value: v, Allowed: "0 or 1"}
	}
	return nil
}

// ReadLimits asks a replica for the limits of its committed prefix.
type ReadLimits struct{ ReqID uint64 }

// AppendReadLimits appends a ReadLimits frame.
func AppendReadLimits(dst []byte, p PartitionID, m *ReadLimits) []byte {
	dst, f := begin(dst, TypeReadLimits, 0, p, HeaderSize+8)
	le.PutUint64(f[8:], m.ReqID)
	return dst
}

// DecodeReadLimits decodes a ReadLimits frame.
func DecodeReadLimits(f []byte, m *ReadLimits) error {
	if err := open(f, TypeReadLimits, HeaderSize+8, true); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	return nil
}

// Decree is who did something, why and when, and the entry that has it.
type Decree struct {
	Entry    uint64
	TimeNs   int64
	Who, Why []byte // at most 65535 bytes
}

// ActiveKill is a kill in effect.
type ActiveKill struct {
	Decree
	Scope uint8
	Name  []byte
}

// LimitsAre answers a ReadLimits. What is not committed yet is left out.
type LimitsAre struct {
	ReqID     uint64
	CommitSeq uint64
	Decree           // of the profile; Entry 0: no limits
	Text      []byte // of the profile
	Kills     []ActiveKill
}

const limitsAreFixed = HeaderSize + 24

// AppendLimitsAre appends a LimitsAre frame.
func AppendLimitsAre(dst []byte, p PartitionID, m *LimitsAre) []byte {
	size := limitsAreFixed + decreeSize(&m.Decree) + 4 + len(m.Text)
	for i := range m.Kills {
		size += decreeSize(&m.Kills[i].Decree) + 4 + len(m.Kills[i].Name)
	}
	dst, f := begin(dst, TypeLimitsAre, 0, p, size)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.CommitSeq)
	le.PutUint64(f[24:], uint64(len(m.Kills)))
	b := putDecree(f[limitsAreFixed:], &m.Decree)
	le.PutUint32(b, uint32(len(m.Text)))
	b = b[4+copy(b[4:], m.Text):]
	for i := range m.Kills {
		k := &m.Kills[i]
		b = putDecree(b, &k.Decree)
		le.PutUint16(b, uint16(k.Scope))
		le.PutUint16(b[2:], uint16(len(k.Name)))
		b = b[4+copy(b[4:], k.Name):]
	}
	return dst
}

func decreeSize(d *Decree) int { return 20 + len(d.Who) + len(d.Why) }

func putDecree(b []byte, d *Decree) []byte {
	le.PutUint64(b, d.Entry)
	le.PutUint64(b[8:], uint64(d.TimeNs))
	le.PutUint16(b[16:], uint16(len(d.Who)))
	le.PutUint16(b[18:], uint16(len(d.Why)))
	b = b[20+copy(b[20:], d.Who):]
	return b[copy(b, d.Why):]
}

func cutDecree(b []byte, d *Decree) ([]byte, bool) {
	if len(b) < 20 {
		return nil, false
	}
	who, why := int(le.Uint16(b[16:])), int(le.Uint16(b[18:]))
	d.Entry, d.TimeNs = le.Uint64(b), int64(le.Uint64(b[8:]))
	if b = b[20:]; who+why > len(b) {
		return nil, false
	}
	if d.Who = b[:who:who]; why > 0 {
		d.Why = b[who:][:why:why]
	}
	return b[who+why:], true
}

// DecodeLimitsAre decodes a LimitsAre frame. It allocates.
func DecodeLimitsAre(f []byte, m *LimitsAre) error {
	if err := open(f, TypeLimitsAre, limitsAreFixed, false); err != nil {
		return err
	}
	bad := func(field string, v uint64) error {
		return &FrameError{Type: TypeLimitsAre, Field: field, Value: v, Allowed: "what the bytes that follow are"}
	}
	*m = LimitsAre{ReqID: le.Uint64(f[8:]), CommitSeq: le.Uint64(f[16:])}
	n := le.Uint64(f[24:])
	b, ok := cutDecree(f[limitsAreFixed:], &m.Decree)
	if !ok || len(b) < 4 || uint64(le.Uint32(b)) > uint64(len(b)-4) {
		return bad("profileLen", n)
	}
	size := int(le.Uint32(b))
	m.Text, b = b[4:][:size:size], b[4+size:]
	if n > uint64(len(b)/24) {
		return bad("nKills", n)
	}
	for range n {
		var k ActiveKill
		if b, ok = cutDecree(b, &k.Decree); !ok || len(b) < 4 || int(le.Uint16(b[2:])) > len(b)-4 || b[1] != 0 {
			return bad("nKills", n)
		}
		size := int(le.Uint16(b[2:]))
		k.Scope, k.Name, b = b[0], b[4:][:size:size], b[4+size:]
		m.Kills = append(m.Kills, k)
	}
	return done(b, TypeLimitsAre)
}
