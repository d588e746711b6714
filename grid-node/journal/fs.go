package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is the directory of a journal. The simulator has one whose power can be cut.
type FS interface {
	List() ([]string, error)
	Read(name string) ([]byte, error)
	Create(name string) (File, error)  // an empty file; one of this name must not exist
	Cut(name string, size int64) error // to a size, and makes it durable
	Rename(from, to string) error
	Remove(name string) error
	Sync() error // makes the names durable
}

// File is appended to. After an error of Write, Truncate removes what it left.
type File interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Sync() error // makes the content durable
	Close() error
}

// dir is a directory of the operating system.
type dir string

// Dir makes a directory, if it does not exist, readable by this user only.
func Dir(path string) (FS, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return dir(path), nil
}

func (d dir) path(name string) string { return filepath.Join(string(d), name) }

func (d dir) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d dir) Read(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

func (d dir) Create(name string) (File, error) {
	return os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

func (d dir) Cut(name string, size int64) error {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

func (d dir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d dir) Remove(name string) error { return os.Remove(d.path(name)) }

func (d dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// asideDir is beside the partitions' directories.
const asideDir = "aside"

// reasonFile is in a journal that was set aside.
const reasonFile = "REASON.txt"

// SetAside moves the journal in path to the directory "aside" beside it, with the reason,
// and returns where it is. A journal that was set aside is never used nor removed.
func SetAside(path, reason string) (to string, err error) {
	parent := filepath.Join(filepath.Dir(path), asideDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		to = filepath.Join(parent, fmt.Sprintf("%s-%d", filepath.Base(path), n))
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err := os.WriteFile(filepath.Join(path, reasonFile), []byte(reason+"\n"), 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(path, to); err != nil {
		return "", err
	}
	return to, dir(filepath.Dir(path)).Sync()
}
