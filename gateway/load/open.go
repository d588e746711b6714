package load

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Formats of a source.
const (
	FormatCSV     = "csv"
	FormatFIX     = "fix"
	FormatJSON    = "jsonl"
	FormatParquet = "parquet"
	FormatSQL     = "postgres"
)

// Open opens a file, or the result of a query where name begins with postgres://. The format of a file is that of its
// name's ending unless format says otherwise. shape is what its rows are.
func Open(ctx context.Context, name, format, query string, shape Shape) (Source, error) {
	if strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://") {
		return openSQL(ctx, name, query, shape)
	}
	if query != "" {
		return nil, fmt.Errorf("query: set for %s, allowed: for a source that begins with postgres://", name)
	}
	if format == "" {
		switch ext := strings.ToLower(filepath.Ext(name)); ext {
		case ".csv", ".parquet":
			format = ext[1:]
		case ".fix", ".log", ".messages":
			format = FormatFIX
		case ".jsonl", ".ndjson":
			format = FormatJSON
		default:
			return nil, fmt.Errorf("%s: the ending %q names no format, allowed: .csv, .parquet, .fix, .log, .jsonl, or a format given as %s, %s, %s, %s", name, ext, FormatCSV, FormatFIX, FormatJSON, FormatParquet)
		}
	}
	in, err := openInput(name)
	if err != nil {
		return nil, err
	}
	in.id += shape.id()
	src, err := in.as(format, shape)
	if err != nil {
		return nil, fmt.Errorf("%w", join(err, in.Close()))
	}
	return src, nil
}

func (in *input) as(format string, shape Shape) (Source, error) {
	m, orders := shape.(Mapping)
	e, values := shape.(Entries)
	switch {
	case format == FormatCSV:
		return newCSV(in, shape)
	case format == FormatParquet:
		return newParquet(in, shape)
	case format == FormatJSON && values:
		return newJSON(in, e)
	case format == FormatFIX && orders:
		if len(m.Columns)+len(m.Set) > 0 {
			return nil, fmt.Errorf("%s: columns are mapped, allowed: for tables only; a FIX log is taken as it is", in.name)
		}
		return newFIXLog(in), nil
	}
	return nil, fmt.Errorf("format: value %q, allowed: %s, %s, %s for orders, %s for values of a region", format, FormatCSV, FormatParquet, FormatFIX, FormatJSON)
}

func join(err, other error) error {
	if other != nil {
		return fmt.Errorf("%w; %w", err, other)
	}
	return err
}

// input is a file that counts what is read.
type input struct {
	*os.File
	name string
	id   string
	size int64
	read atomic.Int64 // bytes, or rows
}

// idPart bytes of the beginning and the end identify a file, with its size.
const idPart = 1 << 20

func openInput(name string) (*input, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	in := &input{File: f, name: name}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file, allowed: one; a load that is resumed reads it again", name)
	}
	if err == nil {
		in.size = info.Size()
		h := fnv.New64a()
		_, err = io.Copy(h, io.MultiReader(io.NewSectionReader(f, 0, idPart), io.NewSectionReader(f, max(0, in.size-idPart), idPart)))
		in.id = fmt.Sprintf("%s, %d bytes, %016x", filepath.Base(name), in.size, h.Sum64())
	}
	if err != nil {
		return nil, join(err, f.Close())
	}
	return in, nil
}

// Read implements io.Reader.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.File.Read(b)
	in.read.Add(int64(n))
	return n, err
}
