package wire

// Regions: keyed objects of a partition, docs/regions.md.
const (
	TypeRegionApply   Type = 0x50
	TypeRegionApplied Type = 0x51
	TypeRegionGet     Type = 0x52
	TypeRegionGot     Type = 0x53
	TypeRegionScan    Type = 0x54
	TypeRegionPage    Type = 0x55
	TypeRegionList    Type = 0x56
	TypeRegionListed  Type = 0x57
)

var regionFrames = []Frame{
	{Type: TypeRegionApply, Name: "RegionApply", From: FromClient, ToReplica: true, Needs: MayWrite, codec: codecOn(DecodeRegionApply, AppendRegionApply),
		Example: &RegionApply{Epoch: 3, Slot: 4, Generation: 1, ClientSeq: 2, Received: 1, Op: RegionPut, If: RegionIfVersion, Version: 17, LifeNs: 60e9, Region: []byte("positions"), Key: []byte("ACC-1/IBM"), Value: []byte("100")}},
	{Type: TypeRegionApplied, Name: "RegionApplied", From: FromNode, codec: codecOn(DecodeRegionApplied, AppendRegionApplied),
		Example: &RegionApplied{Ack: Ack{ClientSeq: 2, Seq: 18, Epoch: 3, Slot: 4, Copies: 2, Flags: RegionHasValue, Hash: 0x1122334455667788, Lineage: 1}, Value: []byte("100")}},
	{Type: TypeRegionGet, Name: "RegionGet", From: FromClient, ToReplica: true, Needs: MayRead, codec: codecOn(DecodeRegionGet, AppendRegionGet),
		Example: &RegionGet{ReqID: 13, Mode: ModeConfirmed, Region: []byte("positions"), Key: []byte("ACC-1/IBM")}},
	{Type: TypeRegionGot, Name: "RegionGot", From: FromNode, codec: codecOn(DecodeRegionGot, AppendRegionGot),
		Example: &RegionGot{ReqID: 13, Epoch: 3, CommitSeq: 18, Version: 18, ExpireNs: 1500000000000000000, Value: []byte("100")}},
	{Type: TypeRegionScan, Name: "RegionScan", From: FromClient, ToReplica: true, Needs: MayRead, codec: codecOn(DecodeRegionScan, AppendRegionScan),
		Example: &RegionScan{ReqID: 14, Mode: ModeLeased, MaxBytes: 65536, Region: []byte("positions"), From: []byte("ACC-1/"), Behind: true, Prefix: []byte("ACC-")}},
	{Type: TypeRegionPage, Name: "RegionPage", From: FromNode, codec: codecOn(DecodeRegionPage, AppendRegionPage),
		Example: &RegionPage{ReqID: 14, Epoch: 3, CommitSeq: 18, Next: []byte("ACC-1/IBM"), Rows: AppendRegionRow(nil, &RegionRow{Version: 18, Key: []byte("ACC-1/IBM"), Value: []byte("100")})}},
	{Type: TypeRegionList, Name: "RegionList", From: FromClient, ToReplica: true, Needs: MayRead, codec: codecOn(DecodeRegionList, AppendRegionList),
		Example: &RegionList{ReqID: 15}},
	{Type: TypeRegionListed, Name: "RegionListed", From: FromNode, codec: codecOn(DecodeRegionListed, AppendRegionListed),
		Example: &RegionListed{ReqID: 15, Used: 4096, Limit: 1 << 20, Rows: AppendRegionInfo(nil, &RegionInfo{Entries: 3, Bytes: 384, MaxBytes: 65536, LifeNs: 60e9, Name: []byte("positions")})}},
}

func (m *RegionApply) request() (uint64, uint32) { return m.ClientSeq, m.Slot }
func (m *RegionGet) request() (uint64, uint32)   { return m.ReqID, 0 }
func (m *RegionScan) request() (uint64, uint32)  { return m.ReqID, 0 }
func (m *RegionList) request() (uint64, uint32)  { return m.ReqID, 0 }

