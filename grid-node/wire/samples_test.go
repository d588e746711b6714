package wire

// codec ties a frame type to its decoder and encoder, for tests over all types.
// decode returns the struct it filled; append makes a frame of such a struct.
type codec struct {
	typ    Type
	decode func(frame []byte) (any, error)
	append func(dst []byte, m any) []byte
}

func codecOf[T any](t Type, decode func([]byte, *T) error, encode func([]byte, *T) []byte) codec {
	return codec{
		typ: t,
		decode: func(frame []byte) (any, error) {
			m := new(T)
			return m, decode(frame, m)
		},
		append: func(dst []byte, m any) []byte { return encode(dst, m.(*T)) },
	}
}

func (c *codec) encode(m any) []byte { return c.append(nil, m) }

// on binds an encoder to a partition.
func on[T any](encode func([]byte, PartitionID, *T) []byte) func([]byte, *T) []byte {
	return func(dst []byte, m *T) []byte { return encode(dst, samplePartition, m) }
}

func request(t Type) codec {
	return codecOf(t, func(f []byte, m *Request) error { return DecodeRequest(f, t, m) },
		func(dst []byte, m *Request) []byte { return AppendRequest(dst, t, m) })
}

func requestOn(t Type) codec {
	return codecOf(t, func(f []byte, m *Request) error { return DecodeRequest(f, t, m) },
		func(dst []byte, m *Request) []byte { return AppendRequestOn(dst, t, samplePartition, m) })
}

func proof(t Type) codec {
	return codecOf(t, func(f []byte, m *Proof) error { return DecodeProof(f, t, m) },
		func(dst []byte, m *Proof) []byte { return AppendProof(dst, t, m) })
}

func peerAck(t Type) codec {
	return codecOf(t, func(f []byte, m *PeerAck) error { return DecodePeerAck(f, t, m) },
		func(dst []byte, m *PeerAck) []byte { return AppendPeerAck(dst, samplePartition, t, m) })
}

const samplePartition = PartitionID(0x0021) // s2p1

var codecs = []codec{
	codecOf(TypeHello, DecodeHello, AppendHello),
	codecOf(TypeWelcome, DecodeWelcome, AppendWelcome),
	codecOf(TypeGoaway, DecodeGoaway, AppendGoaway),
	codecOf(TypeAuthenticate, DecodeAuthenticate, AppendAuthenticate),
	codecOf(TypeAuthenticated, DecodeAuthenticated, AppendAuthenticated),
	codecOf(TypeChallenge, DecodeChallenge, AppendChallenge),
	proof(TypeProof),
	proof(TypeProofAnswer),
	request(TypeTableRequest),
	codecOf(TypeTable, DecodeTable, AppendTable),
	codecOf(TypeOpenSession, DecodeOpenSession, on(AppendOpenSession)),
	codecOf(TypeSessionOpened, DecodeSessionOpened, on(AppendSessionOpened)),
	codecOf(TypeSubmit, DecodeSubmit, on(AppendSubmit)),
	codecOf(TypeAck, DecodeAck, on(AppendAck)),
	codecOf(TypeReject, DecodeReject, on(AppendReject)),
	codecOf(TypeNotPrimary, DecodeNotPrimary, on(AppendNotPrimary)),
	codecOf(TypeGet, DecodeGet, on(AppendGet)),
	codecOf(TypeGetReply, DecodeGetReply, on(AppendGetReply)),
	codecOf(TypePrepare, DecodePrepare, on(AppendPrepare)),
	peerAck(TypePrepareAck),
	codecOf(TypeNack, DecodeNack, on(AppendNack)),
	codecOf(TypeBeacon, DecodeBeacon, on(AppendBeacon)),
	peerAck(TypeBeaconAck),
	codecOf(TypeJoin, DecodeJoin, on(AppendJoin)),
	codecOf(TypeJoinReply, DecodeJoinReply, on(AppendJoinReply)),
	codecOf(TypeSnapshotRequest, DecodeSnapshotRequest, on(AppendSnapshotRequest)),
	codecOf(TypeSnapshot, DecodeSnapshot, on(AppendSnapshot)),
	codecOf(TypeNewConfig, DecodeNewConfig, on(AppendNewConfig)),
	codecOf(TypeReadLog, DecodeReadLog, on(AppendReadLog)),
	codecOf(TypeLogChunk, DecodeLogChunk, on(AppendLogChunk)),
	request(TypePing),
	request(TypePong),
	requestOn(TypeListSinks),
	codecOf(TypeSinkFiles, DecodeSinkFiles, on(AppendSinkFiles)),
	codecOf(TypeReadSink, DecodeReadSink, on(AppendReadSink)),
	codecOf(TypeSinkChunk, DecodeSinkChunk, on(AppendSinkChunk)),
}

func codecFor(t Type) *codec {
	for i := range codecs {
		if codecs[i].typ == t {
			return &codecs[i]
		}
	}
	return nil
}

