package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	for _, c := range Frames {
		frame := c.Encode(c.Example)
		if FrameType(frame) != c.Type || int(le.Uint32(frame)) != len(frame) {
			t.Errorf("%s: header % x", c.Type, frame[:8])
		}
		got, err := c.Decode(frame)
		if err != nil {
			t.Errorf("%s: %v", c.Type, err)
			continue
		}
		if !reflect.DeepEqual(got, c.Example) {
			t.Errorf("%s:\n got  %+v\n want %+v", c.Type, got, c.Example)
		}
		// A reused buffer does not leak its old content.
		dirty := bytes.Repeat([]byte{0xff}, 4096)[:0]
		if again := c.append(dirty, c.Example); !bytes.Equal(again, frame) {
			t.Errorf("%s: encoding depends on the buffer", c.Type)
		}
	}
}

// TestAnswersNameTheirRequest: what Answers tells of a frame by the name of a field is true
// of its bytes, and no frame to a client has the id of a request elsewhere.
func TestAnswersNameTheirRequest(t *testing.T) {
	answers := 0
	for _, c := range Frames {
		m := reflect.ValueOf(c.Example).Elem()
		id := m.FieldByName("ReqID")
		if !id.IsValid() {
			id = m.FieldByName("RequestID")
		}
		if want := id.IsValid() && c.From&FromNode != 0; c.Answers() != want || Row(c.Type).Answers() != want {
			t.Errorf("%s is an answer to a request: %v, want %v", c.Type, c.Answers(), want)
		}
		if !c.Answers() {
			continue
		}
		answers++
		if got := le.Uint64(c.Encode(c.Example)[HeaderSize:]); got != id.Uint() || got == 0 {
			t.Errorf("%s begins with %d, and the request is %d", c.Type, got, id.Uint())
		}
	}
	if answers < 20 {
		t.Errorf("%d of %d frames are answers", answers, len(Frames))
	}
	if Row(0xff).Answers() {
		t.Error("an unknown frame is an answer")
	}
}

// TestEveryCut cuts every frame at every byte, with and without an adjusted length: an
// error each time, never a panic, and never success for a frame whose tail is counted.
func TestEveryCut(t *testing.T) {
	for _, c := range Frames {
		frame := c.Encode(c.Example)
		for n := range frame {
			if _, err := c.Decode(frame[:n:n]); err == nil {
				t.Errorf("%s cut to %d of %d bytes was taken", c.Type, n, len(frame))
			}
			if n < HeaderSize {
				continue
			}
			cut := bytes.Clone(frame[:n])
			le.PutUint32(cut, uint32(n))
			_, err := c.Decode(cut)
			open := c.Type == TypeSubmit || c.Type == TypeGetReply || c.Type == TypePrepare || c.Type == TypeLogChunk || c.Type == TypeSnapshot || c.Type == TypeSinkChunk || c.Type == TypeFollowEntries || c.Type == TypeLinkEntries || c.Type == TypeQuery || c.Type == TypeQueryRows || c.Type == TypeQueryEnd ||
				c.Type == TypeFixSubmit || c.Type == TypeFixAck || c.Type == TypeFixResent || c.Type == TypePrepareExec
			if err == nil && !open {
				t.Errorf("%s of %d bytes with length %d was taken", c.Type, len(frame), n)
			}
			var fe *FrameError
			if err != nil && (!errors.As(err, &fe) || fe.Field == "" || fe.Allowed == "") {
				t.Errorf("%s: %v does not name the fault", c.Type, err)
			}
		}
	}
}

func TestSplit(t *testing.T) {
	two := AppendRequest(AppendRequest(nil, TypePing, &Request{ReqID: 1}), TypePong, &Request{ReqID: 2})
	frame, rest, err := Split(two)
	if err != nil || FrameType(frame) != TypePing || len(rest) != 16 {
		t.Fatalf("%x %x %v", frame, rest, err)
	}
	for n := range 16 {
		if f, r, err := Split(rest[:n]); f != nil || err != nil || len(r) != n {
			t.Errorf("%d bytes: frame %x rest %d err %v", n, f, len(r), err)
		}
	}
	if Need(two) != 16 || Need(two[:3]) != 0 {
		t.Error("Need")
	}
	for length, want := range map[uint32]string{
		0:            "frame: length is 0, allowed: 8..1048576 bytes",
		7:            "frame: length is 7, allowed: 8..1048576 bytes",
		MaxFrame + 1: "frame: length is 1048577, allowed: 8..1048576 bytes",
		1<<32 - 1:    "frame: length is 4294967295, allowed: 8..1048576 bytes",
	} {
		b := make([]byte, 8)
		le.PutUint32(b, length)
		if _, _, err := Split(b); err == nil || err.Error() != want {
			t.Errorf("length %d: %v", length, err)
		}
	}
}

