package wire

// Maps over the orders of a log: docs/functions.md.
const (
	TypeMapOrders     Type = 0x2c
	TypeMapOrdersPart Type = 0x2d
)

var mapOrdersFrames = []Frame{
	{Type: TypeMapOrders, Name: "MapOrders", From: FromClient, ToReplica: true, Needs: MayWatch, Feature: FeatureMapOrders, codec: codecOn(DecodeMapOrders, AppendMapOrders),
		Example: &MapOrders{ReqID: 21, From: 1, Through: 17, TimeoutMs: 1000, Slice: 1, Slices: 4, Function: []byte("notional"), Args: []byte("IBM")}},
	{Type: TypeMapOrdersPart, Name: "MapOrdersPart", From: FromNode, codec: codecOn(DecodeMapOrdersPart, AppendMapOrdersPart),
		Example: &MapOrdersPart{ReqID: 21, Epoch: 3, From: 1, Through: 17, ThroughHash: 0x1122334455667788, Rows: 4, Fuel: 1220, Reply: []byte{42, 0, 0, 0, 0, 0, 0, 0}}},
}

// MapOrders calls a function for the orders of a part of the committed log of the partition, on a
// thread beside orders.
type MapOrders struct {
	ReqID     uint64 // names the Map on its connection; a Map with 0 slices ends it
	From      uint64 // the first entry that counts; 0 with a Through of 0
	Through   uint64 // the last one; 0: from the first entry that is held through the last that is committed
	TimeoutMs uint32 // 1 or more; a node allows less
	Slice     uint16 // this is slice 0..Slices-1: the entries from From+n*Slice/Slices on, of n
	Slices    uint16 // 1..MaxSlices; more than 1 with a Through
	Function  []byte // at most 32 bytes; none: which entries those are is all that is asked, Slices is 1
	Args      []byte // at most MaxMapArgs bytes
}

func (m *MapOrders) request() (uint64, uint32) { return m.ReqID, 0 }

// Part returns the first entry of a slice, and the first behind it.
func (m *MapOrders) Part(from, through uint64) (first, behind uint64) {
	n := through + 1 - from
	at := func(slice uint64) uint64 { // without n*slice, which could overflow
		s := uint64(m.Slices)
		return from + n/s*slice + n%s*slice/s
	}
	return at(uint64(m.Slice)), at(uint64(m.Slice) + 1)
}

const mapOrdersFixed = HeaderSize + 40

// AppendMapOrders appends a MapOrders frame. Arguments over MaxMapArgs are the caller's bug; they
// are cut, and then rejected by the receiver.
func AppendMapOrders(dst []byte, p PartitionID, m *MapOrders) []byte {
	function, args := clip(m.Function, MaxString), clip(m.Args, MaxMapArgs+1)
	dst, f := begin(dst, TypeMapOrders, 0, p, mapOrdersFixed+len(function)+len(args))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.From)
	le.PutUint64(f[24:], m.Through)
	le.PutUint32(f[32:], m.TimeoutMs)
	le.PutUint16(f[36:], m.Slice)
	le.PutUint16(f[38:], m.Slices)
	le.PutUint32(f[40:], uint32(len(function)))
	le.PutUint32(f[44:], uint32(len(args)))
	b := f[mapOrdersFixed:]
	copy(b[copy(b, function):], args)
	return dst
}

// DecodeMapOrders decodes a MapOrders frame.
func DecodeMapOrders(f []byte, m *MapOrders) error {
	const t = TypeMapOrders
	if err := open(f, t, mapOrdersFixed, false); err != nil {
		return err
	}
	m.ReqID, m.From, m.Through = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:])
	m.TimeoutMs, m.Slice, m.Slices = le.Uint32(f[32:]), le.Uint16(f[36:]), le.Uint16(f[38:])
	b := f[mapOrdersFixed:]
	n := uint64(le.Uint32(f[40:]))
	if n > uint64(len(b)) || n > MaxString {
		return &FrameError{Type: t, Field: "functionLen", Value: n, Allowed: "no more than the bytes that follow, and 48"}
	}
	m.Function, m.Args = b[:n:n], b[n:]
	switch n := le.Uint32(f[44:]); {
	case uint64(n) != uint64(len(m.Args)) || n > MaxMapArgs:
		return &FrameError{Type: t, Field: "argsLen", Value: uint64(n), Allowed: "the bytes that follow, 0..4096"}
	case m.Slices == 0 || m.Slices > MaxSlices:
		return &FrameError{Type: t, Field: "slices", Value: uint64(m.Slices), Allowed: "1..1024"}
	case m.Slices > 1 && (m.Through == 0 || len(m.Function) == 0):
		return &FrameError{Type: t, Field: "slices", Value: uint64(m.Slices), Allowed: "1 without a function, or without from and through"}
	case m.Slice >= m.Slices:
		return &FrameError{Type: t, Field: "slice", Value: uint64(m.Slice), Allowed: "less than slices"}
	case (m.From == 0) != (m.Through == 0) || m.From > 0 && m.From-1 > m.Through || m.Through == 1<<64-1:
		return &FrameError{Type: t, Field: "from", Value: m.From, Allowed: "1 to the entry behind through, and 0 if that is 0"}
	case m.TimeoutMs == 0:
		return &FrameError{Type: t, Field: "timeout", Value: 0, Allowed: "1 or more milliseconds"}
	}
	return nil
}

// MapOrdersPart answers a MapOrders: what the function made of its slice.
type MapOrdersPart struct {
	ReqID       uint64
	Epoch       uint64
	From        uint64 // the first entry that counted, of all slices
	Through     uint64 // the last one, which is committed; From-1: there are none
	ThroughHash uint64 // of entry Through: the same at every copy
	Rows        uint64 // orders that the function was called for
	Fuel        uint64 // of all calls
	Reply       []byte // at most MaxReply bytes
}

const mapOrdersPartFixed = HeaderSize + 64

// AppendMapOrdersPart appends a MapOrdersPart frame.
func AppendMapOrdersPart(dst []byte, p PartitionID, m *MapOrdersPart) []byte {
	dst, f := begin(dst, TypeMapOrdersPart, 0, p, mapOrdersPartFixed+len(m.Reply))
	for i, v := range [...]uint64{m.ReqID, m.Epoch, m.From, m.Through, m.ThroughHash, m.Rows, m.Fuel, uint64(len(m.Reply))} {
		le.PutUint64(f[HeaderSize+8*i:], v)
	}
	copy(f[mapOrdersPartFixed:], m.Reply)
	return dst
}

// DecodeMapOrdersPart decodes a MapOrdersPart frame.
func DecodeMapOrdersPart(f []byte, m *MapOrdersPart) error {
	if err := open(f, TypeMapOrdersPart, mapOrdersPartFixed, false); err != nil {
		return err
	}
	for i, v := range [...]*uint64{&m.ReqID, &m.Epoch, &m.From, &m.Through, &m.ThroughHash, &m.Rows, &m.Fuel} {
		*v = le.Uint64(f[HeaderSize+8*i:])
	}
	m.Reply = f[mapOrdersPartFixed:]
	if n := le.Uint64(f[64:]); n != uint64(len(m.Reply)) || n > MaxReply {
		return &FrameError{Type: TypeMapOrdersPart, Field: "replyLen", Value: n, Allowed: "the bytes that follow, 0..4096"}
	}
	if m.From == 0 || m.Through < m.From-1 {
		return &FrameError{Type: TypeMapOrdersPart, Field: "from", Value: m.From, Allowed: "1 to the entry behind through"}
	}
	return nil
}
