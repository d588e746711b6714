package wire

// Functions of kind Compute that clients call, docs/functions.md.
const (
	TypeInvoke  Type = 0x58
	TypeInvoked Type = 0x59
)

var invokeFrames = []Frame{
	{Type: TypeInvoke, Name: "Invoke", From: FromClient, ToReplica: true, Needs: MayWrite, codec: codecOn(DecodeInvoke, AppendInvoke),
		Example: &Invoke{Epoch: 3, Slot: 4, Generation: 1, ClientSeq: 2, Received: 1, Region: []byte("positions"), Function: []byte("add"), Key: []byte("ACC-1/IBM"), Args: []byte{5, 0, 0, 0, 0, 0, 0, 0}}},
	{Type: TypeInvoked, Name: "Invoked", From: FromNode, codec: codecOn(DecodeInvoked, AppendInvoked),
		Example: &Invoked{Ack: Ack{ClientSeq: 2, Seq: 18, Epoch: 3, Slot: 4, Copies: 2, Hash: 0x1122334455667788, Lineage: 1}, Reply: []byte{105, 0, 0, 0, 0, 0, 0, 0}}},
}

func (m *Invoke) request() (uint64, uint32) { return m.ClientSeq, m.Slot }

// MaxReply is the maximum size of a function's reply, in bytes.
const MaxReply = 4096

// Invoke calls a function with a key of a region and its value, in the session of Submit:
// its ClientSeq is one of the same sequence, and a retry is answered as the first copy was.
type Invoke struct {
	Epoch      uint64
	Slot       uint32
	Generation uint32
	ClientSeq  uint64 // from 1, contiguous in the session
	Received   uint64 // the client has the answers to all up to this one
	Region     []byte // 1..48 bytes
	Function   []byte // 1..32 bytes
	Key        []byte // with Args at most MaxRegionPair bytes
	Args       []byte
}

const invokeFixed = HeaderSize + 48

// AppendInvoke appends an Invoke frame. Key and arguments over MaxRegionPair are the
// caller's bug; they are cut, and then rejected by the receiver.
func AppendInvoke(dst []byte, p PartitionID, m *Invoke) []byte {
	region, function := clip(m.Region, MaxString), clip(m.Function, MaxString)
	key, args := clip(m.Key, MaxRegionPair+1), clip(m.Args, MaxRegionPair+1)
	dst, f := begin(dst, TypeInvoke, 0, p, invokeFixed+len(region)+len(function)+len(key)+len(args))
	le.PutUint64(f[8:], m.Epoch)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint64(f[24:], m.ClientSeq)
	le.PutUint64(f[32:], m.Received)
	f[40], f[41], f[42], f[43] = uint8(len(region)), uint8(len(function)), 0, 0
	le.PutUint32(f[44:], uint32(len(key)))
	le.PutUint64(f[48:], uint64(len(args)))
	b := f[invokeFixed:]
	b = b[copy(b, region):]
	b = b[copy(b, function):]
	copy(b[copy(b, key):], args)
	return dst
}

// DecodeInvoke decodes an Invoke frame. Key and arguments that are too long are left to the
// receiver to reject by code.
func DecodeInvoke(f []byte, m *Invoke) error {
	const t = TypeInvoke
	if err := open(f, t, invokeFixed, false); err != nil {
		return err
	}
	m.Epoch, m.Slot, m.Generation = le.Uint64(f[8:]), le.Uint32(f[16:]), le.Uint32(f[20:])
	m.ClientSeq, m.Received = le.Uint64(f[24:]), le.Uint64(f[32:])
	if n, allowed := int(f[40]), len(f)-invokeFixed; n == 0 || n > allowed {
		return &FrameError{Type: t, Field: "regionLen", Value: uint64(n), Allowed: "1 or more, and no more than the bytes that follow"}
	}
	b := f[invokeFixed:]
	m.Region, b = b[:f[40]:f[40]], b[f[40]:]
	if n := int(f[41]); n == 0 || n > len(b) {
		return &FrameError{Type: t, Field: "functionLen", Value: uint64(n), Allowed: "1 or more, and no more than the bytes that follow"}
	}
	m.Function, b = b[:f[41]:f[41]], b[f[41]:]
	n := le.Uint32(f[44:])
	if n == 0 || uint64(n) > uint64(len(b)) {
		return &FrameError{Type: t, Field: "keyLen", Value: uint64(n), Allowed: "1 or more, and no more than the bytes that follow"}
	}
	m.Key, m.Args = b[:n:n], b[n:]
	switch args := le.Uint64(f[48:]); {
	case args != uint64(len(m.Args)):
		return &FrameError{Type: t, Field: "argsLen", Value: args, Allowed: "the bytes that follow"}
	case m.ClientSeq == 0:
		return &FrameError{Type: t, Field: "clientSeq", Value: 0, Allowed: "1 or more"}
	case m.Received >= m.ClientSeq:
		return &FrameError{Type: t, Field: "received", Value: m.Received, Allowed: "less than clientSeq"}
	}
	return nil
}

// Invoked answers an Invoke: what the function decided is committed.
type Invoked struct {
	Ack
	Reply []byte // at most MaxReply bytes
}

const invokedFixed = AckSize + 8

// AppendInvoked appends an Invoked frame.
func AppendInvoked(dst []byte, p PartitionID, m *Invoked) []byte {
	dst, f := begin(dst, TypeInvoked, 0, p, invokedFixed+len(m.Reply))
	putAck(f, &m.Ack)
	le.PutUint64(f[AckSize:], uint64(len(m.Reply)))
	copy(f[invokedFixed:], m.Reply)
	return dst
}

// DecodeInvoked decodes an Invoked frame.
func DecodeInvoked(f []byte, m *Invoked) error {
	if err := open(f, TypeInvoked, invokedFixed, false); err != nil {
		return err
	}
	m.Ack.get(f)
	m.Reply = f[invokedFixed:]
	if n := le.Uint64(f[AckSize:]); n != uint64(len(m.Reply)) || n > MaxReply {
		return &FrameError{Type: TypeInvoked, Field: "replyLen", Value: n, Allowed: "the bytes that follow, 0..4096"}
	}
	return nil
}
