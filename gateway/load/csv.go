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
	cols *columns
	rows int64
}

func newCSV(in *input, m Mapping) (Source, error) {
	s, err := newTable(in, in, m)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newTable(in *input, text io.Reader, m Mapping) (*csvSource, error) {
	r := csv.NewReader(text)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	heading, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty, allowed: a first line with the names of the columns", in.name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	cols, err := newColumns(slices.Clone(heading), m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return &csvSource{in: in, r: r, cols: cols}, nil
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
	line, _ := s.r.FieldPos(0)
	row := Row{Where: fmt.Sprintf("line %d", line)}
	if row.Message, row.Err = s.cols.message(record, s.rows); row.Err != nil {
		row.Message = fmt.Appendf(nil, "%q", record)
	}
	return row, nil
}

// Progress implements Source.
func (s *csvSource) Progress() (read, total int64) { return s.in.read.Load(), s.in.size }

// ID implements Source.
func (s *csvSource) ID() string { return s.in.id }

// Close implements Source.
func (s *csvSource) Close() error { return s.in.Close() }
