package peerkey

import (
	"bytes"
	"errors"
	"testing"
)

var (
	theHello     = []byte("a Hello of s0-0 to s0-1, whole frame")
	theChallenge = []byte("a challenge of s0-1 with a nonce, whole frame")
)

// meet runs an undisturbed handshake.
func meet(t testing.TB, dialler Key, accepted ...Key) (a, b *Records) {
	t.Helper()
	p, proof, err := Prove(dialler, theHello, theChallenge)
	if err != nil {
		t.Fatal(err)
	}
	answer, b, err := Accept(accepted, theHello, theChallenge, proof)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = p.Finish(answer); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func passes(t testing.TB, from, to *Records, text string) {
	t.Helper()
	got, rest, err := to.Open(nil, from.Seal(nil, []byte(text)))
	if err != nil || string(got) != text || len(rest) != 0 {
		t.Fatalf("sealed %q, opened %q and %d bytes more, %v", text, got, len(rest), err)
	}
}

func TestBothProveTheKey(t *testing.T) {
	key := New()
	a, b := meet(t, key, key)
	for range 3 {
		passes(t, a, b, "Prepare")
		passes(t, b, a, "PrepareAck")
	}
}

// During a rotation a proof by any key of the file is accepted.
func TestKeysOverlap(t *testing.T) {
	before, now, next := New(), New(), New()
	for _, own := range []Key{before, now, next} {
		a, b := meet(t, own, now, next, before)
		passes(t, a, b, "x")
		passes(t, b, a, "y")
	}
	p, proof, err := Prove(before, theHello, theChallenge)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Accept([]Key{now, next}, theHello, theChallenge, proof); !errors.Is(err, ErrProof) {
		t.Errorf("a key that was retired: %v", err)
	}
	if _, err := p.Finish(make([]byte, ProofSize)); !errors.Is(err, ErrProof) {
		t.Errorf("an answer of zeros: %v", err)
	}
}

// A flipped bit anywhere in the exchange makes one of them reject: names, role, versions,
// addresses and the nonce are part of the proof.
func TestEveryBitIsProved(t *testing.T) {
	key := New()
	flip := func(b []byte, bit int) []byte {
		b = bytes.Clone(b)
		b[bit/8] ^= 1 << (bit % 8)
		return b
	}
	p, proof, err := Prove(key, theHello, theChallenge)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(theHello) {
		if _, _, err := Accept([]Key{key}, flip(theHello, bit), theChallenge, proof); !errors.Is(err, ErrProof) {
			t.Fatalf("bit %d of the Hello: %v", bit, err)
		}
	}
	for bit := range 8 * len(theChallenge) { // another nonce: a proof from another connection
		if _, _, err := Accept([]Key{key}, theHello, flip(theChallenge, bit), proof); !errors.Is(err, ErrProof) {
			t.Fatalf("bit %d of the challenge: %v", bit, err)
		}
	}
	for bit := range 8 * len(proof) {
		// The curve ignores the highest bit of a public key, the transcript does not.
		if _, _, err := Accept([]Key{key}, theHello, theChallenge, flip(proof, bit)); !errors.Is(err, ErrProof) {
			t.Fatalf("bit %d of the proof: %v", bit, err)
		}
	}
	answer, _, err := Accept([]Key{key}, theHello, theChallenge, proof)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(answer) {
		if _, err := p.Finish(flip(answer, bit)); !errors.Is(err, ErrProof) {
			t.Fatalf("bit %d of the answer: %v", bit, err)
		}
		if p, proof, err = Prove(key, theHello, theChallenge); err != nil {
			t.Fatal(err)
		}
		if answer, _, err = Accept([]Key{key}, theHello, theChallenge, proof); err != nil {
			t.Fatal(err)
		}
	}
}

// The dialler's own frames sent back prove nothing, nor does an answer from another
// connection.
func TestNothingIsReflected(t *testing.T) {
	key := New()
	p, proof, err := Prove(key, theHello, theChallenge)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Finish(proof); !errors.Is(err, ErrProof) {
		t.Errorf("the proof as its own answer: %v", err)
	}
	_, other, err := Prove(key, theHello, theChallenge)
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := Accept([]Key{key}, theHello, theChallenge, other)
	if err != nil {
		t.Fatal(err)
	}
	if p, _, err = Prove(key, theHello, theChallenge); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Finish(answer); !errors.Is(err, ErrProof) {
		t.Errorf("the answer to another proof: %v", err)
	}
	a, _ := meet(t, key, key)
	if _, _, err := a.Open(nil, a.Seal(nil, []byte("mine"))); !errors.Is(err, ErrRecord) {
		t.Errorf("a reflected record: %v", err)
	}
}

// A public key of low order would make a secret that anyone can compute.
func TestLowOrder(t *testing.T) {
	for _, proof := range [][]byte{make([]byte, ProofSize), append([]byte{1}, make([]byte, ProofSize-1)...), nil, make([]byte, ProofSize+1)} {
		if _, _, err := Accept([]Key{New()}, theHello, theChallenge, proof); !errors.Is(err, ErrProof) {
			t.Errorf("% x: %v", proof, err)
		}
	}
}

// Without the key no bytes get through.
func FuzzAccept(f *testing.F) {
	key := New()
	_, proof, err := Prove(New(), theHello, theChallenge)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(theHello, theChallenge, proof)
	f.Add([]byte{}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, hello, challenge, proof []byte) {
		if answer, r, err := Accept([]Key{key}, hello, challenge, proof); err == nil || answer != nil || r != nil {
			t.Fatalf("% x was taken for a proof", proof)
		}
		p, _, err := Prove(key, hello, challenge)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Finish(proof); err == nil {
			t.Fatalf("% x was taken for an answer", proof)
		}
	})
}

// The cost of a stranger's proof, next to a valid one.
func BenchmarkAccept(b *testing.B) {
	key := New()
	_, good, err := Prove(key, theHello, theChallenge)
	if err != nil {
		b.Fatal(err)
	}
	for name, proof := range map[string][]byte{"stranger": bytes.Repeat([]byte{7}, ProofSize), "node": good} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _, _ = Accept([]Key{key}, theHello, theChallenge, proof)
			}
		})
	}
}
