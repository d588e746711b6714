// Package reread keeps a small file in use that changes while the process runs, such as a
// mounted ConfigMap or Secret. A content that cannot be read or parsed changes nothing: the
// value of the content before stays in use, and Err reports why.
package reread

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// File is a file whose content is a T. Safe for concurrent use, but for Reload.
type File[T any] struct {
	what  string
	path  string
	most  int
	parse func(content []byte, before T) (T, error)
	state atomic.Pointer[state[T]]
}

// state is an immutable snapshot.
type state[T any] struct {
	value T
	sum   [sha256.Size]byte // of the content that value is from
	at    time.Time         // when that was read, zero: never
	err   error             // why the present content is not in use
}

// Open reads the file; Err reports whether that worked. Errors begin with what, which names
// the kind of file, and the path. A content of more than most bytes is refused. parse gets the
// content, which it must not keep, and the value in use, the zero value at first.
func Open[T any](what, path string, most int, parse func(content []byte, before T) (T, error)) *File[T] {
	f := &File[T]{what: what, path: path, most: most, parse: parse}
	f.state.Store(&state[T]{})
	f.Reload()
	return f
}

// Value returns the value in use. It is shared, so it must not be changed.
func (f *File[T]) Value() T { return f.state.Load().value }

// SHA256 returns that of the content in use.
func (f *File[T]) SHA256() [sha256.Size]byte { return f.state.Load().sum }

// At returns when the content in use was read; zero if none ever was.
func (f *File[T]) At() time.Time { return f.state.Load().at }

// Err returns why the present content is not in use; nil if it is.
func (f *File[T]) Err() error { return f.state.Load().err }

// Reload reads the file and reports whether its content came into use, or Err changed.
func (f *File[T]) Reload() bool {
	old := f.state.Load()
	next := *old
	next.err = nil
	content, err := f.read()
	if sum := sha256.Sum256(content); err == nil && (old.at.IsZero() || sum != old.sum) {
		var value T
		if value, err = f.parse(content, old.value); err == nil {
			next.value, next.sum, next.at = value, sum, time.Now()
		}
	}
	clear(content) // it may be a secret
	if err != nil {
		next.err = fmt.Errorf("%s %s: %w", f.what, f.path, err)
	}
	f.state.Store(&next)
	return next.at != old.at || text(next.err) != text(old.err)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (f *File[T]) read() ([]byte, error) {
	in, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(io.LimitReader(in, int64(f.most)+1))
	if err == nil && len(content) > f.most {
		err = fmt.Errorf("it has more than %d bytes, allowed: at most %d", f.most, f.most)
	}
	return content, err
}

// Watch reloads the file every so often until ctx ends, and calls changed when that did
// something. The content is compared, not its time: a mounted ConfigMap is a symbolic link
// that is replaced.
func (f *File[T]) Watch(ctx context.Context, every time.Duration, changed func()) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if f.Reload() {
				changed()
			}
		}
	}
}
