package wire

// A FIX session that is wanted by a second gateway: the primary asks the one that has it
// whether its counterparty is there.
const (
	TypeFixProbe Type = 0x28
	TypeFixHere  Type = 0x29
)

var fixProbeFrames = []Frame{
	{Type: TypeFixProbe, Name: "FixProbe", From: FromNode, codec: codecOn(DecodeFixProbe, AppendFixProbe),
		Example: &FixProbe{Slot: 5, Attempt: 7}},
	{Type: TypeFixHere, Name: "FixHere", From: FromClient, ToReplica: true, Needs: MayGateway, codec: codecOn(DecodeFixHere, AppendFixHere),
		Example: &FixHere{Slot: 5, Attempt: 7, Here: true}},
}

func (m *FixHere) request() (uint64, uint32) { return 0, m.Slot }

// FixProbe asks a gateway whether the counterparty of a session still answers it.
type FixProbe struct {
	Slot    uint32
	Attempt uint32 // the gateway's
}

// FixHere answers a FixProbe, or tells without one that a counterparty is gone.
type FixHere struct {
	Slot    uint32
	Attempt uint32 // the gateway's
	Here    bool   // false: another gateway may open the session
}

const (
	fixProbeSize = HeaderSize + 8
	fixHereSize  = HeaderSize + 16
)

// AppendFixProbe appends a FixProbe frame.
func AppendFixProbe(dst []byte, p PartitionID, m *FixProbe) []byte {
	dst, f := begin(dst, TypeFixProbe, 0, p, fixProbeSize)
	le.PutUint32(f[8:], m.Slot)
	le.PutUint32(f[12:], m.Attempt)
	return dst
}

// DecodeFixProbe decodes a FixProbe frame.
func DecodeFixProbe(f []byte, m *FixProbe) error {
	if err := open(f, TypeFixProbe, fixProbeSize, true); err != nil {
		return err
	}
	*m = FixProbe{Slot: le.Uint32(f[8:]), Attempt: le.Uint32(f[12:])}
	return nil
}

// AppendFixHere appends a FixHere frame.
func AppendFixHere(dst []byte, p PartitionID, m *FixHere) []byte {
	dst, f := begin(dst, TypeFixHere, 0, p, fixHereSize)
	le.PutUint32(f[8:], m.Slot)
	le.PutUint32(f[12:], m.Attempt)
	here := uint64(0)
	if m.Here {
		here = 1
	}
	le.PutUint64(f[16:], here)
	return dst
}

// DecodeFixHere decodes a FixHere frame.
func DecodeFixHere(f []byte, m *FixHere) error {
	if err := open(f, TypeFixHere, fixHereSize, true); err != nil {
		return err
	}
	*m = FixHere{Slot: le.Uint32(f[8:]), Attempt: le.Uint32(f[12:]), Here: f[16] == 1}
	if f[16] > 1 {
		return &FrameError{Type: TypeFixHere, Field: "here", Value: uint64(f[16]), Allowed: "0 or 1"}
	}
	return nil
}
