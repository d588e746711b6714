package access

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// File is a file of rules. When it cannot be read, the previous rules stay in use. Until
// it has been read once, no client has any permission.
type File struct {
	path  string
	state atomic.Pointer[fileState]
}

// fileState is an immutable snapshot of the file.
type fileState struct {
	rules *Rules
	text  string    // source of rules
	read  time.Time // when it was read
	err   error     // why the present content is not in use
}

// Open reads the file. The error reports whether that worked; Watch reads it again.
func Open(path string) *File {
	f := &File{path: path}
	f.state.Store(&fileState{})
	f.reload()
	return f
}

// Rules returns the rules in use; nil before the first successful read.
func (f *File) Rules() *Rules { return f.state.Load().rules }

// Err returns why the present content is not in use; nil if it is.
func (f *File) Err() error { return f.state.Load().err }

// Read returns when the rules in use were read; zero if there are none.
func (f *File) Read() time.Time { return f.state.Load().read }

// reload reads the file and reports whether anything changed.
func (f *File) reload() bool {
	old := f.state.Load()
	next := &fileState{rules: old.rules, text: old.text, read: old.read}
	text, err := readAtMost(f.path, MaxRulesFile+1)
	if err == nil && (text != old.text || old.rules == nil) {
		var rules *Rules
		if rules, err = Parse([]byte(text)); err == nil {
			next.rules, next.text, next.read = rules, text, time.Now()
		}
	}
	if err != nil {
		next.err = fmt.Errorf("authorization file %s: %w", f.path, err)
	}
	f.state.Store(next)
	return next.rules != old.rules || (next.err == nil) != (old.err == nil)
}

func readAtMost(path string, limit int64) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	b, err := io.ReadAll(io.LimitReader(in, limit))
	return string(b), err
}

// Watch rereads the file periodically until ctx ends, and calls changed when its content
// changes or reading begins or ceases to fail. The content is compared, since a mounted
// ConfigMap is a symbolic link that is replaced.
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
