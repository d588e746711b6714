package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// directory is a Store on a file system, such as a PersistentVolume.
type directory struct{ root string }

const temporary = ".tmp-"

// OpenDir returns the archive in a directory, which a writer makes if it is not there.
func OpenDir(root string) (Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	return &directory{root}, nil
}

func (d *directory) String() string { return "file://" + d.root }

func (d *directory) Close() error { return nil }

func (d *directory) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// Create writes a file beside, makes it durable, and links it to its name, which fails where there is one.
func (d *directory) Create(_ context.Context, name string, data []byte) error {
	path := d.path(name)
	dir := filepath.Dir(path)
	if err := d.mkdir(dir); err != nil {
		return dirError(dir, err)
	}
	beside := filepath.Join(dir, temporary+rand.Text())
	defer os.Remove(beside) //nolint:errcheck // the next writer that opens removes what is left
	if err := writeFile(beside, data); err != nil {
		return dirError(path, err)
	}
	fault("dir-written")
	if err := os.Link(beside, path); errors.Is(err, fs.ErrExist) {
		return ErrExists
	} else if err != nil {
		return dirError(path, err)
	}
	fault("dir-linked")
	return dirError(dir, syncDir(dir))
}

// mkdir makes a directory durable with those above it.
func (d *directory) mkdir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for dir != d.root && len(dir) > len(d.root) {
		dir = filepath.Dir(dir)
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// dirError tells what an administrator has to mend from what may pass, such as a full disk.
func dirError(path string, err error) error {
	remedy := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		remedy = "the process has to be allowed to write there"
	case errors.Is(err, unix.EROFS):
		remedy = "mount the volume for writing"
	case errors.Is(err, unix.ENOTDIR):
		remedy = "name a directory"
	case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EPERM):
		remedy = "take a file system with hard links: creation of a segment is exclusive by them"
	default:
		return fmt.Errorf("archive: %w", err)
	}
	return &sink.PermanentError{What: "archive " + path, Remedy: remedy, Err: err}
}

func (d *directory) Open(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		f.Close() //nolint:errcheck // it is not used
		return nil, err
	}
	return f, nil
}

func (d *directory) Exists(_ context.Context, name string) (bool, error) {
	_, err := os.Stat(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// List walks the directory that the prefix ends in. Directories are read by name.
func (d *directory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		top := d.root
		if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
			top = d.path(prefix[:i])
		}
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile, or was never made
				return nil
			case err != nil || ctx.Err() != nil:
				return errors.Join(err, ctx.Err())
			case e.IsDir() || strings.HasPrefix(e.Name(), temporary):
				return nil
			}
			rel, err := filepath.Rel(d.root, path)
			name := filepath.ToSlash(rel)
			if err != nil || !strings.HasPrefix(name, prefix) {
				return err
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if !yield(Object{Name: name, Size: info.Size()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Object{}, dirError(top, err))
		}
	}
}

// Folders lists a directory.
func (d *directory) Folders(_ context.Context, prefix string) (names []string, err error) {
	found, err := os.ReadDir(d.path(prefix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range found {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, dirError(d.path(prefix), err)
}

func (d *directory) Delete(_ context.Context, name string) error {
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return dirError(name, err)
	}
	return nil
}

// sweep removes files that a killed writer left before they had a name.
func (d *directory) sweep(prefix string) {
	found, err := filepath.Glob(filepath.Join(d.path(prefix), "*", temporary+"*"))
	if err != nil {
		return
	}
	for _, path := range found {
		os.Remove(path) //nolint:errcheck // the next writer tries again
	}
}
