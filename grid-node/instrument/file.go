package instrument

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/internal/reread"
)

// File is a file of instruments that is read again when it changes. Instruments are added
// only: a content that lacks one that was read before, or has it otherwise, is not taken.
type File struct{ file *reread.File[[]Instrument] }

// Open reads the file, whose content toJSON converts; nil: it is JSON.
func Open(path string, toJSON func([]byte) ([]byte, error)) (*File, error) {
	f := &File{reread.Open("instruments file", path, MaxFile, func(content []byte, before []Instrument) (list []Instrument, err error) {
		if toJSON != nil {
			content, err = toJSON(content)
		}
		if err == nil {
			list, err = Parse(content)
		}
		if err == nil {
			err = keeps(before, list)
		}
		return list, err
	})}
	return f, f.Err()
}

// List returns the instruments in use. It must not be changed.
func (f *File) List() []Instrument { return f.file.Value() }

// SHA256 returns that of the content in use, in hexadecimal digits.
func (f *File) SHA256() string { return fmt.Sprintf("%x", f.file.SHA256()) }

// Err returns why the present content is not in use; nil if it is.
func (f *File) Err() error { return f.file.Err() }

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

// Watch reads the file periodically until ctx ends, and calls changed when there are
// further instruments, or reading begins or ceases to fail.
func (f *File) Watch(ctx context.Context, every time.Duration, changed func()) {
	f.file.Watch(ctx, every, changed)
}
