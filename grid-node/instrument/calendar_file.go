package instrument

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ordergrid/ordergrid/internal/reread"
)

// CalendarFileName is what the name of a file of instruments ends with that has their calendar.
const CalendarFileName = ".calendar"

// CalendarFile is a file with a calendar that is read again when it changes. It need not be there.
type CalendarFile struct{ file *reread.File[*Calendar] }

// OpenCalendar reads the file, whose content toJSON converts; nil: it is JSON.
func OpenCalendar(path string, toJSON func([]byte) ([]byte, error)) (*CalendarFile, error) {
	f := &CalendarFile{reread.Open("calendar file", path, MaxFile, func(content []byte, _ *Calendar) (_ *Calendar, err error) {
		if toJSON != nil {
			if content, err = toJSON(content); err != nil {
				return nil, err
			}
		}
		return ParseCalendar(content)
	})}
	return f, f.Err()
}

// Calendar returns the one in use, nil without.
func (f *CalendarFile) Calendar() *Calendar { return f.file.Value() }

// SHA256 returns that of the content in use, in hexadecimal digits; empty without.
func (f *CalendarFile) SHA256() string {
	if f.Calendar() == nil {
		return ""
	}
	return fmt.Sprintf("%x", f.file.SHA256())
}

// Err returns why the present content is not in use; nil if it is, or if the file was never there.
func (f *CalendarFile) Err() error {
	err := f.file.Err()
	if f.file.At().IsZero() && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Watch reads the file periodically until ctx ends, and calls changed when it is another one, or
// reading begins or ceases to fail.
func (f *CalendarFile) Watch(ctx context.Context, every time.Duration, changed func()) {
	f.file.Watch(ctx, every, changed)
}