// TestDecodeRefuses is the list of hostile frames with their exact errors.
func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		typ    Type
		change func(f []byte) []byte
		want   string
	}{
		{TypePing, func(f []byte) []byte { return f[:4] }, "frame Ping: length is 4, allowed: at least 8 bytes"},
		{TypePing, func(f []byte) []byte { f[4] = 0xee; return f }, "frame Ping: type is 238, allowed: Ping"},
		{TypePing, func(f []byte) []byte { f[0]++; return f }, "frame Ping: length is 17, allowed: the frame's own size, at most 1048576"},
		{TypePing, func(f []byte) []byte { return grow(f, 1) }, "frame Ping: length is 17, allowed: exactly 16 bytes"},
		{TypeHello, func(f []byte) []byte { f[8] = 'X'; return f }, `frame Hello: magic is 827475800, allowed: the bytes "OGR1"`},
		{TypeHello, func(f []byte) []byte { f[12] = 9; return f }, "frame Hello: minVersion is 9, allowed: at most maxVersion"},
		{TypeHello, func(f []byte) []byte { f[16] = 0; return f }, "frame Hello: role is 0, allowed: 1 client, 2 peer, 3 admin, 4 liveness, 5 bulk"},
		{TypeHello, func(f []byte) []byte { f[28] = 255; return f }, "frame Hello: gridLen is 255, allowed: no more than the bytes that follow"},
		{TypeHello, func(f []byte) []byte { return grow(f, 3) }, "frame Hello: tail is 3, allowed: no bytes after the last field"},
		{TypeGoaway, func(f []byte) []byte { f[10] = 200; return f }, "frame Goaway: textLen is 200, allowed: the bytes that follow, at most 1024"},
		{TypeAuthenticate, func(f []byte) []byte { f[16] = 200; return f }, "frame Authenticate: tokenLen is 200, allowed: the bytes that follow, 1..16384"},
		{TypeAuthenticate, func(f []byte) []byte { f = shrink(f, 20); f[16] = 0; return f }, "frame Authenticate: tokenLen is 0, allowed: the bytes that follow, 1..16384"},
		{TypeAuthenticate, func(f []byte) []byte { f = grow(f, MaxToken); le.PutUint32(f[16:], uint32(len(f)-20)); return f }, "frame Authenticate: tokenLen is 16416, allowed: the bytes that follow, 1..16384"},
		{TypeAuthenticated, func(f []byte) []byte { f[24] = 250; return f }, "frame Authenticated: userLen is 250, allowed: no more than the bytes that follow"},
		{TypeAuthenticated, func(f []byte) []byte { return grow(f, 2) }, "frame Authenticated: tail is 2, allowed: no bytes after the last field"},
		{TypeChallenge, func(f []byte) []byte { f[44] = 250; return f }, "frame Challenge: memberLen is 250, allowed: no more than the bytes that follow"},
		{TypeChallenge, func(f []byte) []byte { return grow(f, 2) }, "frame Challenge: tail is 2, allowed: no bytes after the last field"},
		{TypeProof, func(f []byte) []byte { return grow(f, 1) }, "frame Proof: length is 57, allowed: exactly 56 bytes"},
		{TypeTable, func(f []byte) []byte { f[16] = 0; return f }, "frame Table: partitions is 0, allowed: 1..1024"},
		{TypeTable, func(f []byte) []byte { le.PutUint16(f[16:], MaxPartitions+1); return f }, "frame Table: partitions is 1025, allowed: 1..1024"},
		{TypeTable, func(f []byte) []byte { f[18], f[19] = 0xff, 0xff; return f }, "frame Table: nParts is 65535, allowed: no more than fit the frame"},
		{TypeTable, func(f []byte) []byte { f[tableFixed] = 8; return f }, "frame Table: partition is 8, allowed: below partitions"},
		{TypeTable, func(f []byte) []byte { f[tableFixed+14] = 2; return f }, "frame Table: primary is 2, allowed: an index below nMembers, or 255"},
		{TypeTable, func(f []byte) []byte { f[tableFixed+15] = 9; return f }, "frame Table: nMembers is 9, allowed: 0..8"},
		{TypeTable, func(f []byte) []byte { f[tableFixed+16] = 3; return f }, "frame Table: nInSync is 3, allowed: at most nMembers"},
		{TypeOpenSession, func(f []byte) []byte { clear(f[16:32]); return f }, "frame OpenSession: id is 0, allowed: 128 random bits, not all 0"},
		{TypeOpenSession, func(f []byte) []byte { clear(f[40:]); return f }, "frame OpenSession: attempt is 0, allowed: 1 or more, one more for every connection that opens the id"},
		{TypeSubmit, func(f []byte) []byte { f[24] = 0; return f }, "frame Submit: clientSeq is 0, allowed: 1 or more"},
		{TypeLinkOpen, func(f []byte) []byte { f[24] = 250; return f }, "frame LinkOpen: sourceLen is 250, allowed: no more than the bytes that follow"},
		{TypeLinkEntries, func(f []byte) []byte { return grow(f, 4) }, "frame LinkEntries: entries is 84, allowed: a multiple of 8 bytes"},
		{TypeLinkEntries, func(f []byte) []byte { return shrink(f, LinkEntriesFixed) }, "frame LinkEntries: entries is 0, allowed: 1..65536 bytes"},
		{TypeLinkEntries, func(f []byte) []byte { return grow(f, MaxLinkEntries) }, "frame LinkEntries: entries is 65616, allowed: 1..65536 bytes"},
		{TypeLinkOpen, func(f []byte) []byte { f[19] = 0x80; return f }, "frame LinkOpen: term is 2147483649, allowed: at most 2147483647"},
		{TypeLinkState, func(f []byte) []byte { f[32] = 6; return f }, "frame LinkState: commitSeq is 6, allowed: at most seq"},
		{TypeLinkState, func(f []byte) []byte { return grow(f, 1) }, "frame LinkState: length is 73, allowed: exactly 72 bytes"},
		{TypeFixOpen, func(f []byte) []byte { clear(f[24:40]); return f }, "frame FixOpen: id is 0, allowed: the hash of the session's names, not all 0"},
		{TypeFixOpen, func(f []byte) []byte { f[55] = 0x40; return f }, "frame FixOpen: seq is 4611686018427387905, allowed: below 2^62"},
		{TypeFixOpen, func(f []byte) []byte { f[58] = 3; return f }, "frame FixOpen: graceMs is 0, allowed: 1..60000 with mode 1 or 2, 0 with mode 0"},
		{TypeFixOpen, func(f []byte) []byte { f[58] = 1; return f }, "frame FixOpen: graceMs is 0, allowed: 1..60000 with mode 1 or 2, 0 with mode 0"},
		{TypeFixOpen, func(f []byte) []byte { f[58], f[60], f[61] = 2, 0x61, 0xea; return f }, "frame FixOpen: graceMs is 60001, allowed: 1..60000 with mode 1 or 2, 0 with mode 0"},
		{TypeFixOpened, func(f []byte) []byte { return grow(f, 1) }, "frame FixOpened: length is 73, allowed: exactly 72 bytes"},
		{TypeFixSubmit, func(f []byte) []byte { f[8] = 1; return f }, "frame FixSubmit: seq is 1, allowed: above prev, and below 2^62"},
		{TypeFixSubmit, func(f []byte) []byte { f[15] = 0x40; return f }, "frame FixSubmit: seq is 4611686018427387913, allowed: above prev, and below 2^62"},
		{TypeFixSubmit, func(f []byte) []byte { return grow(f, MaxPayload) }, "frame FixSubmit: payload is 65482, allowed: at most 65472 bytes"},
		{TypeFixAck, func(f []byte) []byte { return grow(f, MaxFixBody) }, "frame FixAck: body is 4099, allowed: at most 4096 bytes"},
		{TypeFixStep, func(f []byte) []byte { f[24] = 0; return f }, "frame FixStep: nRecords is 0, allowed: 1..1024, in a frame of at most 61440 bytes"},
		{TypeFixStep, func(f []byte) []byte { f[25] = 5; return f }, "frame FixStep: nRecords is 1282, allowed: 1..1024, in a frame of at most 61440 bytes"},
		{TypeFixStep, func(f []byte) []byte { return grow(f, MaxFixStep) }, "frame FixStep: nRecords is 2, allowed: 1..1024, in a frame of at most 61440 bytes"},
		{TypeFixStep, func(f []byte) []byte { f[24] = 3; return f }, "frame FixStep: records is 0, allowed: 32 bytes and the body"},
		{TypeFixStep, func(f []byte) []byte { f[fixStepFixed+32+14] = 9; return f }, "frame FixStep: bodySize is 9, allowed: 0..4096, and no more than the bytes that follow"},
		{TypeFixStep, func(f []byte) []byte { f[fixStepFixed+12] = 1; return f }, "frame FixStep: op is 1, allowed: 2 step, 3 refusal, 7 leave, 8 sources of a drop copy"},
		{TypeFixStep, func(f []byte) []byte { f[44] = 8; return f }, "frame FixStep: bodySize is 0, allowed: 0..40960 for the sources of a drop copy, the one record of its frame, with outs 0"},
		{TypeFixStep, func(f []byte) []byte { f[fixStepFixed+13] = 0; return f }, "frame FixStep: outs is 0, allowed: 1..255 and no body for a step and a leave, 1 for a refusal"},
		{TypeFixStep, func(f []byte) []byte { f[fixStepFixed+32+12] = 2; return f }, "frame FixStep: outs is 1, allowed: 1..255 and no body for a step and a leave, 1 for a refusal"},
		{TypeFixStep, func(f []byte) []byte { f[fixStepFixed+16] = 0; return f }, "frame FixStep: in is 0, allowed: 1..2^62"},
		{TypeFixStep, func(f []byte) []byte { f[fixStepFixed+32] = 5; return f }, "frame FixStep: slot is 5, allowed: rising slots"},
		{TypeFixStep, func(f []byte) []byte { return grow(f, 8) }, "frame FixStep: tail is 8, allowed: no bytes after the last field"},
		{TypeFixStepped, func(f []byte) []byte { f[32] = 3; return f }, "frame FixStepped: nRecords is 3, allowed: 0..1024, and all of them in the frame"},
		{TypeFixResend, func(f []byte) []byte { f[32] = 0; return f }, "frame FixResend: first is 0, allowed: 1 to through, which is below 2^62"},
		{TypeFixResend, func(f []byte) []byte { f[40] = 1; return f }, "frame FixResend: first is 2, allowed: 1 to through, which is below 2^62"},
		{TypeFixResent, func(f []byte) []byte { return shrink(f, len(f)-8) }, "frame FixResent: entries is 80, allowed: numbers, each with an entry padded to 8 bytes"},
		{TypeFixResent, func(f []byte) []byte { clear(f[fixResentFixed+8 : fixResentFixed+12]); return f }, "frame FixResent: entries is 88, allowed: numbers, each with an entry padded to 8 bytes"},
		{TypeReject, func(f []byte) []byte { f[36] = 0; return f }, "frame Reject: textLen is 0, allowed: the bytes that follow, at most 1024"},
		{TypeNotPrimary, func(f []byte) []byte { f[32] = 250; return f }, "frame NotPrimary: addressLen is 250, allowed: no more than the bytes that follow"},
		{TypeGet, func(f []byte) []byte { f[24] = 4; return f }, "frame Get: by is 4, allowed: 1 id, 2 clOrdID, 3 of a FIX session"},
		{TypeGet, func(f []byte) []byte { f[24] = 3; return f }, "frame Get: keyLen is 5, allowed: 21..255 of a FIX session"},
		{TypeGet, func(f []byte) []byte { f[25] = 0; return f }, "frame Get: mode is 0, allowed: 1 confirmed, 2 leased, 3 backup"},
		{TypeGet, func(f []byte) []byte { f[26] = 6; return f }, "frame Get: keyLen is 6, allowed: the bytes that follow, at most 255"},
		{TypeGet, func(f []byte) []byte { f[24] = 1; return f }, "frame Get: keyLen is 5, allowed: 0 by id, 1..255 by clOrdID"},
		{TypeGetReply, func(f []byte) []byte { f[32] = 3; return f }, "frame GetReply: status is 3, allowed: 0 found, 1 not found, 2 freed"},
		{TypeGetReply, func(f []byte) []byte { f[32] = 2; return f }, "frame GetReply: freed is 80, allowed: 8 bytes"},
		{TypeSnapshotRequest, func(f []byte) []byte { clear(f[32:40]); return f }, "frame SnapshotRequest: base is 0, allowed: 1 or more: nothing is freed otherwise"},
		{TypeSnapshot, func(f []byte) []byte { clear(f[32:40]); return f }, "frame Snapshot: base is 0, allowed: 1 or more"},
		{TypeSnapshot, func(f []byte) []byte { f[52] = 3; return f }, "frame Snapshot: next is 3, allowed: more than from, at most slots"},
		{TypeSnapshot, func(f []byte) []byte { f[52] = 0; return f }, "frame Snapshot: next is 0, allowed: more than from, at most slots"},
		{TypeSnapshot, func(f []byte) []byte { f[58] = 5; return f }, "frame Snapshot: slots is 327682, allowed: 0..262144"},
		{TypeGetReply, func(f []byte) []byte { f[32] = 1; return f }, "frame GetReply: entry is 80, allowed: an entry when found, none otherwise"},
		{TypeFollow, func(f []byte) []byte { clear(f[36:40]); return f }, "frame Follow: window is 0, allowed: 1 or more bytes"},
		{TypeFollow, func(f []byte) []byte { f[40] = 2; return f }, "frame Follow: filter is 2, allowed: 0 none, 1 account"},
		{TypeFollow, func(f []byte) []byte { f[40] = 0; return f }, "frame Follow: valueLen is 3, allowed: 0 without a filter, 1..64 with one"},
		{TypeFollow, func(f []byte) []byte { f[16] = 1; return f }, "frame Follow: fromHash is 1234605616436508552, allowed: 0 where no entry is before fromSeq"},
		{TypeFollow, func(f []byte) []byte { return grow(f, 1) }, "frame Follow: tail is 1, allowed: no bytes after the last field"},
		{TypeQuery, func(f []byte) []byte { clear(f[32:36]); return f }, "frame Query: timeout is 0, allowed: 1 or more milliseconds"},
		{TypeQuery, func(f []byte) []byte { clear(f[36:40]); return f }, "frame Query: maxBytes is 0, allowed: 1 or more bytes"},
		{TypeQuery, func(f []byte) []byte { f[40] = 2; return f }, "frame Query: explain is 2, allowed: 0 no, 1 yes"},
		{TypeQuery, func(f []byte) []byte { clear(f[16:24]); return f }, "frame Query: minHash is 1234605616436508552, allowed: 0 without minSeq"},
		{TypeQuery, func(f []byte) []byte { return shrink(f, QueryFixed) }, "frame Query: question is 0, allowed: 1..65536 bytes"},
		{TypeQueryRows, func(f []byte) []byte { clear(f[16:20]); return f }, "frame QueryRows: rows is 0, allowed: 1 to the number of bytes that follow"},
		{TypeFollowEntries, func(f []byte) []byte { clear(f[16:24]); return f }, "frame FollowEntries: from is 0, allowed: 1 or more"},
		{TypeFollowEntries, func(f []byte) []byte { f[24] = 6; return f }, "frame FollowEntries: through is 6, allowed: from-1 or more, at most commitSeq"},
		{TypeFollowEntries, func(f []byte) []byte { f[24] = 4; return f }, "frame FollowEntries: entries is 80, allowed: none where none was examined"},
		{TypeFollowEntries, func(f []byte) []byte { return shrink(f, FollowEntriesFixed+9) }, "frame FollowEntries: entries is 9, allowed: a multiple of 8 bytes"},
		{TypeFollowEnd, func(f []byte) []byte { f[34] = 0; return f }, "frame FollowEnd: textLen is 0, allowed: the bytes that follow, at most 1024"},
		{TypeAdvance, func(f []byte) []byte { clear(f[16:24]); return f }, "frame Advance: seq is 0, allowed: 1 or more"},
		{TypePrepare, func(f []byte) []byte { return shrink(f, PrepareFixed) }, "frame Prepare: entries is 0, allowed: one entry or more"},
		{TypePrepare, func(f []byte) []byte { return shrink(f, PrepareFixed+9) }, "frame Prepare: entries is 9, allowed: a multiple of 8 bytes"},
		{TypeNewConfig, func(f []byte) []byte { f[40] = 5; return f }, "frame NewConfig: nMembers is 5, allowed: 1..4"},
		{TypeNewConfig, func(f []byte) []byte { f[40] = 3; return f }, "frame NewConfig: addressLen is 0, allowed: one length byte"},
		{TypeReadLog, func(f []byte) []byte { clear(f[16:24]); return f }, "frame ReadLog: fromSeq is 0, allowed: 1 or more"},
		{TypeSinkFiles, func(f []byte) []byte { f[20] = 3; return f }, "frame SinkFiles: nFiles is 3, allowed: 0..1024, at most total"},
		{TypeSinkFiles, func(f []byte) []byte { f[16], f[17], f[20], f[21] = 0xff, 0xff, 1, 4; return f }, "frame SinkFiles: nFiles is 1025, allowed: 0..1024, at most total"},
		{TypeSinkFiles, func(f []byte) []byte { f[16], f[20] = 9, 3; return f }, "frame SinkFiles: files is 0, allowed: 9 bytes and the name"},
		{TypeSinkFiles, func(f []byte) []byte { return grow(f, 1) }, "frame SinkFiles: tail is 1, allowed: no bytes after the last field"},
		{TypeReadSink, func(f []byte) []byte { f[23] = 0x80; return f }, "frame ReadSink: offset is 9223372036854841344, allowed: 0..9223372036854775807"},
		{TypeReadSink, func(f []byte) []byte { f[28] = 200; return f }, "frame ReadSink: nameLen is 200, allowed: no more than the bytes that follow"},
		{TypeSinkChunk, func(f []byte) []byte { return grow(f, MaxSinkBytes) }, "frame SinkChunk: bytes is 65541, allowed: at most 65536"},
		{TypeLogChunk, func(f []byte) []byte { return grow(f, 1) }, "frame LogChunk: entries is 81, allowed: a multiple of 8 bytes"},
	} {
		row := Row(c.typ)
		frame := c.change(row.Encode(row.Example))
		_, err := row.Decode(frame)
		t.Log(err)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got  %v\n want %s", c.typ, err, c.want)
		}
	}
}

