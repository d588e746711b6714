package wire

import "strconv"

// The committed log as a stream, and what a reader outside the grid holds of it.
const (
	TypeFollow        Type = 0x68
	TypeFollowEntries Type = 0x69
	TypeFollowCredit  Type = 0x6a
	TypeFollowEnd     Type = 0x6b
	TypeAdvance       Type = 0x6c
	TypeAdvanced      Type = 0x6d
)

var followFrames = []Frame{
	{Type: TypeFollow, Name: "Follow", From: FromClient, Needs: MayWatch, codec: codecOn(DecodeFollow, AppendFollow),
		Example: &Follow{ReqID: 16, FromSeq: 5, FromHash: 0x1122334455667788, Lineage: 1, Window: 1 << 20, Name: []byte("kafka"), Filter: FilterAccount, Value: []byte("A17")}},
	{Type: TypeFollowEntries, Name: "FollowEntries", From: FromNode, codec: codecOn(DecodeFollowEntries, AppendFollowEntries),
		Example: &FollowEntries{ReqID: 16, From: 5, Through: 5, CommitSeq: 5, ThroughHash: 0x1122334455667788, Lineage: 1, Window: 1 << 20, Entries: exampleEntry}},
	{Type: TypeFollowCredit, Name: "FollowCredit", From: FromClient, Needs: MayWatch, codec: codecOn(DecodeFollowCredit, AppendFollowCredit),
		Example: &FollowCredit{ReqID: 16, Through: 5, Window: 1 << 20}},
	{Type: TypeFollowEnd, Name: "FollowEnd", From: FromNode, codec: codecOn(DecodeFollowEnd, AppendFollowEnd),
		Example: &FollowEnd{ReqID: 16, Reason: EndSnapshotRequired, Seq: 1001, Hash: 0x1122334455667788, Text: []byte("entry 5 is freed")}},
	{Type: TypeAdvance, Name: "Advance", From: FromClient, ToReplica: true, Needs: MaySink, codec: codecOn(DecodeAdvance, AppendAdvance),
		Example: &Advance{ReqID: 17, Seq: 5, Hash: 0x1122334455667788, Name: []byte("kafka")}},
	{Type: TypeAdvanced, Name: "Advanced", From: FromNode, codec: codecOn(DecodeAdvanced, AppendAdvanced),
		Example: &Advanced{ReqID: 17, Seq: 5}},
}

func (m *Follow) request() (uint64, uint32)       { return m.ReqID, 0 }
func (m *FollowCredit) request() (uint64, uint32) { return m.ReqID, 0 }
func (m *Advance) request() (uint64, uint32)      { return m.ReqID, 0 }

// Follow.Filter: which entries are sent.
const (
	FilterNone    uint8 = 0 // all of them
	FilterAccount uint8 = 1 // orders whose account (FIX tag 1) is Value
)

// MaxFilter bounds Follow.Value, in bytes: the longest account that an order may have.
const MaxFilter = 64

// Follow asks a replica for its committed log, from an entry on, as it grows.
type Follow struct {
	ReqID    uint64
	FromSeq  uint64 // first entry wanted; 0: the one behind what is committed when the request comes
	FromHash uint64 // of entry FromSeq-1, which the follower holds; 0: it holds none, or does not know
	Lineage  uint32 // of what the follower holds; 0: it does not know
	Window   uint32 // bytes of frames that may be sent and not credited, 1 or more
	Filter   uint8
	Name     []byte // of a reader of the grid's configuration; empty for any other follower
	Value    []byte // of the filter, 1..MaxFilter bytes; empty without one
}

const followFixed = HeaderSize + 36

// AppendFollow appends a Follow frame.
func AppendFollow(dst []byte, p PartitionID, m *Follow) []byte {
	dst, f := begin(dst, TypeFollow, 0, p, followFixed+size8(m.Name)+size8(m.Value))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.FromSeq)
	le.PutUint64(f[24:], m.FromHash)
	le.PutUint32(f[32:], m.Lineage)
	le.PutUint32(f[36:], m.Window)
	f[40], f[41], f[42], f[43] = m.Filter, 0, 0, 0
	putString8(putString8(f[followFixed:], m.Name), m.Value)
	return dst
}

