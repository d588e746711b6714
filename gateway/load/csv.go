package load

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
)

// csvSource reads a table with a heading: comma separated, quoted as RFC 4180 says.
type csvSource struct {
	in   *input
	r    *csv.Reader
	m    maker
	as   []func(string) string // forms of columns whose types are known; nil, or nil of a column: as it stands
	rows int64
}

func newCSV(in *input, shape Shape) (Source, error) {
	s, err := newTable(in, in, shape)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newTable(in *input, text io.Reader, shape Shape) (*csvSource, error) {
	r := csv.NewReader(text)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	heading, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty, allowed: a first line with the names of the columns", in.name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	m, err := shape.maker(slices.Clone(heading))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return &csvSource{in: in, r: r, m: m}, nil
}

// Next implements Source.
func (s *csvSource) Next() (Row, error) {
	record, err := s.r.Read()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		s.rows++
		return Row{Where: fmt.Sprintf("line %d", bad.StartLine), Err: bad.Err}, nil
	case err != nil:
		return Row{}, err
	}
	s.rows++
	for i, form := range s.as {
		if form != nil && i < len(record) {
			record[i] = form(record[i])
		}
	}
	line, _ := s.r.FieldPos(0)
	return made(s.m, fmt.Sprintf("line %d", line), record, s.rows), nil
}

// Progress implements Source.
func (s *csvSource) Progress() (read, total int64) { return s.in.read.Load(), s.in.size }

// ID implements Source.
func (s *csvSource) ID() string { return s.in.id }

// Close implements Source.
func (s *csvSource) Close() error { return s.in.Close() }
