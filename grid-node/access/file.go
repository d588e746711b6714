package access

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// File is a file of rules. What could not be read changes nothing: the rules before
// stay. Before any could be read, nobody may do anything.
type File struct {
	path  string
	state atomic.Pointer[fileState]
}

// fileState is what is known of the file; it is replaced, never changed.
type fileState struct {
	rules *Rules
	text  string    // that rules are of
	read  time.Time // when
	err   error     // why the file that is there now is not in use
}

// Open reads the file. Err says whether that worked; it is read again by Watch.
func Open(path string) *File {
	f := &File{path: path}
	f.state.Store(&fileState{})
	f.reload()
	return f
}

// Rules of this moment; nil until there were any.
func (f *File) Rules() *Rules { return f.state.Load().rules }

// Err is why the file is not in use as it is now; nil if it is.
func (f *File) Err() error { return f.state.Load().err }

// Read is when the rules of this moment were read; zero until there were any.
func (f *File) Read() time.Time { return f.state.Load().read }

// reload reads the file and says whether anything is other than before.
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

// Watch reads the file again every so often until ctx ends, and calls changed when
// it is another one, or could or could not be read as before. The content is
// compared: a mounted ConfigMap is a link that moves.
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