// RegionApply.Op.
const (
	RegionPut    uint8 = 4
	RegionPatch  uint8 = 5 // Value over the bytes of the present one from Offset on
	RegionRemove uint8 = 6
	RegionTake   uint8 = 7 // a remove whose answer has the value, also that of a retry
	RegionClear  uint8 = 8 // all keys of the region in this partition
)

// RegionApply.If: what is required of the present value. A patch, remove or take requires
// one in any case.
const (
	RegionIfAny     uint8 = 0
	RegionIfAbsent  uint8 = 1 // of a put
	RegionIfVersion uint8 = 2 // Version
)

// MaxRegionPair is the maximum size of a key and its value together, in bytes.
const MaxRegionPair = MaxPayload - 32

// RegionApply changes a region, in the session of Submit: its ClientSeq is one of the same
// sequence, and a retry is answered as the first copy was.
type RegionApply struct {
	Epoch      uint64
	Slot       uint32
	Generation uint32
	ClientSeq  uint64 // from 1, contiguous in the session
	Received   uint64 // the client has the answers to all up to this one: values that it took up to it are forgotten
	Op, If     uint8
	Offset     uint32 // of a patch
	Version    uint64 // with RegionIfVersion
	LifeNs     int64  // of a put: how long the value lives; 0: as the region has it, -1: it does not expire
	Region     []byte // 1..48 bytes
	Key        []byte // with the value at most MaxRegionPair bytes
	Value      []byte
}

const regionApplyFixed = HeaderSize + 64

// AppendRegionApply appends a RegionApply frame. A pair over MaxRegionPair is the caller's
// bug; it is cut, and then rejected by the receiver.
func AppendRegionApply(dst []byte, p PartitionID, m *RegionApply) []byte {
	region, key := clip(m.Region, MaxString), clip(m.Key, MaxRegionPair+1)
	value := clip(m.Value, MaxRegionPair+1)
	dst, f := begin(dst, TypeRegionApply, 0, p, regionApplyFixed+len(region)+len(key)+len(value))
	le.PutUint64(f[8:], m.Epoch)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint64(f[24:], m.ClientSeq)
	le.PutUint64(f[32:], m.Received)
	f[40], f[41], f[42], f[43] = m.Op, m.If, uint8(len(region)), 0
	le.PutUint32(f[44:], m.Offset)
	le.PutUint64(f[48:], m.Version)
	le.PutUint64(f[56:], uint64(m.LifeNs))
	le.PutUint32(f[64:], uint32(len(key)))
	le.PutUint32(f[68:], uint32(len(value)))
	b := f[regionApplyFixed:]
	b = b[copy(b, region):]
	copy(b[copy(b, key):], value)
	return dst
}

