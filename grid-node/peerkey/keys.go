package peerkey

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/reread"
)

// Key is the secret of a grid: 256 random bits.
type Key [32]byte

const (
	// MaxKeys is the most keys in a file: the present one, and those before and after it.
	MaxKeys = 4
	maxFile = 4 << 10
	recheck = time.Second
)

// allowed completes an error about a file.
const allowed = "1 to 4 lines, each with 32 random bytes in base64, such as `head -c 32 /dev/urandom | base64` prints"

// New returns a random key.
func New() Key {
	var k Key
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Text returns the key as a line of a file.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k[:]) + "\n" }

// String keeps the key out of logs.
func (k Key) String() string { return "(a peer key)" }

// GoString keeps the key out of logs.
func (k Key) GoString() string { return k.String() }

// WriteFile writes a file with one key, readable by its owner only.
func WriteFile(path string, k Key) error { return os.WriteFile(path, []byte(k.Text()), 0o600) }

// Parse reads the lines of a file. Empty lines are skipped. An error names the line, never
// its content.
func Parse(text string) ([]Key, error) {
	var keys []Key
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		b, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(b) != len(Key{}) {
			return nil, fmt.Errorf("line %d is not a key, allowed: %s", number, allowed)
		}
		k := Key(b)
		if k == (Key{}) {
			return nil, fmt.Errorf("line %d is all zeros, allowed: %s", number, allowed)
		}
		if slices.Contains(keys, k) {
			return nil, fmt.Errorf("line %d is a duplicate, allowed: %s, all different", number, allowed)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("there are %d keys, allowed: %s", len(keys), allowed)
	}
	return keys, nil
}

// Keys are the keys of a file. The first is the one this process proves; a proof by any of
// them is accepted. Safe for concurrent use.
type Keys struct {
	file     *reread.File[[]Key] // nil: they are constant
	constant []Key
}

// Of returns constant keys.
func Of(keys ...Key) *Keys { return &Keys{constant: keys} }

// Load reads a file. Watch reads it again.
func Load(path string) (*Keys, error) {
	k := &Keys{file: reread.Open("peer key file", path, maxFile, func(content []byte, _ []Key) ([]Key, error) { return Parse(string(content)) })}
	return k, k.file.Err()
}

// Own returns the key to prove.
func (k *Keys) Own() Key { return k.Accepted()[0] }

// Accepted returns the keys accepted in proofs; they may not be modified.
func (k *Keys) Accepted() []Key {
	if k.file == nil {
		return k.constant
	}
	return k.file.Value()
}

// Err returns why the present content is not in use; nil if it is.
func (k *Keys) Err() error {
	if k.file == nil {
		return nil
	}
	return k.file.Err()
}

// Watch rereads the file every second until ctx ends. A file that cannot be read changes
// nothing. changed is called on new keys, and when an error appears or disappears.
func (k *Keys) Watch(ctx context.Context, changed func()) {
	if k.file != nil {
		k.file.Watch(ctx, recheck, changed)
	}
}