func grow(f []byte, n int) []byte {
	f = append(f, make([]byte, n)...)
	le.PutUint32(f, uint32(len(f)))
	return f
}

func shrink(f []byte, n int) []byte {
	f = f[:n:n]
	le.PutUint32(f, uint32(n))
	return f
}

// TestCodecsDoNotAllocate covers the frames an order and a read meet.
func TestCodecsDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	submit, ack, prepare, peer := *Row(TypeSubmit).Example.(*Submit), *Row(TypeAck).Example.(*Ack), *Row(TypePrepare).Example.(*Prepare), *Row(TypePrepareAck).Example.(*PrepareAck)
	get, reply, reject := *Row(TypeGet).Example.(*Get), *Row(TypeGetReply).Example.(*GetReply), *Row(TypeReject).Example.(*Reject)
	if n := testing.AllocsPerRun(100, func() {
		var err error
		check := func(e error) {
			if e != nil {
				err = e
			}
		}
		check(DecodeSubmit(AppendSubmit(buf, 1, &submit), &submit))
		check(DecodeAck(AppendAck(buf, 1, &ack), &ack))
		check(DecodePrepare(AppendPrepare(buf, 1, &prepare), &prepare))
		check(DecodePrepareAck(AppendPrepareAck(buf, 1, &peer), &peer))
		check(DecodeGet(AppendGet(buf, 1, &get), &get))
		check(DecodeGetReply(AppendGetReply(buf, 1, &reply), &reply))
		check(DecodeReject(AppendReject(buf, 1, &reject), &reject))
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestNegotiate(t *testing.T) {
	for _, c := range []struct{ lo, hi, want uint16 }{{Version, Version, Version}, {2, Version, Version}, {1, 9, Version}, {2, 3, 0}, {1, 1, 0}, {MinVersion - 1, MinVersion - 1, 0}, {Version, Version + 1, Version}, {Version + 1, 9, 0}, {0, 0, 0}} {
		if got := Negotiate(&Hello{MinVersion: c.lo, MaxVersion: c.hi}); got != c.want {
			t.Errorf("%d..%d: %d, want %d", c.lo, c.hi, got, c.want)
		}
	}
}

func TestLongStringsAreCut(t *testing.T) {
	long := []byte(strings.Repeat("x", 5000))
	var h Hello
	if err := DecodeHello(AppendHello(nil, &Hello{Role: RoleClient, Grid: long, Member: long, Address: long}), &h); err != nil || len(h.Grid) != MaxString {
		t.Errorf("%d %v", len(h.Grid), err)
	}
	var r Reject
	if err := DecodeReject(AppendReject(nil, 1, &Reject{Text: long}), &r); err != nil || len(r.Text) != MaxText {
		t.Errorf("%d %v", len(r.Text), err)
	}
}

func TestIDs(t *testing.T) {
	for _, s := range []string{"p0", "p1", "p1023"} {
		p, err := ParsePartitionID(s)
		if err != nil || p.String() != s {
			t.Errorf("%s: %s %v", s, p, err)
		}
		id, err := ParseOrderID(s + "/18446744073709551615")
		if err != nil || id.String() != s+"/18446744073709551615" || id.Partition != p {
			t.Errorf("%s: %s %v", s, id, err)
		}
	}
	for s, want := range map[string]string{
		"":        `partition is "", allowed: p<number>, for example p1`,
		"p":       `partition is "p", allowed: p<number>, for example p1`,
		"1":       `partition is "1", allowed: p<number>, for example p1`,
		"s0p1":    `partition is "s0p1", allowed: p<number>, for example p1`,
		"p-1":     `partition is "p-1", allowed: p<number>, for example p1`,
		"p01":     `partition is "p01", allowed: p<number>, for example p1`,
		"p1/":     `partition is "p1/", allowed: p<number>, for example p1`,
		"p999999": `partition is "p999999", allowed: p<number>, for example p1`,
		"p1024":   "partition is 1024, allowed: 0..1023",
	} {
		if _, err := ParsePartitionID(s); err == nil || err.Error() != want {
			t.Errorf("%q: %v", s, err)
		}
	}
	for s, want := range map[string]string{
		"p1":      `order id is "p1", allowed: <partition>/<seq>, for example p1/17`,
		"p1/0":    `order id: seq is "0", allowed: 1..18446744073709551615`,
		"p1/017":  `order id: seq is "017", allowed: 1..18446744073709551615`,
		"p1/-1":   `order id: seq is "-1", allowed: 1..18446744073709551615`,
		"p1/":     `order id: seq is "", allowed: 1..18446744073709551615`,
		"p9999/1": "order id: partition is 9999, allowed: 0..1023",
	} {
		if _, err := ParseOrderID(s); err == nil || err.Error() != want {
			t.Errorf("%q: %v", s, err)
		}
	}
	pod, boot, err := ParseMemberID(FormatMemberID("g-s0-0", 0xa1))
	if err != nil || pod != "g-s0-0" || boot != 0xa1 {
		t.Errorf("%s %x %v", pod, boot, err)
	}
	for _, s := range []string{"", "pod", "pod/", "/00000000000000a1", "pod/a1", "pod/00000000000000A1", "pod/0000000000000000", "pod/+0000000000000a1"} {
		if _, _, err := ParseMemberID(s); err == nil || !strings.Contains(err.Error(), "16 lower-case hex digits") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// FuzzDecode feeds every decoder any bytes: no panic, no slice outside the frame, and an
// accepted message survives encoding and decoding.
func FuzzDecode(f *testing.F) {
	for _, c := range Frames {
		f.Add(c.Encode(c.Example))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for buf := data; ; {
			frame, rest, err := Split(buf)
			if err != nil || frame == nil {
				return
			}
			if len(frame) < HeaderSize || len(rest) >= len(buf) {
				t.Fatalf("Split: %d and %d of %d", len(frame), len(rest), len(buf))
			}
			buf = rest
			c := Row(FrameType(frame))
			if c.Decode == nil {
				continue
			}
			m, err := c.Decode(frame)
			if err != nil {
				continue
			}
			again := c.Encode(m)
			if len(again) != len(frame) {
				t.Fatalf("%s of %d bytes becomes %d", c.Type, len(frame), len(again))
			}
			back, err := c.Decode(again)
			if err != nil || !reflect.DeepEqual(back, m) {
				t.Fatalf("%s: %+v becomes %+v: %v", c.Type, m, back, err)
			}
		}
	})
}
