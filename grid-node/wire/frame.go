package wire

import "encoding/binary"

var le = binary.LittleEndian

// Frame flags. Unknown flags are sent as zero and ignored on receipt.
const (
	// FlagLearner on Prepare: the receiver is catching up and is not counted.
	FlagLearner uint8 = 1
	// FlagLeased on Prepare, Beacon and Heartbeat: the sender answers leased reads, so its
	// successor has to wait out the lease first.
	FlagLeased uint8 = 2
	// FlagFix on PrepareAck: the sender knows entries of FIX sessions.
	FlagFix uint8 = 4
	// FlagDraining on PrepareAck, HeartbeatAck and Join: the sender is about to stop. It
	// is not a hand-over target, and its primary retires it.
	FlagDraining uint8 = 8
	// FlagFull on PrepareAck and HeartbeatAck: the sender has only its memory reserve
	// left. Its primary takes no new orders until that clears.
	FlagFull uint8 = 16
	// FlagWantArbiter on Beacon: the receiver should check whether it reaches the arbiter,
	// because it may get the partition handed over.
	FlagWantArbiter uint8 = 32
	// FlagGuard on PrepareAck: the sender knows entries with limits.
	FlagGuard uint8 = 128
	// FlagReachesArbiter on PrepareAck: the sender has just read the present configuration
	// from the arbiter.
	FlagReachesArbiter uint8 = 64
	// FlagFunctions on PrepareAck: the sender knows entries of kind functions, and has
	// loaded all functions that its log offers.
	FlagFunctions uint8 = 1
	// FlagOtherFunctions on PrepareAck: the sender was given other functions than those
	// that its log has in force.
	FlagOtherFunctions uint8 = 2
	// FlagRegions on PrepareAck: the sender knows entries of regions.
	FlagRegions uint8 = 32
	// FlagHeir on Join: the sender has the journal of a former process, a member of the
	// epoch, and acts for it in no epoch yet.
	FlagHeir uint8 = 64
	// FlagBySymbol on Table: orders belong to the partition of their symbol, not to that of
	// their ClOrdID.
	FlagBySymbol uint8 = 1
	// FlagWantFeatures on Beacon: the receiver should say by Features what it knows.
	FlagWantFeatures uint8 = 4
	// FlagFollowed on HeartbeatAck: clients follow the log at the sender, which wants to know
	// what is committed at once.
	FlagFollowed uint8 = 1
	// FlagCommit on Beacon: it only says what is committed, and nothing is answered. It goes
	// to members with FlagFollowed.
	FlagCommit uint8 = 8
	// FlagStandby on NewConfig: the partition gets its entries from another site.
	FlagStandby uint8 = 128
)

// FrameType of a whole frame as returned by Split.
func FrameType(frame []byte) Type { return Type(frame[4]) }

// FrameFlags of a whole frame as returned by Split.
func FrameFlags(frame []byte) uint8 { return frame[5] }

// FramePartition of a whole frame as returned by Split.
func FramePartition(frame []byte) PartitionID { return PartitionID(le.Uint16(frame[6:])) }

// Split cuts the first whole frame off buf. A nil frame with a nil error means that more
// bytes are needed. After a *FrameError the stream is unusable and the connection must be
// closed.
func Split(buf []byte) (frame, rest []byte, err error) {
	if len(buf) < 4 {
		return nil, buf, nil
	}
	n := le.Uint32(buf)
	if n < HeaderSize || n > MaxFrame {
		return nil, buf, &FrameError{Field: "length", Value: uint64(n), Allowed: "8..1048576 bytes"}
	}
	if uint32(len(buf)) < n {
		return nil, buf, nil
	}
	return buf[:n:n], buf[n:], nil
}

// Need returns the total size of the first frame of buf, or 0 when fewer than four bytes
// are present. Use it to size a read buffer.
func Need(buf []byte) int {
	if len(buf) < 4 {
		return 0
	}
	return int(le.Uint32(buf))
}

// AddTail raises the length in the header of frame by n bytes, which the caller
// writes after it: entries go from the store to the socket without a copy.
func AddTail(frame []byte, n int) { le.PutUint32(frame, le.Uint32(frame)+uint32(n)) }

// begin grows dst by size bytes, writes the frame header and returns dst and
// the frame's bytes. Every byte of the fixed part is written by the caller or
// zeroed here, because dst may hold an older frame.
func begin(dst []byte, t Type, flags uint8, p PartitionID, size int) (out, frame []byte) {
	n := len(dst)
	if cap(dst)-n < size {
		grown := make([]byte, n, 2*cap(dst)+size)
		copy(grown, dst)
		dst = grown
	}
	dst = dst[:n+size]
	frame = dst[n:]
	le.PutUint32(frame, uint32(size))
	frame[4] = byte(t)
	frame[5] = flags
	le.PutUint16(frame[6:], uint16(p))
	return dst, frame
}

// open checks that frame is a whole frame of type t with at least fixed bytes
// (header included), or exactly fixed bytes if exact.
func open(frame []byte, t Type, fixed int, exact bool) error {
	if len(frame) < HeaderSize {
		return &FrameError{Type: t, Field: "length", Value: uint64(len(frame)), Allowed: "at least 8 bytes"}
	}
	if Type(frame[4]) != t {
		return &FrameError{Type: t, Field: "type", Value: uint64(frame[4]), Allowed: t.String()}
	}
	if n := le.Uint32(frame); uint64(n) != uint64(len(frame)) || n > MaxFrame {
		return &FrameError{Type: t, Field: "length", Value: uint64(n), Allowed: "the frame's own size, at most 1048576"}
	}
	if len(frame) < fixed || exact && len(frame) != fixed {
		return &FrameError{Type: t, Field: "length", Value: uint64(len(frame)), Allowed: sizeText(fixed, exact)}
	}
	return nil
}

// cutString8 reads a u8 length and that many bytes.
func cutString8(b []byte, t Type, field string) (s, rest []byte, err error) {
	if len(b) < 1 {
		return nil, nil, &FrameError{Type: t, Field: field + "Len", Value: 0, Allowed: "one length byte"}
	}
	n := int(b[0])
	if len(b) < 1+n {
		return nil, nil, &FrameError{Type: t, Field: field + "Len", Value: uint64(n), Allowed: "no more than the bytes that follow"}
	}
	return b[1 : 1+n : 1+n], b[1+n:], nil
}

// putString8 writes a u8 length and the bytes, cutting what is over 255, and
// returns what is left of b.
func putString8(b, s []byte) []byte {
	s = clip(s, MaxString)
	b[0] = byte(len(s))
	copy(b[1:], s)
	return b[1+len(s):]
}

func clip(s []byte, limit int) []byte {
	if len(s) > limit {
		return s[:limit]
	}
	return s
}

func size8(s []byte) int { return 1 + len(clip(s, MaxString)) }

func done(b []byte, t Type) error {
	if len(b) != 0 {
		return &FrameError{Type: t, Field: "tail", Value: uint64(len(b)), Allowed: "no bytes after the last field"}
	}
	return nil
}
