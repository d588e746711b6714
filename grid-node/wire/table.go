package wire

// Partition locations.
const (
	TypeTableRequest Type = 0x05
	TypeTable        Type = 0x06
)

var tableFrames = []Frame{
	{Type: TypeTableRequest, Name: "TableRequest", From: FromClient, codec: codecFor(TypeTableRequest, DecodeRequest, AppendRequest),
		Example: &Request{ReqID: 9}},
	{Type: TypeTable, Name: "Table", From: FromNode, codec: codecOf(DecodeTable, AppendTable),
		Example: &Table{ReqID: 9, Partitions: 8, Parts: []TablePart{{
			Partition: 1, Epoch: 3, Lineage: 1, Primary: 0, NInSync: 2, Members: []TableMember{exampleMember, exampleOther}}}}},
}

// NoPrimary as TablePart.Primary: the partition has none at present.
const NoPrimary = 255

// MaxTableMembers bounds the members listed for one partition (in-sync and
// learners).
const MaxTableMembers = 8

// Table is the routing information of a client: the number of partitions of the grid, and
// where they are, as far as the node knows.
type Table struct {
	ReqID      uint64
	Partitions uint16 // of the grid, 1..MaxPartitions
	BySymbol   bool   // FlagBySymbol
	Parts      []TablePart
}

// TablePart is one partition of a Table. Members[:NInSync] are in sync; the
// others are catching up and may serve backup reads.
type TablePart struct {
	Partition PartitionID
	Epoch     uint64
	Lineage   uint32
	Primary   uint8 // index into Members, or NoPrimary
	NInSync   uint8
	Members   []TableMember
}

// Size returns the size of the part in a frame.
func (p *TablePart) Size() int {
	size := tablePartFixed
	for _, mb := range p.Members {
		size += size8(mb.Address) + size8(mb.Member)
	}
	return size
}

// TableMember is a replica and its address.
type TableMember struct {
	Address []byte // "ip:port"
	Member  []byte // "<pod>/<bootID>"
}

const (
	tableFixed     = HeaderSize + 12
	tablePartFixed = 17
)

// AppendTable appends a Table frame.
func AppendTable(dst []byte, m *Table) []byte {
	size := tableFixed
	for i := range m.Parts {
		size += m.Parts[i].Size()
	}
	flags := uint8(0)
	if m.BySymbol {
		flags = FlagBySymbol
	}
	dst, f := begin(dst, TypeTable, flags, 0, size)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint16(f[16:], m.Partitions)
	le.PutUint16(f[18:], uint16(len(m.Parts)))
	b := f[tableFixed:]
	for i := range m.Parts {
		b = putTablePart(b, &m.Parts[i])
	}
	return dst
}

func putTablePart(b []byte, p *TablePart) []byte {
	le.PutUint16(b, uint16(p.Partition))
	le.PutUint64(b[2:], p.Epoch)
	le.PutUint32(b[10:], p.Lineage)
	b[14] = p.Primary
	b[15] = byte(len(p.Members))
	b[16] = p.NInSync
	b = b[tablePartFixed:]
	for _, mb := range p.Members {
		b = putString8(putString8(b, mb.Address), mb.Member)
	}
	return b
}

// DecodeTable decodes a Table frame. Slices of m are reused; allocation is bounded by a
// small multiple of the frame's size.
func DecodeTable(f []byte, m *Table) error {
	if err := open(f, TypeTable, tableFixed, false); err != nil {
		return err
	}
	m.ReqID, m.BySymbol = le.Uint64(f[8:]), FrameFlags(f)&FlagBySymbol != 0
	m.Partitions = le.Uint16(f[16:])
	if m.Partitions == 0 || m.Partitions > MaxPartitions {
		return &FrameError{Type: TypeTable, Field: "partitions", Value: uint64(m.Partitions), Allowed: "1..1024"}
	}
	nParts, b := int(le.Uint16(f[18:])), f[tableFixed:]
	if nParts*tablePartFixed > len(b) {
		return &FrameError{Type: TypeTable, Field: "nParts", Value: uint64(nParts), Allowed: "no more than fit the frame"}
	}
	if cap(m.Parts) < nParts {
		m.Parts = make([]TablePart, nParts)
	}
	m.Parts = m.Parts[:nParts]
	var err error
	for i := range m.Parts {
		if b, err = cutTablePart(b, &m.Parts[i]); err != nil {
			return err
		}
		if m.Parts[i].Partition >= PartitionID(m.Partitions) {
			return &FrameError{Type: TypeTable, Field: "partition", Value: uint64(m.Parts[i].Partition), Allowed: "below partitions"}
		}
	}
	return done(b, TypeTable)
}

func cutTablePart(b []byte, p *TablePart) (rest []byte, err error) {
	if len(b) < tablePartFixed {
		return nil, &FrameError{Type: TypeTable, Field: "parts", Value: uint64(len(b)), Allowed: "17 bytes and the members"}
	}
	p.Partition = PartitionID(le.Uint16(b))
	p.Epoch = le.Uint64(b[2:])
	p.Lineage = le.Uint32(b[10:])
	p.Primary, p.NInSync = b[14], b[16]
	n := int(b[15])
	if n > MaxTableMembers {
		return nil, &FrameError{Type: TypeTable, Field: "nMembers", Value: uint64(n), Allowed: "0..8"}
	}
	if int(p.NInSync) > n {
		return nil, &FrameError{Type: TypeTable, Field: "nInSync", Value: uint64(p.NInSync), Allowed: "at most nMembers"}
	}
	if p.Primary != NoPrimary && int(p.Primary) >= n {
		return nil, &FrameError{Type: TypeTable, Field: "primary", Value: uint64(p.Primary), Allowed: "an index below nMembers, or 255"}
	}
	b = b[tablePartFixed:]
	p.Members = p.Members[:0]
	for range n {
		var mb TableMember
		if mb.Address, b, err = cutString8(b, TypeTable, "address"); err != nil {
			return nil, err
		}
		if mb.Member, b, err = cutString8(b, TypeTable, "member"); err != nil {
			return nil, err
		}
		p.Members = append(p.Members, mb)
	}
	return b, nil
}
