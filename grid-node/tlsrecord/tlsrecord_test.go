package tlsrecord

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
)

// suites are all suites of TLS 1.3 in crypto/tls.
var suites = []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256}

// ends are the two layers of a connection with made-up secrets.
func ends(t testing.TB, id uint16) (client, server *Layer) {
	t.Helper()
	s, err := suiteOf(id)
	if err != nil {
		t.Fatal(err)
	}
	size := s.hash().Size()
	found := secrets{client: bytes.Repeat([]byte{1}, size), server: bytes.Repeat([]byte{2}, size)}
	if client, err = newLayer(id, &found, true); err != nil {
		t.Fatal(err)
	}
	if server, err = newLayer(id, &found, false); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The example of RFC 8448, section 3: its secrets, keys and the first record of data.
func TestTraceOfRFC8448(t *testing.T) {
	found := secrets{
		client: unhex(t, "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"),
		server: unhex(t, "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"),
	}
	s, err := suiteOf(tls.TLS_AES_128_GCM_SHA256)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ secret, key, iv string }{
		{string(found.client), "17422dda596ed5d9acd890e3c63f5051", "5b78923dee08579033e523d9"},
		{string(found.server), "9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984"},
	} {
		if key, iv := s.expand([]byte(c.secret), "key", 16), s.expand([]byte(c.secret), "iv", ivLen); hex.EncodeToString(key) != c.key || hex.EncodeToString(iv) != c.iv {
			t.Errorf("key %x, iv %x, want %s, %s", key, iv, c.key, c.iv)
		}
	}
	var data []byte
	for i := range 50 {
		data = append(data, byte(i))
	}
	want := unhex(t, "17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66 bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4")
	client, err := newLayer(tls.TLS_AES_128_GCM_SHA256, &found, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := client.Seal(nil, data); !bytes.Equal(got, want) {
		t.Errorf("sealed % x\nwant   % x", got, want)
	}
}

// Everything that one end seals the other opens, whatever the fragmentation, and whenever
// keys are updated.
func TestLayersCarryEverything(t *testing.T) {
	for _, id := range suites {
		t.Run(tls.CipherSuiteName(id), func(t *testing.T) {
			a, b := ends(t, id)
			rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
			var sent, got, wire []byte
			for range 200 {
				data := make([]byte, rng.IntN(3)*rng.IntN(20_000))
				for i := range data {
					data[i] = byte(rng.Uint32())
				}
				switch rng.IntN(20) {
				case 0:
					a.answer.owe()
				case 1:
					a.out.seq = updateAfter
					b.in.seq = a.out.seq // as if so many had been sent
					wire = open(t, b, &got, wire, len(wire))
				}
				if a.out.seq == updateAfter && len(wire) > 0 {
					t.Fatal("records are left")
				}
				sent = append(sent, data...)
				wire = a.Seal(wire, data)
				wire = open(t, b, &got, wire, rng.IntN(len(wire)+1))
				if a.out.seq < 50 && rng.IntN(2) == 0 {
					wire = open(t, b, &got, wire, len(wire))
				}
				wire = open(t, b, &got, wire, len(wire))
			}
			if !bytes.Equal(got, sent) {
				t.Fatalf("%d bytes differ from the %d that were sent", len(got), len(sent))
			}
			if wire = a.End(nil, nil); len(a.End(nil, nil)) != 0 {
				t.Error("the end is sent twice")
			}
			if _, _, err := b.Open(nil, wire); err != io.EOF {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// open opens the first n bytes of wire and returns what is left of it.
func open(t *testing.T, l *Layer, got *[]byte, wire []byte, n int) []byte {
	t.Helper()
	data, rest, err := l.Open(*got, wire[:n])
	if err != nil {
		t.Fatal(err)
	}
	*got = data
	return append(bytes.Clone(rest), wire[n:]...)
}

// An invalid record ends the connection with an alert that the peer understands, and
// nothing is opened after it.
func TestHostileRecords(t *testing.T) {
	for name, c := range map[string]struct {
		wire  func(a *Layer) []byte
		alert tls.AlertError
		want  string
	}{
		"changed":           {func(a *Layer) []byte { b := a.Seal(nil, []byte("x")); b[len(b)-1] ^= 1; return b }, alertBadMAC, "modified"},
		"length changed":    {func(a *Layer) []byte { return append(a.Seal(nil, []byte("x"))[:4], 17, 0, 0) }, 0, ""}, // not whole
		"left out":          {func(a *Layer) []byte { a.Seal(nil, []byte("x")); return a.Seal(nil, []byte("y")) }, alertBadMAC, "lost"},
		"repeated":          {func(a *Layer) []byte { b := a.Seal(nil, nil); b = a.seal(b, nil, typeData); return append(b, b...) }, alertBadMAC, "repeated"},
		"its own":           {nil, alertBadMAC, "modified"},
		"plain":             {func(*Layer) []byte { return []byte{22, 3, 3, 0, 1, 1} }, alertUnexpected, "begins with 16 03 03"},
		"too long":          {func(*Layer) []byte { return []byte{23, 3, 3, 0x41, 1} }, alertOverflow, "length is 16641"},
		"too much in it":    {func(a *Layer) []byte { return a.seal(nil, make([]byte, maxData+1), typeData) }, alertOverflow, "16385 bytes"},
		"only zeros":        {func(a *Layer) []byte { return a.seal(nil, make([]byte, 9), 0) }, alertUnexpected, "type 0"},
		"of no type":        {func(a *Layer) []byte { return a.seal(nil, []byte{1}, 99) }, alertUnexpected, "type 99"},
		"half an alert":     {func(a *Layer) []byte { return a.seal(nil, []byte{2}, typeAlert) }, alertDecode, "1 bytes"},
		"no message":        {func(a *Layer) []byte { return a.seal(nil, nil, typeHandshake) }, alertUnexpected, "type 22 with 0"},
		"a ticket":          {func(a *Layer) []byte { return a.seal(nil, []byte{newSessionTicket, 0, 0, 9}, typeHandshake) }, alertUnexpected, "type 4 and 13 bytes"},
		"a Finished":        {func(a *Layer) []byte { return a.seal(nil, []byte{20, 0, 0, 32}, typeHandshake) }, alertUnexpected, "type 20"},
		"a long update":     {func(a *Layer) []byte { return a.seal(nil, []byte{keyUpdate, 0, 0, 2}, typeHandshake) }, alertUnexpected, "type 24 and 6"},
		"an update of 2":    {func(a *Layer) []byte { return a.seal(nil, []byte{keyUpdate, 0, 0, 1, 2}, typeHandshake) }, alertIllegal, "kind 2"},
		"update and more":   {func(a *Layer) []byte { return a.seal(nil, []byte{keyUpdate, 0, 0, 1, 0, keyUpdate}, typeHandshake) }, alertUnexpected, "something follows"},
		"data in a message": {func(a *Layer) []byte { return a.Seal(a.seal(nil, []byte{keyUpdate}, typeHandshake), []byte("x")) }, alertUnexpected, "type 23"},
		"updates":           {func(a *Layer) []byte { return updates(a, maxVain+1) }, alertUnexpected, "in a row"},
		"empty ones": {func(a *Layer) (b []byte) {
			for range maxVain + 1 {
				b = a.seal(b, nil, typeData)
			}
			return b
		}, alertUnexpected, "in a row"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := ends(t, suites[0])
			var wire []byte
			if c.wire != nil {
				wire = c.wire(a)
			} else {
				wire = b.Seal(nil, []byte("x")) // sent back
			}
			data, rest, err := b.Open(nil, wire)
			if c.want == "" {
				if err != nil || len(rest) != len(wire) {
					t.Fatalf("%d of %d bytes are left, %v", len(rest), len(wire), err)
				}
				return
			}
			if !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), c.want) || len(data) > 0 {
				t.Fatalf("opened %q, %v", data, err)
			}
			if _, _, again := b.Open(nil, a.Seal(nil, []byte("later"))); again != err { //nolint:errorlint // the very same
				t.Errorf("opens on: %v", again)
			}
			if c.wire == nil {
				return
			}
			var told *AlertError
			if _, _, err := a.Open(nil, b.End(nil, err)); !errors.As(err, &told) || told.Alert != c.alert {
				t.Errorf("the peer gets %v, want %v", err, c.alert)
			}
		})
	}
}

// updates returns n records that update keys and request as many.
func updates(a *Layer, n int) (b []byte) {
	for range n {
		b = a.seal(b, []byte{keyUpdate, 0, 0, 1, updateRequested}, typeHandshake)
		a.out.update()
	}
	return b
}

// Many updates that request one are answered by one, with the next data.
func TestUpdatesAreAnsweredOnce(t *testing.T) {
	a, b := ends(t, suites[0])
	if data, rest, err := b.Open(nil, updates(a, maxVain)); len(data)+len(rest) > 0 || err != nil {
		t.Fatal(data, rest, err)
	}
	wire := b.Seal(nil, []byte("answer"))
	if data, _, err := a.Open(nil, wire); string(data) != "answer" || err != nil || a.in.seq != 1 {
		t.Fatalf("%q, %v; record %d of the new keys", data, err, a.in.seq)
	}
	if n := len(b.Seal(nil, []byte("answer"))); n >= len(wire) {
		t.Errorf("%d bytes, it updates again", n)
	}
}

// A server's ticket, in pieces, and padding carry no data.
func TestServersMaySendTickets(t *testing.T) {
	a, b := ends(t, suites[0])
	ticket := append([]byte{newSessionTicket, 0, 0, 200}, make([]byte, 200)...)
	wire := b.seal(b.seal(nil, ticket[:50], typeHandshake), ticket[50:], typeHandshake)
	wire = b.seal(wire, append([]byte{'x', typeData}, make([]byte, 100)...), 0)
	if data, rest, err := a.Open(nil, wire); string(data) != "x" || len(rest) > 0 || err != nil {
		t.Fatalf("%q, %d left, %v", data, len(rest), err)
	}
	if _, _, err := a.Open(nil, b.seal(nil, []byte{alertWarning, alertCanceled}, typeAlert)); err != nil {
		t.Errorf("user_canceled: %v", err)
	}
	if _, _, err := a.Open(nil, b.seal(nil, []byte{newSessionTicket, 1, 0, 0}, typeHandshake)); !errors.Is(err, ErrRecord) {
		t.Errorf("a ticket of 65,540 bytes: %v", err)
	}
}

func TestSealAndOpenAllocateNothing(t *testing.T) {
	for _, id := range suites {
		a, b := ends(t, id)
		data, wire, got := make([]byte, 305), make([]byte, 0, 1<<10), make([]byte, 0, 1<<10)
		if n := testing.AllocsPerRun(1000, func() {
			wire = a.Seal(wire[:0], data)
			var err error
			if got, _, err = b.Open(got[:0], wire); err != nil || len(got) != len(data) {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", tls.CipherSuiteName(id), n)
		}
	}
}

// Against crypto/tls at the other end, as client and as server.
func TestAgainstCryptoTLS(t *testing.T) {
	server, client := configs(t)
	for name, meet := range map[string]func(near, far net.Conn) (*Session, *tls.Conn, error){
		"as client": func(near, far net.Conn) (*Session, *tls.Conn, error) {
			s, err := Client(context.Background(), near, client)
			return s, tls.Server(far, server), err
		},
		"as server": func(near, far net.Conn) (*Session, *tls.Conn, error) {
			s, err := Server(context.Background(), near, server)
			return s, tls.Client(far, client), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := sockets(t)
			var other *tls.Conn
			if name == "as client" {
				other = tls.Server(far, server)
			} else {
				other = tls.Client(far, client)
			}
			go func() { // echoes after a message of its own
				_, _ = other.Write([]byte("first"))
				_, _ = io.Copy(other, other)
				_ = other.CloseWrite()
			}()
			s, _, err := meet(near, far)
			if err != nil {
				t.Fatal(err)
			}
			converse(t, near, s)
		})
	}
}

// converse has the other end echo a megabyte, and ends.
func converse(t *testing.T, nc net.Conn, s *Session) {
	t.Helper()
	want := append([]byte("first"), bytes.Repeat([]byte("0123456789abcdef"), 1<<16)...)
	sent := s.Seal(nil, want[len("first"):])
	sent = s.End(sent, nil)
	go func() { _, _ = nc.Write(sent) }()
	var got, wire []byte
	wire = append(wire, s.Early...)
	buf := make([]byte, 10_000)
	for {
		var err error
		if got, wire, err = s.Open(got, wire); err != nil {
			if err != io.EOF {
				t.Error(err)
			}
			break
		}
		wire = bytes.Clone(wire)
		n, err := nc.Read(buf)
		if wire = append(wire, buf[:n]...); err != nil && n == 0 {
			t.Error(err)
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back of %d, begins %.20q", len(got), len(want), got)
	}
}

// For any input: no panic, nothing opened that was not sealed, and an error is permanent.
func FuzzOpen(f *testing.F) {
	a, _ := ends(f, suites[0])
	f.Add([]byte{}, uint16(0), byte(0))
	f.Add(a.Seal(nil, []byte("hello")), uint16(7), byte(1))
	f.Add(updates(a, 2), uint16(3), byte(0))
	f.Fuzz(func(t *testing.T, junk []byte, at uint16, flip byte) {
		a, b := ends(t, suites[0])
		wire := a.Seal(nil, []byte("order"))
		wire = a.Seal(wire, []byte("another"))
		i := int(at) % len(wire)
		wire[i] ^= flip
		if flip != 0 {
			wire = append(wire, junk...)
		}
		data, rest, err := b.Open(nil, wire)
		if !strings.HasPrefix("orderanother", string(data)) {
			t.Fatalf("opened %q", data)
		}
		if flip == 0 && (err != nil || len(data) != 12) {
			t.Fatalf("opened %q, %v", data, err)
		}
		if err != nil {
			if _, _, again := b.Open(nil, rest); again != err { //nolint:errorlint // the very same
				t.Fatalf("first %v, then %v", err, again)
			}
		}
		// Records sealed by the peer may contain anything, too.
		c, d := ends(t, suites[0])
		for kind := byte(20); kind < 25; kind++ {
			if _, _, err := d.Open(nil, c.seal(nil, junk[:min(len(junk), maxData)], kind)); err != nil {
				return
			}
		}
	})
}

func BenchmarkOrder(b *testing.B) {
	for _, id := range suites {
		b.Run(tls.CipherSuiteName(id), func(b *testing.B) {
			x, y := ends(b, id)
			data, wire, got := make([]byte, 305), make([]byte, 0, 1<<10), make([]byte, 0, 1<<10)
			for b.Loop() {
				wire = x.Seal(wire[:0], data)
				got, _, _ = y.Open(got[:0], wire)
			}
		})
	}
}

// Without the secrets of crypto/tls there is no connection.
func TestSecretsMustBeThere(t *testing.T) {
	if _, err := newLayer(suites[0], &secrets{client: make([]byte, 32)}, true); err == nil || !strings.Contains(err.Error(), "0 bytes, allowed: 32") {
		t.Errorf("got %v", err)
	}
	if _, err := newLayer(tls.TLS_RSA_WITH_AES_128_GCM_SHA256, &secrets{}, true); err == nil || !strings.Contains(err.Error(), "allowed: one of TLS 1.3") {
		t.Errorf("got %v", err)
	}
}
