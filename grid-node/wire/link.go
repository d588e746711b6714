package wire

// The log of another site, taken in verbatim: a link sends a standby partition the entries
// of its source (docs/adr/0043-a-standby-stores-the-other-sites-entries.md).
const (
	TypeLinkOpen    Type = 0x70
	TypeLinkEntries Type = 0x71
	TypeLinkState   Type = 0x72
)

var linkFrames = []Frame{
	{Type: TypeLinkOpen, Name: "LinkOpen", From: FromClient, ToReplica: true, Needs: MayLink, codec: codecOn(DecodeLinkOpen, AppendLinkOpen),
		Example: &LinkOpen{ReqID: 18, Term: 1, Source: []byte("orders-a")}},
	{Type: TypeLinkEntries, Name: "LinkEntries", From: FromClient, ToReplica: true, Needs: MayLink, codec: codecOn(DecodeLinkEntries, AppendLinkEntries),
		Example: &LinkEntries{ReqID: 18, Term: 1, Entries: exampleEntry}},
	{Type: TypeLinkState, Name: "LinkState", From: FromNode, codec: codecOn(DecodeLinkState, AppendLinkState),
		Example: &LinkState{ReqID: 18, Seq: 5, Hash: 0x1122334455667788, CommitSeq: 4, CommitHash: 0x99aabbccddeeff00, Term: 1, Lineage: 1, Window: 1 << 20, Entries: 16384}},
}

func (m *LinkOpen) request() (uint64, uint32)    { return m.ReqID, 0 }
func (m *LinkEntries) request() (uint64, uint32) { return m.ReqID, 0 }

// LinkOpen makes the connection the one over which a standby partition gets its entries. A
// partition that makes its entries itself answers with a Reject, NotStandby with its term,
// and becomes a standby if that is lower than the one here.
type LinkOpen struct {
	ReqID  uint64
	Term   uint64 // of the source's site
	Source []byte // name of the source's grid; empty: the end of the log is asked for, and no link is opened
}

const linkOpenFixed = HeaderSize + 16

// MaxTerm is the highest term of a site.
const MaxTerm = 1<<31 - 1

// AppendLinkOpen appends a LinkOpen frame.
func AppendLinkOpen(dst []byte, p PartitionID, m *LinkOpen) []byte {
	dst, f := begin(dst, TypeLinkOpen, 0, p, linkOpenFixed+size8(m.Source))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Term)
	putString8(f[linkOpenFixed:], m.Source)
	return dst
}

// DecodeLinkOpen decodes a LinkOpen frame.
func DecodeLinkOpen(f []byte, m *LinkOpen) (err error) {
	if err := open(f, TypeLinkOpen, linkOpenFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Term = le.Uint64(f[8:]), le.Uint64(f[16:])
	var b []byte
	if m.Source, b, err = cutString8(f[linkOpenFixed:], TypeLinkOpen, "source"); err != nil {
		return err
	}
	if m.Term > MaxTerm {
		return &FrameError{Type: TypeLinkOpen, Field: "term", Value: m.Term, Allowed: "at most 2147483647"}
	}
	return done(b, TypeLinkOpen)
}

// LinkEntries has committed entries of the source, as they stand in its log.
type LinkEntries struct {
	ReqID   uint64 // of the LinkOpen
	Term    uint64 // as there
	Entries []byte // one or more entries, contiguous, each padded to 8 bytes; at most MaxLinkEntries
}

// LinkEntriesFixed is the size of a LinkEntries frame without its entries.
const LinkEntriesFixed = HeaderSize + 16

// MaxLinkEntries bounds the bytes of entries in one LinkEntries: the longest entry fits.
const MaxLinkEntries = 64 << 10

// AppendLinkEntries appends a LinkEntries frame.
func AppendLinkEntries(dst []byte, p PartitionID, m *LinkEntries) []byte {
	dst, f := begin(dst, TypeLinkEntries, 0, p, LinkEntriesFixed+len(m.Entries))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Term)
	copy(f[LinkEntriesFixed:], m.Entries)
	return dst
}

// DecodeLinkEntries decodes a LinkEntries frame. Entries are iterated and checked with
// order.NextEntry.
func DecodeLinkEntries(f []byte, m *LinkEntries) error {
	if err := open(f, TypeLinkEntries, LinkEntriesFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Term, m.Entries = le.Uint64(f[8:]), le.Uint64(f[16:]), f[LinkEntriesFixed:]
	if n := len(m.Entries); n == 0 || n > MaxLinkEntries {
		return &FrameError{Type: TypeLinkEntries, Field: "entries", Value: uint64(n), Allowed: "1..65536 bytes"}
	}
	return entriesLen(m.Entries, TypeLinkEntries)
}

// LinkState answers a LinkOpen, and follows whenever a standby commits entries of the link
// or drops some. The link goes on behind Seq.
type LinkState struct {
	ReqID      uint64 // of the LinkOpen
	Seq        uint64 // last entry stored; 0 for none
	Hash       uint64 // of that entry
	CommitSeq  uint64 // last entry committed: what the source may free
	CommitHash uint64 // of that entry
	Term       uint64 // of the standby's record
	Lineage    uint32 // of what is stored; 0 for nothing
	Window     uint32 // bytes of entries that may be sent behind CommitSeq
	Entries    uint32 // number of entries that may be sent behind it
}

const linkStateFixed = HeaderSize + 64

// AppendLinkState appends a LinkState frame.
func AppendLinkState(dst []byte, p PartitionID, m *LinkState) []byte {
	dst, f := begin(dst, TypeLinkState, 0, p, linkStateFixed)
	for i, v := range [...]uint64{m.ReqID, m.Seq, m.Hash, m.CommitSeq, m.CommitHash, m.Term} {
		le.PutUint64(f[HeaderSize+8*i:], v)
	}
	le.PutUint32(f[56:], m.Lineage)
	le.PutUint32(f[60:], m.Window)
	le.PutUint32(f[64:], m.Entries)
	le.PutUint32(f[68:], 0)
	return dst
}

// DecodeLinkState decodes a LinkState frame.
func DecodeLinkState(f []byte, m *LinkState) error {
	if err := open(f, TypeLinkState, linkStateFixed, true); err != nil {
		return err
	}
	for i, v := range [...]*uint64{&m.ReqID, &m.Seq, &m.Hash, &m.CommitSeq, &m.CommitHash, &m.Term} {
		*v = le.Uint64(f[HeaderSize+8*i:])
	}
	m.Lineage, m.Window, m.Entries = le.Uint32(f[56:]), le.Uint32(f[60:]), le.Uint32(f[64:])
	if m.CommitSeq > m.Seq {
		return &FrameError{Type: TypeLinkState, Field: "commitSeq", Value: m.CommitSeq, Allowed: "at most seq"}
	}
	return nil
}
