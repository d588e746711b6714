package wire

// Functions of kind Compute for many keys, or for none, beside the loop: docs/functions.md.
const (
	TypeMap     Type = 0x5a
	TypeMapPart Type = 0x5b
)

var mapFrames = []Frame{
	{Type: TypeMap, Name: "Map", From: FromClient, ToReplica: true, Needs: MayRead, codec: codecOn(DecodeMap, AppendMap),
		Example: &Map{ReqID: 21, TimeoutMs: 1000, Slice: 1, Slices: 4, Region: []byte("positions"), Function: []byte("total"), Args: []byte{7, 0, 0, 0}}},
	{Type: TypeMapPart, Name: "MapPart", From: FromNode, codec: codecOn(DecodeMapPart, AppendMapPart),
		Example: &MapPart{ReqID: 21, Epoch: 3, Seq: 17, Rows: 250, Fuel: 60200, Reply: []byte{42, 0, 0, 0, 0, 0, 0, 0}}},
}

func (m *Map) request() (uint64, uint32) { return m.ReqID, 0 }

// MaxMapArgs is the maximum size of the arguments of a Map, in bytes.
const MaxMapArgs = 4096

// MaxSlices is the maximum of Map.Slices.
const MaxSlices = 1024

// Map calls a function for the entries that a region of the partition has, or for none, on a
// thread beside orders.
type Map struct {
	ReqID     uint64 // names the Map on its connection
	TimeoutMs uint32 // 1 or more; a node allows less
	Slice     uint16 // this is slice 0..Slices-1: of the entries those whose hash modulo Slices is Slice
	Slices    uint16 // 1..MaxSlices; 0 ends the Map with this ReqID
	Region    []byte // at most 48 bytes; none: the function gets the arguments only
	Function  []byte // 1..32 bytes
	Args      []byte // at most MaxMapArgs bytes
}

const mapFixed = HeaderSize + 24

// AppendMap appends a Map frame. Arguments over MaxMapArgs are the caller's bug; they are cut,
// and then rejected by the receiver.
func AppendMap(dst []byte, p PartitionID, m *Map) []byte {
	region, function, args := clip(m.Region, MaxString), clip(m.Function, MaxString), clip(m.Args, MaxMapArgs+1)
	dst, f := begin(dst, TypeMap, 0, p, mapFixed+len(region)+len(function)+len(args))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.TimeoutMs)
	le.PutUint16(f[20:], m.Slice)
	le.PutUint16(f[22:], m.Slices)
	f[24], f[25], f[26], f[27] = uint8(len(region)), uint8(len(function)), 0, 0
	le.PutUint32(f[28:], uint32(len(args)))
	b := f[mapFixed:]
	b = b[copy(b, region):]
	copy(b[copy(b, function):], args)
	return dst
}

// DecodeMap decodes a Map frame.
func DecodeMap(f []byte, m *Map) error {
	const t = TypeMap
	if err := open(f, t, mapFixed, false); err != nil {
		return err
	}
	m.ReqID, m.TimeoutMs, m.Slice, m.Slices = le.Uint64(f[8:]), le.Uint32(f[16:]), le.Uint16(f[20:]), le.Uint16(f[22:])
	if n, allowed := int(f[24]), len(f)-mapFixed; n > allowed {
		return &FrameError{Type: t, Field: "regionLen", Value: uint64(n), Allowed: "no more than the bytes that follow"}
	}
	b := f[mapFixed:]
	m.Region, b = b[:f[24]:f[24]], b[f[24]:]
	if n := int(f[25]); n > len(b) || n == 0 && m.Slices > 0 {
		return &FrameError{Type: t, Field: "functionLen", Value: uint64(n), Allowed: "1 or more, and no more than the bytes that follow"}
	}
	m.Function, m.Args = b[:f[25]:f[25]], b[f[25]:]
	switch n := le.Uint32(f[28:]); {
	case uint64(n) != uint64(len(m.Args)) || n > MaxMapArgs:
		return &FrameError{Type: t, Field: "argsLen", Value: uint64(n), Allowed: "the bytes that follow, 0..4096"}
	case m.Slices > MaxSlices:
		return &FrameError{Type: t, Field: "slices", Value: uint64(m.Slices), Allowed: "1..1024, 0 to end the Map"}
	case m.Slices > 0 && m.Slice >= m.Slices:
		return &FrameError{Type: t, Field: "slice", Value: uint64(m.Slice), Allowed: "less than slices"}
	case m.Slices > 0 && m.TimeoutMs == 0:
		return &FrameError{Type: t, Field: "timeout", Value: 0, Allowed: "1 or more milliseconds"}
	}
	return nil
}

// MapPart answers a Map: what the function made of its slice.
type MapPart struct {
	ReqID uint64
	Epoch uint64
	Seq   uint64 // the last entry of kind region that counted; 0 without a region
	Rows  uint64 // entries that the function was called for
	Fuel  uint64 // of all calls
	Reply []byte // at most MaxReply bytes
}

const mapPartFixed = HeaderSize + 48

// AppendMapPart appends a MapPart frame.
func AppendMapPart(dst []byte, p PartitionID, m *MapPart) []byte {
	dst, f := begin(dst, TypeMapPart, 0, p, mapPartFixed+len(m.Reply))
	for i, v := range [...]uint64{m.ReqID, m.Epoch, m.Seq, m.Rows, m.Fuel, uint64(len(m.Reply))} {
		le.PutUint64(f[HeaderSize+8*i:], v)
	}
	copy(f[mapPartFixed:], m.Reply)
	return dst
}

// DecodeMapPart decodes a MapPart frame.
func DecodeMapPart(f []byte, m *MapPart) error {
	if err := open(f, TypeMapPart, mapPartFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Epoch, m.Seq, m.Rows, m.Fuel = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:]), le.Uint64(f[32:]), le.Uint64(f[40:])
	m.Reply = f[mapPartFixed:]
	if n := le.Uint64(f[48:]); n != uint64(len(m.Reply)) || n > MaxReply {
		return &FrameError{Type: TypeMapPart, Field: "replyLen", Value: n, Allowed: "the bytes that follow, 0..4096"}
	}
	return nil
}
