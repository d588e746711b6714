package access

import (
	"context"
	"time"

	"github.com/ordergrid/ordergrid/internal/reread"
)

// File is a file of rules. When it cannot be read, the previous rules stay in use. Until
// it has been read once, no client has any permission.
type File struct{ file *reread.File[*Rules] }

// Open reads the file. Err reports whether that worked; Watch reads it again.
func Open(path string) *File {
	return &File{reread.Open("authorization file", path, MaxRulesFile, func(content []byte, _ *Rules) (*Rules, error) { return Parse(content) })}
}

// Rules returns the rules in use; nil before the first successful read.
func (f *File) Rules() *Rules { return f.file.Value() }

// Err returns why the present content is not in use; nil if it is.
func (f *File) Err() error { return f.file.Err() }

// Read returns when the rules in use were read; zero if there are none.
func (f *File) Read() time.Time { return f.file.At() }

// Watch rereads the file periodically until ctx ends, and calls changed when its content
// changes or reading begins or ceases to fail.
func (f *File) Watch(ctx context.Context, every time.Duration, changed func()) {
	f.file.Watch(ctx, every, changed)
}