// DecodeFollow decodes a Follow frame.
func DecodeFollow(f []byte, m *Follow) (err error) {
	if err := open(f, TypeFollow, followFixed, false); err != nil {
		return err
	}
	m.ReqID, m.FromSeq, m.FromHash = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:])
	m.Lineage, m.Window, m.Filter = le.Uint32(f[32:]), le.Uint32(f[36:]), f[40]
	b := f[followFixed:]
	if m.Name, b, err = cutString8(b, TypeFollow, "name"); err != nil {
		return err
	}
	if m.Value, b, err = cutString8(b, TypeFollow, "value"); err != nil {
		return err
	}
	switch n := len(m.Value); {
	case m.Window == 0:
		return &FrameError{Type: TypeFollow, Field: "window", Value: 0, Allowed: "1 or more bytes"}
	case m.Filter > FilterAccount:
		return &FrameError{Type: TypeFollow, Field: "filter", Value: uint64(m.Filter), Allowed: "0 none, 1 account"}
	case (m.Filter == FilterNone) != (n == 0) || n > MaxFilter:
		return &FrameError{Type: TypeFollow, Field: "valueLen", Value: uint64(n), Allowed: "0 without a filter, 1..64 with one"}
	case m.FromSeq <= 1 && m.FromHash != 0:
		return &FrameError{Type: TypeFollow, Field: "fromHash", Value: m.FromHash, Allowed: "0 where no entry is before fromSeq"}
	}
	return done(b, TypeFollow)
}

// FollowEntries is the next part of the log. Every entry of From..Through is committed and
// was examined, and those that the filter lets through are here. The first frame of a
// stream follows the request at once, and may have no entries.
type FollowEntries struct {
	ReqID       uint64
	From        uint64 // the entry behind Through of the frame before
	Through     uint64 // From-1: none was examined
	CommitSeq   uint64 // committed prefix of the replica when it sent this
	ThroughHash uint64 // hash of entry Through: with it a follower resumes elsewhere
	Lineage     uint32 // of the log
	Window      uint32 // bytes that may be sent and not credited, as granted
	Entries     []byte // whole entries, each padded to 8 bytes, in the order of their seq
}

// FollowEntriesFixed is the size of a FollowEntries frame without its entries.
const FollowEntriesFixed = HeaderSize + 48

// MaxFollowBytes is the most that a FollowEntries has of entries, unless its only entry is longer.
const MaxFollowBytes = 64 << 10

// AppendFollowEntries appends a FollowEntries frame.
func AppendFollowEntries(dst []byte, p PartitionID, m *FollowEntries) []byte {
	dst, f := begin(dst, TypeFollowEntries, 0, p, FollowEntriesFixed+len(m.Entries))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.From)
	le.PutUint64(f[24:], m.Through)
	le.PutUint64(f[32:], m.CommitSeq)
	le.PutUint64(f[40:], m.ThroughHash)
	le.PutUint32(f[48:], m.Lineage)
	le.PutUint32(f[52:], m.Window)
	copy(f[FollowEntriesFixed:], m.Entries)
	return dst
}

// SetFollowed sets Through and ThroughHash of a FollowEntries frame, behind which entries were
// written since.
func SetFollowed(f []byte, through, hash uint64) {
	le.PutUint64(f[24:], through)
	le.PutUint64(f[40:], hash)
}

// DecodeFollowEntries decodes a FollowEntries frame. Entries are iterated with
// order.NextEntry.
func DecodeFollowEntries(f []byte, m *FollowEntries) error {
	if err := open(f, TypeFollowEntries, FollowEntriesFixed, false); err != nil {
		return err
	}
	m.ReqID, m.From, m.Through = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:])
	m.CommitSeq, m.ThroughHash = le.Uint64(f[32:]), le.Uint64(f[40:])
	m.Lineage, m.Window = le.Uint32(f[48:]), le.Uint32(f[52:])
	m.Entries = f[FollowEntriesFixed:]
	switch {
	case m.From == 0:
		return &FrameError{Type: TypeFollowEntries, Field: "from", Value: 0, Allowed: "1 or more"}
	case m.Through < m.From-1 || m.Through > m.CommitSeq:
		return &FrameError{Type: TypeFollowEntries, Field: "through", Value: m.Through, Allowed: "from-1 or more, at most commitSeq"}
	case m.Through < m.From && len(m.Entries) > 0:
		return &FrameError{Type: TypeFollowEntries, Field: "entries", Value: uint64(len(m.Entries)), Allowed: "none where none was examined"}
	}
	return entriesLen(m.Entries, TypeFollowEntries)
}

// FollowCredit says how far a follower has taken the stream in, which gives it room for more.
type FollowCredit struct {
	ReqID   uint64 // of the Follow
	Through uint64 // frames up to this one are taken in
	Window  uint32 // bytes that may be sent beyond; 0 ends the stream
}

// AppendFollowCredit appends a FollowCredit frame.
func AppendFollowCredit(dst []byte, p PartitionID, m *FollowCredit) []byte {
	dst, f := begin(dst, TypeFollowCredit, 0, p, HeaderSize+24)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Through)
	le.PutUint32(f[24:], m.Window)
	le.PutUint32(f[28:], 0)
	return dst
}

