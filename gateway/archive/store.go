package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Store keeps objects by name, such as a directory or a bucket. Names have slashes and sort as bytes.
type Store interface {
	// Create makes an object durable, all or nothing. It returns ErrExists where there is one of the name.
	Create(ctx context.Context, name string, data []byte) error
	// Open reads an object from an offset on. It returns an error that is fs.ErrNotExist where there is none.
	Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
	Exists(ctx context.Context, name string) (bool, error)
	// List returns the objects whose names begin with prefix, by name.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Folders returns the first words behind prefix, which is empty or ends with a slash, of the names that have more.
	Folders(ctx context.Context, prefix string) ([]string, error)
	Delete(ctx context.Context, name string) error
	Close() error
	// String is the URL without secrets.
	String() string
}

// Object is one that a store lists.
type Object struct {
	Name string
	Size int64
}

// ErrExists is returned by Store.Create.
var ErrExists = errors.New("the object exists")

// Folders of a partition. Both list in the order of the log.
const (
	segments = "segments"
	tail     = "tail"
	suffix   = ".ogs"
)

func folder(grid string, p wire.PartitionID, what string) string {
	return grid + "/" + p.String() + "/" + what + "/"
}

// segmentName is that of the segment whose first entry is seq.
func segmentName(grid string, p wire.PartitionID, first uint64) string {
	return fmt.Sprintf("%s%020d%s", folder(grid, p, segments), first, suffix)
}

// tailName is that of a batch or a fence. attempt is how many fences at the same entry are before it.
func tailName(grid string, p wire.PartitionID, first uint64, attempt int) string {
	return fmt.Sprintf("%s%020d-%06d%s", folder(grid, p, tail), first, attempt, suffix)
}

// maxAttempts is how many fences there may be at an entry: names have six digits.
const maxAttempts = 1_000_000

// piece is an object of a partition by its name.
type piece struct {
	Object
	grid    string
	part    wire.PartitionID
	tail    bool
	first   uint64
	attempt int
}

// parseName reads a name; false for one that is not of an archive.
func parseName(o Object) (p piece, ok bool) {
	words := strings.Split(o.Name, "/")
	if len(words) != 4 || words[0] == "" {
		return p, false
	}
	part, err := wire.ParsePartitionID(words[1])
	name, found := strings.CutSuffix(words[3], suffix)
	if err != nil || !found {
		return p, false
	}
	p = piece{Object: o, grid: words[0], part: part, tail: words[2] == tail}
	first, attempt, _ := strings.Cut(name, "-")
	if p.first, err = strconv.ParseUint(first, 10, 64); err != nil {
		return p, false
	}
	if p.tail {
		p.attempt, err = strconv.Atoi(attempt)
		return p, err == nil && o.Name == tailName(p.grid, p.part, p.first, p.attempt)
	}
	return p, words[2] == segments && o.Name == segmentName(p.grid, p.part, p.first)
}

// list returns the objects of a folder. Others in it are passed over.
func list(ctx context.Context, s Store, prefix string) (pieces []piece, err error) {
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if p, ok := parseName(o); ok {
			pieces = append(pieces, p)
		}
	}
	return pieces, nil
}

// readHeader reads the header of an object.
func readHeader(ctx context.Context, s Store, name string) (h Header, err error) {
	r, err := s.Open(ctx, name, 0)
	if err != nil {
		return h, err
	}
	defer r.Close() //nolint:errcheck // nothing more is read
	o := object{name: name, r: r}
	var b [headerSize]byte
	if err = o.fill(b[:]); err == nil {
		h, err = decodeHeader(b[:])
	}
	if err != nil {
		return h, o.damage(0, 0, 0, err)
	}
	return h, nil
}