// DecodeRegionApply decodes a RegionApply frame. A pair that is too long is left to the
// receiver to reject by code.
func DecodeRegionApply(f []byte, m *RegionApply) error {
	const t = TypeRegionApply
	if err := open(f, t, regionApplyFixed, false); err != nil {
		return err
	}
	m.Epoch, m.Slot, m.Generation = le.Uint64(f[8:]), le.Uint32(f[16:]), le.Uint32(f[20:])
	m.ClientSeq, m.Received = le.Uint64(f[24:]), le.Uint64(f[32:])
	m.Op, m.If, m.Offset = f[40], f[41], le.Uint32(f[44:])
	m.Version, m.LifeNs = le.Uint64(f[48:]), int64(le.Uint64(f[56:]))
	var err error
	if m.Region, m.Key, m.Value, err = regionKey(t, f[regionApplyFixed:], int(f[42]), le.Uint32(f[64:])); err != nil {
		return err
	}
	if err := valueLen(t, m.Value, uint64(le.Uint32(f[68:]))); err != nil {
		return err
	}
	keyed := m.Op != RegionClear
	switch {
	case m.ClientSeq == 0:
		return &FrameError{Type: t, Field: "clientSeq", Value: 0, Allowed: "1 or more"}
	case m.Received >= m.ClientSeq:
		return &FrameError{Type: t, Field: "received", Value: m.Received, Allowed: "less than clientSeq"}
	case m.Op < RegionPut || m.Op > RegionClear:
		return &FrameError{Type: t, Field: "op", Value: uint64(m.Op), Allowed: "4 put, 5 patch, 6 remove, 7 take, 8 clear"}
	case m.If > RegionIfVersion || m.If == RegionIfAbsent && m.Op != RegionPut || m.If != RegionIfAny && !keyed:
		return &FrameError{Type: t, Field: "if", Value: uint64(m.If), Allowed: "0 any, 1 absent of a put, 2 version"}
	case keyed != (len(m.Key) > 0):
		return &FrameError{Type: t, Field: "keyLen", Value: uint64(len(m.Key)), Allowed: "1 or more, 0 of a clear"}
	case m.Op > RegionPatch && len(m.Value) > 0:
		return &FrameError{Type: t, Field: "value", Value: uint64(len(m.Value)), Allowed: "none but of a put or patch"}
	case m.Offset != 0 && m.Op != RegionPatch:
		return &FrameError{Type: t, Field: "offset", Value: uint64(m.Offset), Allowed: "0 but of a patch"}
	case m.LifeNs < -1 || m.LifeNs != 0 && m.Op != RegionPut:
		return &FrameError{Type: t, Field: "lifeNs", Value: uint64(m.LifeNs), Allowed: "-1 or more of a put, 0 otherwise"}
	}
	return nil
}

// regionKey splits the name of a region, a key, and what follows.
func regionKey(t Type, b []byte, name int, key uint32) (region, k, rest []byte, err error) {
	switch {
	case name == 0 || name > len(b):
		return nil, nil, nil, &FrameError{Type: t, Field: "regionLen", Value: uint64(name), Allowed: "1 or more, and no more than the bytes that follow"}
	case uint64(key) > uint64(len(b)-name):
		return nil, nil, nil, &FrameError{Type: t, Field: "keyLen", Value: uint64(key), Allowed: "no more than the bytes that follow"}
	}
	n := name + int(key)
	return b[:name:name], b[name:n:n], b[n:], nil
}

func valueLen(t Type, value []byte, n uint64) error {
	if n != uint64(len(value)) {
		return &FrameError{Type: t, Field: "valueLen", Value: n, Allowed: "the bytes that follow"}
	}
	return nil
}

// RegionHasValue of RegionApplied.Flags, beside AckDup: the value that was taken follows.
const RegionHasValue uint8 = 2

// RegionApplied answers a RegionApply: the change is committed. Seq is the version that it
// made.
type RegionApplied struct {
	Ack
	Value []byte // of a take
}

const regionAppliedFixed = AckSize + 8

// AppendRegionApplied appends a RegionApplied frame.
func AppendRegionApplied(dst []byte, p PartitionID, m *RegionApplied) []byte {
	dst, f := begin(dst, TypeRegionApplied, 0, p, regionAppliedFixed+len(m.Value))
	putAck(f, &m.Ack)
	le.PutUint64(f[AckSize:], uint64(len(m.Value)))
	copy(f[regionAppliedFixed:], m.Value)
	return dst
}

// DecodeRegionApplied decodes a RegionApplied frame.
func DecodeRegionApplied(f []byte, m *RegionApplied) error {
	if err := open(f, TypeRegionApplied, regionAppliedFixed, false); err != nil {
		return err
	}
	m.Ack.get(f)
	m.Value = f[regionAppliedFixed:]
	if len(m.Value) > 0 && m.Flags&RegionHasValue == 0 {
		return &FrameError{Type: TypeRegionApplied, Field: "value", Value: uint64(len(m.Value)), Allowed: "none but of a take"}
	}
	return valueLen(TypeRegionApplied, m.Value, le.Uint64(f[AckSize:]))
}