// DecodeFollowCredit decodes a FollowCredit frame.
func DecodeFollowCredit(f []byte, m *FollowCredit) error {
	if err := open(f, TypeFollowCredit, HeaderSize+24, true); err != nil {
		return err
	}
	m.ReqID, m.Through, m.Window = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint32(f[24:])
	return nil
}

// EndReason says why a stream ended, or did not begin.
type EndReason uint16

// FollowEnd.Reason.
const (
	EndSnapshotRequired EndReason = 1 // the entry wanted is freed: Seq is the first there is, Hash that of the entry before it
	EndDiverged         EndReason = 2 // what the follower holds is another history: Seq is the entry that differs, Hash that of the log's, 0 if it has none
	EndLeaving          EndReason = 3 // the replica stops serving: go on at another
	EndBehind           EndReason = 4 // the replica is not in sync, or has not committed yet what the follower holds; Seq is its commitSeq. Go on at another, or later
	EndReplaced         EndReason = 5 // another connection follows in the name of this reader
	EndStopped          EndReason = 6 // the follower asked for it
	EndNotPermitted     EndReason = 7 // the follower's permission was withdrawn

	EndReasons = 8
)

var endNames = [...]string{EndSnapshotRequired: "SnapshotRequired", EndDiverged: "Diverged", EndLeaving: "Leaving", EndBehind: "Behind",
	EndReplaced: "Replaced", EndStopped: "Stopped", EndNotPermitted: "NotPermitted"}

// String is the name docs/protocol.md uses.
func (r EndReason) String() string {
	if int(r) < len(endNames) && endNames[r] != "" {
		return endNames[r]
	}
	return "EndReason" + strconv.Itoa(int(r))
}

// FollowEnd ends a stream.
type FollowEnd struct {
	ReqID  uint64
	Reason EndReason
	Seq    uint64 // its meaning depends on Reason
	Hash   uint64
	Text   []byte // for people
}

const followEndFixed = HeaderSize + 28

// AppendFollowEnd appends a FollowEnd frame.
func AppendFollowEnd(dst []byte, p PartitionID, m *FollowEnd) []byte {
	text := clip(m.Text, MaxText)
	dst, f := begin(dst, TypeFollowEnd, 0, p, followEndFixed+len(text))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Seq)
	le.PutUint64(f[24:], m.Hash)
	le.PutUint16(f[32:], uint16(m.Reason))
	le.PutUint16(f[34:], uint16(len(text)))
	copy(f[followEndFixed:], text)
	return dst
}

// DecodeFollowEnd decodes a FollowEnd frame.
func DecodeFollowEnd(f []byte, m *FollowEnd) (err error) {
	if err := open(f, TypeFollowEnd, followEndFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Seq, m.Hash, m.Reason = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:]), EndReason(le.Uint16(f[32:]))
	m.Text, err = cutText(f[followEndFixed:], le.Uint16(f[34:]), TypeFollowEnd)
	return err
}

// Advance says what a reader outside the grid holds durably: everything up to Seq.
type Advance struct {
	ReqID uint64
	Seq   uint64
	Hash  uint64 // of entry Seq
	Name  []byte // of the reader
}

const advanceFixed = HeaderSize + 24

// AppendAdvance appends an Advance frame.
func AppendAdvance(dst []byte, p PartitionID, m *Advance) []byte {
	dst, f := begin(dst, TypeAdvance, 0, p, advanceFixed+size8(m.Name))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Seq)
	le.PutUint64(f[24:], m.Hash)
	putString8(f[advanceFixed:], m.Name)
	return dst
}

// DecodeAdvance decodes an Advance frame.
func DecodeAdvance(f []byte, m *Advance) (err error) {
	if err := open(f, TypeAdvance, advanceFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Seq, m.Hash = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:])
	var b []byte
	if m.Name, b, err = cutString8(f[advanceFixed:], TypeAdvance, "name"); err != nil {
		return err
	}
	if m.Seq == 0 {
		return &FrameError{Type: TypeAdvance, Field: "seq", Value: 0, Allowed: "1 or more"}
	}
	return done(b, TypeAdvance)
}

// Advanced answers an Advance, once the log says so, or a later Advance has taken its place.
type Advanced struct {
	ReqID uint64
	Seq   uint64 // position of the reader by the committed log; it may lack entries that are positions of readers only
}

// AppendAdvanced appends an Advanced frame.
func AppendAdvanced(dst []byte, p PartitionID, m *Advanced) []byte {
	dst, f := begin(dst, TypeAdvanced, 0, p, HeaderSize+16)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Seq)
	return dst
}

// DecodeAdvanced decodes an Advanced frame.
func DecodeAdvanced(f []byte, m *Advanced) error {
	if err := open(f, TypeAdvanced, HeaderSize+16, true); err != nil {
		return err
	}
	m.ReqID, m.Seq = le.Uint64(f[8:]), le.Uint64(f[16:])
	return nil
}
