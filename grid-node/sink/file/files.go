package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Name is the name of the file that the sink of a partition writes to. A file that was set
// aside has a dot and a time appended.
func Name(grid, partition string) string { return grid + "-" + partition + ".log" }

// Dir is the directory of a pod's files.
func Dir(dir, pod string) string { return filepath.Join(dir, pod) }

// asideFormat is the time in the name of a file that was set aside: names sort by
// it.
const asideFormat = "20060102T150405.000000000Z"

// Info is one file of a sink.
type Info struct {
	Name     string
	Size     int64 // bytes
	SetAside bool
}

// List lists the files of a partition's sink in a pod's directory: those set aside by age,
// then the current one. A missing directory has none.
func List(dir, name string) ([]Info, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Info
	for _, e := range entries {
		if !isFile(e.Name(), name) {
			continue
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // set aside or removed concurrently
		}
		if err != nil {
			return nil, err
		}
		if st.Mode().IsRegular() {
			out = append(out, Info{Name: e.Name(), Size: st.Size(), SetAside: e.Name() != name})
		}
	}
	slices.SortFunc(out, func(a, b Info) int {
		switch {
		case a.SetAside == b.SetAside:
			return strings.Compare(a.Name, b.Name)
		case a.SetAside:
			return -1
		}
		return 1
	})
	return out, nil
}

// isFile reports whether a name is the sink's, as it is or set aside.
func isFile(s, name string) bool {
	rest, ok := strings.CutPrefix(s, name)
	if !ok || rest == "" {
		return ok
	}
	return rest[0] == '.' && len(rest) == 1+len(asideFormat) && strings.Trim(rest[1:], "0123456789TZ.") == ""
}

// Piece is a part of a file, as ReadFile found it.
type Piece struct {
	N    int    // bytes read
	Size int64  // of the file
	ID   uint64 // identifies the file behind the name; 0 if unknown
}

// Read reads bytes of one of Files into b. file is untrusted input; name is that of the
// sink.
func Read(dir, name, file string, offset int64, b []byte) (p Piece, err error) {
	if file == "" {
		file = name
	}
	if !isFile(file, name) {
		return p, fmt.Errorf("sink file %.80q: allowed: %s, or one of it that was set aside", file, name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p, err
	}
	defer func() { _ = root.Close() }()
	// Stat before opening: opening other kinds of files may block.
	if st, err := root.Lstat(file); err != nil {
		return p, err
	} else if !st.Mode().IsRegular() {
		return p, fmt.Errorf("sink file %s: it is not a regular file", file)
	}
	f, err := root.Open(file)
	if err != nil {
		return p, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return p, err
	}
	p.Size, p.ID = st.Size(), fileID(st)
	p.N, err = f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p, err
}
