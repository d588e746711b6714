package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// digest identifies a token in maps.
type digest [sha256.Size]byte

func digestOf(token []byte) digest { return sha256.Sum256(token) }

// claims are the unverified claims of a token. They may only avoid a review, or shorten
// how long a verdict counts.
type claims struct {
	Expires  int64     `json:"exp"` // unix seconds, 0 for never
	Audience audiences `json:"aud"`
}

// audiences of a token: one name, or a list of them.
type audiences []string

// UnmarshalJSON accepts both forms of RFC 7519.
func (a *audiences) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(a))
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*a = audiences{one}
	return nil
}

// maxClaims bounds the claims of a token that is decoded, bytes of base64.
const maxClaims = 12 << 10

// ErrExpired means that a token has expired by its own claims. It comes with ErrRefused.
var ErrExpired = errors.New("it has expired")

var errNotJWT = errors.New("it is not a JSON web token: allowed: what TokenRequest or a projected volume gives")

// peek reads the claims of a token. The error never contains any part of it.
func peek(token []byte) (c claims, err error) {
	parts := bytes.Split(token, []byte{'.'})
	if len(parts) != 3 || len(parts[0]) == 0 || len(parts[1]) == 0 || len(parts[1]) > maxClaims || len(parts[2]) == 0 {
		return c, errNotJWT
	}
	body := make([]byte, base64.RawURLEncoding.DecodedLen(len(parts[1])))
	n, err := base64.RawURLEncoding.Decode(body, parts[1])
	if err != nil || json.Unmarshal(body[:n], &c) != nil {
		return claims{}, errNotJWT
	}
	return c, nil
}

// plausible returns why a token can be refused without a review.
func (c *claims) plausible(audience string, now time.Time) error {
	switch {
	case c.Expires != 0 && now.Unix() >= c.Expires:
		return fmt.Errorf("%w at %s: read it anew for each connection, it is replaced ahead of time", ErrExpired, time.Unix(c.Expires, 0).UTC().Format(time.RFC3339))
	case !slices.Contains(c.Audience, audience):
		return fmt.Errorf("it is for another audience, allowed: %q", audience)
	}
	return nil
}