// samples has one message of every type; docs/protocol.md shows their bytes.
func samples() map[Type]any {
	head := PeerHead{Epoch: 3, From: 0xa1, To: 0xb2}
	noop := make([]byte, 80) // an entry of kind noop
	noop[0], noop[4], noop[8], noop[24] = 80, 1, 5, 3
	member := TableMember{Address: []byte("10.0.0.1:7400"), Member: []byte("g-s0-0/00000000000000a1")}
	other := TableMember{Address: []byte("10.0.0.2:7400"), Member: []byte("g-s0-1/00000000000000b2")}
	return map[Type]any{
		TypeHello:           &Hello{MinVersion: 2, MaxVersion: 3, Role: RolePeer, BootID: 0xa1, Grid: []byte("g"), Member: member.Member, Address: member.Address},
		TypeWelcome:         &Welcome{Version: 2, MaxFrame: MaxFrame, Window: 512, Grid: []byte("g"), Member: member.Member},
		TypeGoaway:          &Goaway{Code: GoawayGrid, Text: []byte("this is grid g")},
		TypeAuthenticate:    &Authenticate{ReqID: 8, Token: []byte("eyJhbGciOi.eyJhdWQiOl.c2lnbmF0dX")},
		TypeChallenge:       &Challenge{Version: 3, Nonce: [NonceSize]byte{1, 2, 3}, Member: member.Member, Address: member.Address},
		TypeProof:           &Proof{Bytes: [ProofSize]byte{4, 5, 6}},
		TypeProofAnswer:     &Proof{Bytes: [ProofSize]byte{7, 8, 9}},
		TypeAuthenticated:   &Authenticated{ReqID: 8, Permissions: MaySubmit | MayRead, ForS: 300, User: []byte("system:serviceaccount:trading:gateway")},
		TypeTableRequest:    &Request{ReqID: 9},
		TypeTable:           &Table{ReqID: 9, NShards: 2, Seeds: [][]byte{[]byte("g-s1:7400")}, Parts: []TablePart{{Partition: 1, Epoch: 3, Lineage: 1, Primary: 0, NInSync: 2, Members: []TableMember{member, other}}}},
		TypeOpenSession:     &OpenSession{ReqID: 10, IDHi: 0x0123456789abcdef, IDLo: 0xfedcba9876543210, Epoch: 3, Attempt: 2},
		TypeSessionOpened:   &SessionOpened{ReqID: 10, Slot: 4, Generation: 1, Window: 512, LastClientSeq: 0, Epoch: 3},
		TypeSubmit:          &Submit{Epoch: 3, Slot: 4, Generation: 1, ClientSeq: 1, Payload: []byte("8=FIX.4.4\x01")},
		TypeAck:             &Ack{ClientSeq: 1, Seq: 17, Epoch: 3, Slot: 4, Copies: 2, Flags: AckDup},
		TypeReject:          &Reject{RequestID: 2, Slot: 4, Code: CodeBadFIX, ForType: TypeSubmit, Tag: 38, Text: []byte("tag 38 (OrderQty)")},
		TypeNotPrimary:      &NotPrimary{RequestID: 2, Epoch: 4, Slot: 4, ForType: TypeSubmit, Address: other.Address, Member: other.Member},
		TypeGet:             &Get{ReqID: 11, By: ByClOrdID, Mode: ModeConfirmed, Key: []byte("ORD-1")},
		TypeGetReply:        &GetReply{ReqID: 11, Epoch: 3, CommitSeq: 17, Status: GetFound, Entry: noop},
		TypePrepare:         &Prepare{PeerHead: head, CommitSeq: 4, Round: 100, SentNs: 1000000, Flags: FlagLearner, Entries: noop},
		TypePrepareAck:      &PeerAck{PeerHead: head, StoredSeq: 5, Hash: 0x1122334455667788, Round: 100, EchoNs: 1000000},
		TypeNack:            &Nack{PeerHead: head, Expected: 4},
		TypeBeacon:          &Beacon{PeerHead: head, CommitSeq: 5, Round: 101, SentNs: 2000000, Flags: FlagLeased | FlagWantAck},
		TypeBeaconAck:       &PeerAck{PeerHead: head, StoredSeq: 5, Hash: 0x1122334455667788, Round: 101, EchoNs: 2000000},
		TypeJoin:            &Join{PeerHead: head, LastSeq: 0, LastHash: 0, Member: other.Member, Address: other.Address},
		TypeSnapshotRequest: &SnapshotRequest{PeerHead: head, Base: 1000},
		TypeSnapshot:        &Snapshot{PeerHead: head, Base: 1000, Hash: 0x1122334455667788, From: 0, Next: 1, Slots: 2, State: []byte("state")},
		TypeJoinReply:       &JoinReply{PeerHead: head, FromSeq: 1, Code: JoinBusy, Text: []byte("later")},
		TypeNewConfig:       &NewConfig{PeerHead: head, Lineage: 1, ChangeID: []byte("c-1"), Version: []byte("4711"), N: 2, Members: [MaxMembers]TableMember{member, other}, Admission: 2, AdmissionRevision: 7},
		TypeReadLog:         &ReadLog{ReqID: 12, FromSeq: 1, MaxBytes: 65536},
		TypeLogChunk:        &LogChunk{ReqID: 12, Epoch: 3, CommitSeq: 5, LastSeq: 5, LastHash: 0x1122334455667788, FirstSeq: 5, Entries: noop},
		TypePing:            &Request{ReqID: 13},
		TypePong:            &Request{ReqID: 13},
		TypeListSinks:       &Request{ReqID: 14},
		TypeSinkFiles:       &SinkFiles{ReqID: 14, Total: 2, Files: []SinkFile{{Size: 4096, SetAside: true, Name: []byte("g-s2p1.log.20261121T064229.852000000Z")}, {Size: 300, Name: []byte("g-s2p1.log")}}},
		TypeReadSink:        &ReadSink{ReqID: 15, Offset: 65536, MaxBytes: 65536, Name: []byte("g-s2p1.log")},
		TypeSinkChunk:       &SinkChunk{ReqID: 15, Offset: 65536, Size: 65540, File: 77, Bytes: []byte("17\t3\t")},
	}
}
