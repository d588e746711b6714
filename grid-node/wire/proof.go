package wire

// Mutual authentication of two nodes.
const (
	TypeChallenge   Type = 0x08
	TypeProof       Type = 0x09
	TypeProofAnswer Type = 0x0a
)

var proofFrames = []Frame{
	{Type: TypeChallenge, Name: "Challenge", From: FromEither, codec: codecOf(DecodeChallenge, AppendChallenge),
		Example: &Challenge{Version: Version, Nonce: [NonceSize]byte{1, 2, 3}, Member: exampleMember.Member, Address: exampleMember.Address}},
	{Type: TypeProof, Name: "Proof", From: FromEither, codec: codecFor(TypeProof, DecodeProof, AppendProof),
		Example: &Proof{Bytes: [ProofSize]byte{4, 5, 6}}},
	{Type: TypeProofAnswer, Name: "ProofAnswer", From: FromEither, codec: codecFor(TypeProofAnswer, DecodeProof, AppendProof),
		Example: &Proof{Bytes: [ProofSize]byte{7, 8, 9}}},
}

// ProofSize is the size of a proof of the grid's peer key and of the answer to it,
// NonceSize that of the nonce that makes each unique, in bytes. They are
// grid-node/peerkey's.
const (
	NonceSize = 32
	ProofSize = 48
)

// Challenge answers the Hello of a node: it must prove that it belongs to the grid.
type Challenge struct {
	Version uint16 // spoken from here on
	Nonce   [NonceSize]byte
	Member  []byte // "<pod>/<bootID>" of the answering node
	Address []byte // "ip:port" that it is reached at
}

const challengeFixed = HeaderSize + 4 + NonceSize

// AppendChallenge appends a Challenge frame.
func AppendChallenge(dst []byte, m *Challenge) []byte {
	dst, f := begin(dst, TypeChallenge, 0, 0, challengeFixed+size8(m.Member)+size8(m.Address))
	le.PutUint16(f[8:], m.Version)
	f[10], f[11] = 0, 0
	copy(f[12:], m.Nonce[:])
	putString8(putString8(f[challengeFixed:], m.Member), m.Address)
	return dst
}

// DecodeChallenge decodes a Challenge frame.
func DecodeChallenge(f []byte, m *Challenge) (err error) {
	if err = open(f, TypeChallenge, challengeFixed, false); err != nil {
		return err
	}
	m.Version = le.Uint16(f[8:])
	copy(m.Nonce[:], f[12:])
	b := f[challengeFixed:]
	if m.Member, b, err = cutString8(b, TypeChallenge, "member"); err != nil {
		return err
	}
	if m.Address, b, err = cutString8(b, TypeChallenge, "address"); err != nil {
		return err
	}
	return done(b, TypeChallenge)
}

// Proof proves that a node holds the grid's peer key: from the dialler, for a Challenge,
// or the answer of the accepting node.
type Proof struct{ Bytes [ProofSize]byte }

// AppendProof appends a Proof or ProofAnswer frame.
func AppendProof(dst []byte, t Type, m *Proof) []byte {
	dst, f := begin(dst, t, 0, 0, HeaderSize+ProofSize)
	copy(f[HeaderSize:], m.Bytes[:])
	return dst
}

// DecodeProof decodes a Proof or ProofAnswer frame.
func DecodeProof(f []byte, t Type, m *Proof) error {
	if err := open(f, t, HeaderSize+ProofSize, true); err != nil {
		return err
	}
	copy(m.Bytes[:], f[HeaderSize:])
	return nil
}
