package server

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// Verifier is what is kept of a password: SCRAM-SHA-256 of RFC 5802 and 7677, in the form of
// PostgreSQL's pg_authid: SCRAM-SHA-256$iterations:salt$storedKey:serverKey.
type Verifier struct {
	iterations        int
	salt              []byte
	stored, serverKey []byte
}

// ParseVerifier reads the form.
func ParseVerifier(s string) (v Verifier, err error) {
	bad := fmt.Errorf("verifier has another form, allowed: SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY, as PostgreSQL keeps it")
	part := strings.Split(s, "$")
	if len(part) != 3 || part[0] != "SCRAM-SHA-256" {
		return v, bad
	}
	n, salt, ok1 := strings.Cut(part[1], ":")
	stored, server, ok2 := strings.Cut(part[2], ":")
	if !ok1 || !ok2 {
		return v, bad
	}
	if v.iterations, err = strconv.Atoi(n); err != nil || v.iterations < 4096 || v.iterations > 1<<20 {
		return v, fmt.Errorf("verifier has %.20s iterations, allowed: 4,096 to 1,048,576", n)
	}
	for _, x := range []struct {
		to   *[]byte
		from string
	}{{&v.salt, salt}, {&v.stored, stored}, {&v.serverKey, server}} {
		if *x.to, err = base64.StdEncoding.DecodeString(x.from); err != nil {
			return v, bad
		}
	}
	if len(v.stored) != 32 || len(v.serverKey) != 32 || len(v.salt) == 0 {
		return v, bad
	}
	return v, nil
}

// NewVerifier makes one of a password.
func NewVerifier(password string) (Verifier, error) {
	v := Verifier{iterations: 4096, salt: make([]byte, 16)}
	_, _ = rand.Read(v.salt) // it never fails
	key, err := pbkdf2.Key(sha256.New, password, v.salt, v.iterations, 32)
	if err != nil {
		return v, err
	}
	stored := sha256.Sum256(mac(key, "Client Key"))
	v.stored, v.serverKey = stored[:], mac(key, "Server Key")
	return v, nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// exchange is the server's side of one authentication.
type exchange struct {
	v                        Verifier
	clientFirst, serverFirst string // bare
	nonce                    string
	mock                     bool
}

// first answers the client's first message.
func (x *exchange) first(m string) (string, *sql.Error) {
	bad := sql.Refuse(sql.StateProtocol, "malformed SCRAM message")
	gs2, bare, ok := cut2(m)
	if !ok || gs2 != "n,," && gs2 != "y,," {
		return "", bad
	}
	attrs := strings.Split(bare, ",")
	if len(attrs) < 2 || !strings.HasPrefix(attrs[0], "n=") || !strings.HasPrefix(attrs[1], "r=") || len(attrs[1]) < 10 {
		return "", bad
	}
	x.clientFirst = bare
	x.nonce = attrs[1][2:] + rand.Text()
	x.serverFirst = fmt.Sprintf("r=%s,s=%s,i=%d", x.nonce, base64.StdEncoding.EncodeToString(x.v.salt), x.v.iterations)
	return x.serverFirst, nil
}

// cut2 cuts behind the second comma.
func cut2(m string) (head, rest string, ok bool) {
	i := strings.IndexByte(m, ',')
	if i < 0 {
		return "", "", false
	}
	j := strings.IndexByte(m[i+1:], ',')
	if j < 0 {
		return "", "", false
	}
	return m[:i+j+2], m[i+j+2:], true
}

// final checks the client's proof and returns the server's.
func (x *exchange) final(m string) (string, bool) {
	without, proof, ok := strings.Cut(m, ",p=")
	if !ok {
		return "", false
	}
	attrs := strings.Split(without, ",")
	if len(attrs) < 2 || attrs[0] != "c=biws" && attrs[0] != "c=eSws" || attrs[1] != "r="+x.nonce {
		return "", false
	}
	p, err := base64.StdEncoding.DecodeString(proof)
	if err != nil || len(p) != 32 {
		return "", false
	}
	signed := x.clientFirst + "," + x.serverFirst + "," + without
	signature := mac(x.v.stored, signed)
	key := make([]byte, 32)
	subtle.XORBytes(key, p, signature)
	stored := sha256.Sum256(key)
	if subtle.ConstantTimeCompare(stored[:], x.v.stored) != 1 || x.mock {
		return "", false
	}
	return "v=" + base64.StdEncoding.EncodeToString(mac(x.v.serverKey, signed)), true
}