// RegionGet reads the value of a key.
type RegionGet struct {
	ReqID  uint64
	Mode   uint8 // as that of a Get
	Region []byte
	Key    []byte
}

const regionGetFixed = HeaderSize + 16

// AppendRegionGet appends a RegionGet frame.
func AppendRegionGet(dst []byte, p PartitionID, m *RegionGet) []byte {
	region, key := clip(m.Region, MaxString), clip(m.Key, MaxRegionPair+1)
	dst, f := begin(dst, TypeRegionGet, 0, p, regionGetFixed+len(region)+len(key))
	le.PutUint64(f[8:], m.ReqID)
	f[16], f[17], f[18], f[19] = m.Mode, uint8(len(region)), 0, 0
	le.PutUint32(f[20:], uint32(len(key)))
	b := f[regionGetFixed:]
	copy(b[copy(b, region):], key)
	return dst
}

// DecodeRegionGet decodes a RegionGet frame.
func DecodeRegionGet(f []byte, m *RegionGet) error {
	if err := open(f, TypeRegionGet, regionGetFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Mode = le.Uint64(f[8:]), f[16]
	var rest []byte
	var err error
	if m.Region, m.Key, rest, err = regionKey(TypeRegionGet, f[regionGetFixed:], int(f[17]), le.Uint32(f[20:])); err != nil {
		return err
	}
	if len(m.Key) == 0 || len(m.Key) > MaxRegionPair {
		return &FrameError{Type: TypeRegionGet, Field: "keyLen", Value: uint64(len(m.Key)), Allowed: "1..65440"}
	}
	if err := checkMode(TypeRegionGet, m.Mode); err != nil {
		return err
	}
	return done(rest, TypeRegionGet)
}

func checkMode(t Type, mode uint8) error {
	if mode < ModeConfirmed || mode > ModeBackup {
		return &FrameError{Type: t, Field: "mode", Value: uint64(mode), Allowed: "1 confirmed, 2 leased, 3 backup"}
	}
	return nil
}

// RegionGot answers a RegionGet.
type RegionGot struct {
	ReqID     uint64
	Epoch     uint64
	CommitSeq uint64 // the committed prefix behind the answer
	Version   uint64 // the log entry that wrote the value; 0: the key has none
	ExpireNs  int64  // unix nanoseconds, 0: never
	Value     []byte
}

// RegionGotFixed is the size of a RegionGot frame without its value.
const RegionGotFixed = HeaderSize + 48

// AppendRegionGot appends a RegionGot frame.
func AppendRegionGot(dst []byte, p PartitionID, m *RegionGot) []byte {
	dst, f := begin(dst, TypeRegionGot, 0, p, RegionGotFixed+len(m.Value))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Epoch)
	le.PutUint64(f[24:], m.CommitSeq)
	le.PutUint64(f[32:], m.Version)
	le.PutUint64(f[40:], uint64(m.ExpireNs))
	le.PutUint64(f[48:], uint64(len(m.Value)))
	copy(f[RegionGotFixed:], m.Value)
	return dst
}

// DecodeRegionGot decodes a RegionGot frame.
func DecodeRegionGot(f []byte, m *RegionGot) error {
	if err := open(f, TypeRegionGot, RegionGotFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Epoch, m.CommitSeq = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:])
	m.Version, m.ExpireNs, m.Value = le.Uint64(f[32:]), int64(le.Uint64(f[40:])), f[RegionGotFixed:]
	if m.Version == 0 && len(m.Value) > 0 {
		return &FrameError{Type: TypeRegionGot, Field: "value", Value: uint64(len(m.Value)), Allowed: "none without a version"}
	}
	return valueLen(TypeRegionGot, m.Value, le.Uint64(f[48:]))
}
