package instrument

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// File is a file of instruments that is read again when it changes. Instruments are added
// only: a content that lacks one that was read before, or has it otherwise, is not taken.
type File struct {
	path  string
	json  func([]byte) ([]byte, error) // of the content; nil: it is JSON
	state atomic.Pointer[state]
}

// state is an immutable snapshot.
type state struct {
	list []Instrument
	sum  [sha256.Size]byte // of the content that list is from
	err  error             // why the present content is not in use
}

// Open reads the file, whose content toJSON converts; nil: it is JSON.
func Open(path string, toJSON func([]byte) ([]byte, error)) (*File, error) {
	f := &File{path: path, json: toJSON}
	f.state.Store(&state{})
	f.reload()
	return f, f.Err()
}

// List returns the instruments in use. It must not be changed.
func (f *File) List() []Instrument { return f.state.Load().list }

// SHA256 returns that of the content in use, in hexadecimal digits.
func (f *File) SHA256() string { return fmt.Sprintf("%x", f.state.Load().sum) }

// Err returns why the present content is not in use; nil if it is.
func (f *File) Err() error { return f.state.Load().err }

// reload reports whether there are instruments that were not there before, or whether the
// file began or ceased to fail.
func (f *File) reload() bool {
	old := f.state.Load()
	next := &state{list: old.list, sum: old.sum}
	text, err := read(f.path)
	sum := sha256.Sum256(text)
	if err == nil && (old.list == nil || sum != old.sum) {
		var list []Instrument
		if f.json != nil {
			text, err = f.json(text)
		}
		if err == nil {
			list, err = Parse(text)
		}
		if err == nil {
			err = keeps(old.list, list)
		}
		if err == nil {
			next.list, next.sum = list, sum
		}
	}
	if err != nil {
		next.err = fmt.Errorf("%s: %w", f.path, err)
	}
	f.state.Store(next)
	return next.sum != old.sum || (next.err == nil) != (old.err == nil)
}

// keeps reports an instrument that is in the list before and not, or otherwise, in the list
// after.
func keeps(before, after []Instrument) error {
	for _, in := range before {
		at := slices.IndexFunc(after, func(a Instrument) bool { return a.Symbol == in.Symbol })
		switch {
		case at < 0:
			return fmt.Errorf("instrument %q is gone, allowed: further instruments only; put it back: its book is in the log", in.Symbol)
		case after[at] != in:
			return fmt.Errorf("instrument %q is changed, allowed: further instruments only; put it back as it was: its book is in the log", in.Symbol)
		}
	}
	return nil
}

func read(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(io.LimitReader(in, MaxFile+1))
	if err == nil && len(text) > MaxFile {
		err = fmt.Errorf("it has more than %d bytes, allowed: at most that", MaxFile)
	}
	return text, err
}

// Watch reads the file periodically until ctx ends, and calls changed when there are
// further instruments, or reading begins or ceases to fail. The content is compared, since a
// mounted ConfigMap is a symbolic link that is replaced.
func (f *File) Watch(ctx context.Context, every time.Duration, changed func()) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if f.reload() {
				changed()
			}
		}
	}
}
