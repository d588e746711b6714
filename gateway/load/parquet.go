package load

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// parquetSource reads the flat columns of a Parquet file, row by row.
type parquetSource struct {
	in     *input
	groups []parquet.RowGroup
	open   parquet.Rows // of the group before groups[0]
	types  []parquet.Type
	m      maker
	forms  forms
	row    []string
	buffer []parquet.Row
	next   []parquet.Row // of buffer
	count  int64
	total  int64
}

func newParquet(in *input, shape Shape) (Source, error) {
	f, err := parquet.OpenFile(in.File, in.size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	s := &parquetSource{in: in, forms: shape.forms(), groups: f.RowGroups(), buffer: make([]parquet.Row, 256), total: f.NumRows()}
	var names []string
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		if len(path) > 1 || leaf.MaxRepetitionLevel > 0 {
			return nil, fmt.Errorf("%s: column %s is nested or repeated, allowed: flat columns, one value a row", in.name, strings.Join(path, "."))
		}
		names, s.types = append(names, path[0]), append(s.types, leaf.Node.Type())
	}
	if s.m, err = shape.maker(names); err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	s.row = make([]string, len(names))
	return s, nil
}

// Next implements Source.
func (s *parquetSource) Next() (Row, error) {
	for len(s.next) == 0 {
		if s.open == nil {
			if len(s.groups) == 0 {
				return Row{}, io.EOF
			}
			s.open, s.groups = s.groups[0].Rows(), s.groups[1:]
		}
		n, err := s.open.ReadRows(s.buffer)
		s.next = s.buffer[:n]
		if n > 0 {
			break
		}
		if !errors.Is(err, io.EOF) {
			return Row{}, fmt.Errorf("%s: row %d: %w", s.in.name, s.count+1, err)
		}
		if err := s.open.Close(); err != nil {
			return Row{}, fmt.Errorf("%s: row %d: %w", s.in.name, s.count+1, err)
		}
		s.open = nil
	}
	clear(s.row)
	for _, v := range s.next[0] {
		s.row[v.Column()] = s.forms.ofParquet(v, s.types[v.Column()])
	}
	s.next = s.next[1:]
	s.count++
	s.in.read.Store(s.count)
	return made(s.m, fmt.Sprintf("row %d", s.count), s.row, s.count), nil
}

func moment(n int64, unit string) time.Time {
	switch {
	case strings.HasPrefix(unit, "MILLI"):
		return time.UnixMilli(n).UTC()
	case strings.HasPrefix(unit, "MICRO"):
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(0, n).UTC()
}

// decimal is the number with its point: of an integer, or of bytes in two's complement, the most significant first.
func decimal(v parquet.Value, scale int) string {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		n.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		n.SetInt64(v.Int64())
	default:
		b := v.ByteArray()
		if n.SetBytes(b); len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	digits, sign := new(big.Int).Abs(n).String(), ""
	if n.Sign() < 0 {
		sign = "-"
	}
	if scale <= 0 {
		return sign + digits + strings.Repeat("0", -scale)
	}
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// Progress implements Source.
func (s *parquetSource) Progress() (read, total int64) { return s.in.read.Load(), s.total }

// ID implements Source.
func (s *parquetSource) ID() string { return s.in.id }

// Close implements Source.
func (s *parquetSource) Close() error {
	var err error
	if s.open != nil {
		err = s.open.Close()
	}
	return errors.Join(err, s.in.Close())
}
