package peerkey

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Key is the secret of a grid: 256 random bits.
type Key [32]byte

const (
	// MaxKeys are in a file at the same time: the present one, and one before and after it.
	MaxKeys = 4
	maxFile = 4 << 10
	recheck = time.Second
)

// allowed completes an error about a file.
const allowed = "1 to 4 lines, each with 32 random bytes in base64, such as `head -c 32 /dev/urandom | base64` prints"

// New is a key that nobody has.
func New() Key {
	var k Key
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Text is the key as a line of a file.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k[:]) + "\n" }

// String keeps the key out of logs.
func (k Key) String() string { return "(a peer key)" }

// GoString keeps the key out of logs.
func (k Key) GoString() string { return k.String() }

// WriteFile writes a file with one key, for its owner alone.
func WriteFile(path string, k Key) error { return os.WriteFile(path, []byte(k.Text()), 0o600) }

// Parse reads the lines of a file. Empty ones do not count. An error says which line is
// wrong and nothing of what is in it.
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
			return nil, fmt.Errorf("line %d is no key, allowed: %s", number, allowed)
		}
		k := Key(b)
		if k == (Key{}) {
			return nil, fmt.Errorf("line %d is all zeros, allowed: %s", number, allowed)
		}
		if slices.Contains(keys, k) {
			return nil, fmt.Errorf("line %d is a key for the second time, allowed: %s, each another one", number, allowed)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("there are %d keys, allowed: %s", len(keys), allowed)
	}
	return keys, nil
}

// Keys are those of a file. The first is the one that this process proves by; a proof by
// any of them is accepted. It is safe for concurrent use.
type Keys struct {
	path  string
	state atomic.Pointer[state]
}

// state is replaced, never changed.
type state struct {
	keys []Key
	err  error // why the file that is there now is not in use
}

// Of are keys that never change.
func Of(keys ...Key) *Keys {
	k := &Keys{}
	k.state.Store(&state{keys: keys})
	return k
}

// Load reads a file. Watch reads it again.
func Load(path string) (*Keys, error) {
	k := &Keys{path: path}
	keys, err := read(path)
	k.state.Store(&state{keys: keys})
	return k, err
}

// Own is the key to prove by.
func (k *Keys) Own() Key { return k.state.Load().keys[0] }

// Accepted are the keys that a proof may be made by; they may not be modified.
func (k *Keys) Accepted() []Key { return k.state.Load().keys }

// Err is why the file is not in use as it is now; nil if it is.
func (k *Keys) Err() error { return k.state.Load().err }

// Watch reads the file again every second until ctx ends. What cannot be read changes
// nothing. changed is told of other keys, and of errors that come and go.
func (k *Keys) Watch(ctx context.Context, changed func()) {
	if k.path == "" {
		return
	}
	t := time.NewTicker(recheck)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if k.reload() {
				changed()
			}
		}
	}
}

// reload reads the file and reports whether anything is other than before.
func (k *Keys) reload() bool {
	old := k.state.Load()
	keys, err := read(k.path)
	next := &state{keys: keys, err: err}
	if err != nil {
		next.keys = old.keys
	}
	k.state.Store(next)
	return !slices.Equal(next.keys, old.keys) || (err == nil) != (old.err == nil)
}

func read(path string) ([]Key, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("peer key file: %w", err)
	}
	defer func() { _ = in.Close() }()
	b, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = errors.New("it is longer than 4 KiB, allowed: " + allowed)
	}
	var keys []Key
	if err == nil {
		keys, err = Parse(string(b))
	}
	clear(b)
	if err != nil {
		return nil, fmt.Errorf("peer key file %s: %w", path, err)
	}
	return keys, nil
}
