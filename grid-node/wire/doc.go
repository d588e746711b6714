// Package wire is the only place that defines the bytes of the OrderGrid protocol.
//
// A connection carries frames. Every frame begins with an 8-byte header
// (length, type, flags, partition), then the fixed fields of its type, then at
// most one variable tail. All integers are little-endian. docs/protocol.md
// lists every byte.
//
// The codecs follow one pattern: AppendX(dst, partition, *X) []byte appends a whole frame,
// DecodeX(frame, *X) error fills a struct whose byte slices alias the frame. Neither
// allocates (AppendX only when dst has to grow). A decoder never reads outside the frame,
// whatever its bytes are: peers are not trusted.
package wire

// Magic opens every Hello: the bytes "OGR1".
const Magic uint32 = 'O' | 'G'<<8 | 'R'<<16 | '1'<<24

// Limits, in bytes unless the name indicates otherwise.
const (
	// HeaderSize is the size of the frame header.
	HeaderSize = 8
	// MaxFrame is the largest frame either side may send, header included.
	MaxFrame = 1 << 20
	// MaxPayload is the hard limit of one order's bytes; the entry that holds
	// it then fits 64 KiB, so that offsets in an entry are 16-bit.
	MaxPayload = 64<<10 - 64
	// DefaultMaxPayload is the limit a node applies unless configured.
	DefaultMaxPayload = 16 << 10
	// MaxString bounds grid names, member ids and addresses.
	MaxString = 255
	// MaxText bounds the human text of a Reject, Goaway or JoinReply.
	MaxText = 1024
	// MaxKey bounds the key of a Get.
	MaxKey = 255
	// MaxCopies bounds the desired copies of a partition.
	MaxCopies = 3
	// MaxMembers bounds the in-sync members of a partition: the copies, and one more while they move to other pods.
	MaxMembers = MaxCopies + 1
)
