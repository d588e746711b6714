package wire

import (
	"reflect"
	"slices"
	"strings"
)

// Type is the kind of a frame. The constants are declared with the messages.
type Type uint8

// Frame is a row of the table of frames: the properties of a type beside its bytes. Which
// frames a node accepts, which permission a request requires, which request an answer is
// for, the table and the examples of docs/protocol.md and the corpus of the fuzz tests are
// derived from it.
type Frame struct {
	Type      Type
	Name      string     // as in docs/protocol.md
	From      Speakers   // who may send it
	ToReplica bool       // the replica of its partition handles it, not the node
	Needs     uint16     // the permission that a client needs, a May* bit; 0 for none
	Feature   FeatureSet // which a node has to have said in Welcome before it is sent the frame; 0: any node knows it
	Example   any        // a message, a pointer to its struct
	codec
	answers bool
}

// Answers reports whether a node sends the frame to a client as the answer to the request
// that its first field names: ReqID, or RequestID of the answers that any request may get.
func (f *Frame) Answers() bool { return f.answers }

// Speakers is a set of senders.
type Speakers uint8

// The speakers. Before Welcome only FromEither may send.
const (
	FromEither Speakers = 1 << iota // both sides, in the handshake
	FromClient                      // an accepted client
	FromPeer                        // a node, on connections of the roles peer and bulk
	FromPulse                       // a node, on connections of the role liveness
	FromNode                        // a node, to a client
)

var speakerNames = [...]string{"either, in the handshake", "client", "node to node", "node to node, liveness", "node to client"}

// String lists the speakers: "client; node to node", or "any" of them.
func (s Speakers) String() string {
	if s == 1<<len(speakerNames)-1 {
		return "any"
	}
	var names []string
	for i, name := range speakerNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "; ")
}

// Frames is the table, in the order of the types. It must not be modified.
var Frames []Frame

// byType is the table by number.
var byType [256]Frame

func init() {
	Frames = slices.Concat(controlFrames, authFrames, proofFrames, tableFrames, orderFrames, readFrames, peerFrames, heartbeatFrames,
		configFrames, snapshotFrames, sinkFrames, followFrames, linkFrames, queryFrames, fixFrames, fixProbeFrames, execFrames, recordFrames, regionFrames, regionBatchFrames, invokeFrames, mapFrames, mapOrdersFrames,
		limitFrames, killFrames, marketFrames, orderBookFrames, streamFrames, selectFrames)
	slices.SortFunc(Frames, func(a, b Frame) int { return int(a.Type) - int(b.Type) })
	for i := range Frames {
		f := &Frames[i]
		f.answers = f.From&FromNode != 0 && namesRequest(f.Example)
		byType[f.Type] = *f
	}
}

// namesRequest reports whether a message begins with the id of a request. The first field
// of a message is the first one of its frame: a test holds that against the codecs.
func namesRequest(message any) bool {
	first := reflect.TypeOf(message).Elem().Field(0).Name
	return first == "ReqID" || first == "RequestID"
}

// Row returns the row of a type; for unknown types one without a name and speakers.
func Row(t Type) *Frame { return &byType[t] }

// String returns the name docs/protocol.md uses, or "0xNN" for an unknown type.
func (t Type) String() string {
	if s := byType[t].Name; s != "" {
		return s
	}
	const hex = "0123456789abcdef"
	return string([]byte{'0', 'x', hex[t>>4], hex[t&15]})
}

// Allowed lists the frames that a speaker may send: "OpenSession, Submit".
func Allowed(by Speakers) string {
	var names []string
	for i := range byType {
		if f := &byType[i]; f.From&by != 0 {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// RequestID decodes the part of a request that an answer needs. slot is 0 unless it is a
// Submit. It allocates.
func RequestID(frame []byte) (reqID uint64, slot uint32, err error) {
	t := FrameType(frame)
	decode := byType[t].Decode
	if decode == nil {
		return 0, 0, &FrameError{Type: t, Field: "type", Value: uint64(t), Allowed: "a request"}
	}
	m, err := decode(frame)
	if r, ok := m.(request); ok && err == nil {
		reqID, slot = r.request()
	}
	return reqID, slot, err
}

// request is a message that has an answer.
type request interface {
	request() (reqID uint64, slot uint32)
}

// codec converts between messages and frames.
type codec struct {
	Decode func(frame []byte) (message any, err error) // allocates
	append func(dst []byte, m any) []byte
}

// Encode makes a frame of a message of the row's type: of partition p33, if it is about one.
func (c *codec) Encode(m any) []byte { return c.append(nil, m) }

func codecOf[T any](decode func([]byte, *T) error, encode func([]byte, *T) []byte) codec {
	return codec{
		Decode: func(frame []byte) (any, error) {
			m := new(T)
			return m, decode(frame, m)
		},
		append: func(dst []byte, m any) []byte { return encode(dst, m.(*T)) },
	}
}

// codecOn is codecOf for a frame about a partition.
func codecOn[T any](decode func([]byte, *T) error, encode func([]byte, PartitionID, *T) []byte) codec {
	return codecOf(decode, func(dst []byte, m *T) []byte { return encode(dst, examplePartition, m) })
}

// codecFor is codecOf for a message of several types.
func codecFor[T any](t Type, decode func([]byte, Type, *T) error, encode func([]byte, Type, *T) []byte) codec {
	return codecOf(func(f []byte, m *T) error { return decode(f, t, m) }, func(dst []byte, m *T) []byte { return encode(dst, t, m) })
}

// What the examples share.
var (
	exampleHead   = PeerHead{Epoch: 3, From: 0xa1, To: 0xb2}
	exampleMember = TableMember{Address: []byte("10.0.0.1:7400"), Member: []byte("g-s0-0/00000000000000a1")}
	exampleOther  = TableMember{Address: []byte("10.0.0.2:7400"), Member: []byte("g-s0-1/00000000000000b2")}
	exampleEntry  = []byte{0: 80, 4: 1, 8: 5, 24: 3, 79: 0} // of kind noop
)

const examplePartition = PartitionID(33)
