package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// state is what the state file holds: the rows up to Rows are settled, all of them, and none behind is known to be.
type state struct {
	Source   string `json:"source"`
	Into     string `json:"grid"` // the grid, or the grid, the region and how values are put
	Counts          // of the rows that are settled
	Refusals int64  `json:"refusals"` // bytes of the report of refused rows
}

// settled is the outcome of a row.
type settled struct {
	outcome Outcome
	refusal *Refusal
}

// track counts rows in the order of the source, whatever order they are settled in. What it has counted is what a
// resumed load leaves out, so a row is counted when all rows before it are.
type track struct {
	state
	path     string
	again    string            // what rows do that are sent once more
	ahead    map[int64]settled // rows behind one that is not settled
	report   *os.File
	buffered *bufio.Writer
}

func openTrack(o *Options, source, into string, m manner) (*track, error) {
	t := &track{path: o.State, again: m.again, ahead: map[int64]settled{}}
	if err := t.read(source, into+m.text); err != nil {
		return nil, err
	}
	if o.Refusals == "" {
		return t, nil
	}
	f, err := os.OpenFile(o.Refusals, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Lines behind the state are of rows that are read again.
	_, seek := f.Seek(t.Refusals, io.SeekStart)
	if err := errors.Join(f.Truncate(t.Refusals), seek); err != nil {
		return nil, join(err, f.Close())
	}
	t.report, t.buffered = f, bufio.NewWriter(f)
	return t, nil
}

func (t *track) read(source, into string) error {
	t.Source, t.Into = source, into
	if t.path == "" {
		return nil
	}
	text, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var was state
	if err == nil {
		err = json.Unmarshal(text, &was)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w; remove it to begin from the first row: %s", t.path, err, t.again)
	case was.Source != source || was.Into != into:
		return fmt.Errorf("%s: %w: of %q into %s, allowed: %q into %s; resume that one as it began, name another state file, or remove this one to begin from the first row: %s",
			t.path, ErrOtherSource, was.Source, was.Into, source, into, t.again)
	}
	t.state = was
	return nil
}

// settle takes in the outcome of row n, counted from 1.
func (t *track) settle(n int64, s settled) error {
	t.ahead[n] = s
	for {
		next, ok := t.ahead[t.Rows+1]
		if !ok {
			return nil
		}
		delete(t.ahead, t.Rows+1)
		t.add(next.outcome)
		if next.refusal == nil || t.report == nil {
			continue
		}
		line, err := json.Marshal(next.refusal)
		if err != nil {
			return err
		}
		if _, err := t.buffered.Write(append(line, '\n')); err != nil {
			return err
		}
		t.Refusals += int64(len(line)) + 1
	}
}

// save makes what was counted durable: the report first, so the state never names lines that are not there.
func (t *track) save() error {
	if t.report != nil {
		if err := errors.Join(t.buffered.Flush(), t.report.Sync()); err != nil {
			return err
		}
	}
	if t.path == "" {
		return nil
	}
	text, err := json.MarshalIndent(&t.state, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(t.path), filepath.Base(t.path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), t.path)
	}
	if err != nil {
		return join(err, os.Remove(f.Name()))
	}
	return nil
}

// close saves, and removes the state of a load that is not resumed.
func (t *track) close(remove bool) error {
	err := t.save()
	if t.report != nil {
		err = errors.Join(err, t.report.Close())
	}
	if err == nil && remove && t.path != "" {
		err = os.Remove(t.path)
	}
	return err
}
