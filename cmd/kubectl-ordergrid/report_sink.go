package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// reportSink writes the files of a report: into a folder, or a tar.gz.
type reportSink struct {
	path string
	file *os.File // nil for a folder
	zip  *gzip.Writer
	tar  *tar.Writer
	root string // folder inside the archive
	now  time.Time
}

// newReportSink creates the target, readable by its owner only. An existing one is not changed.
func newReportSink(path string, now time.Time) (*reportSink, error) {
	s := &reportSink{path: path, now: now}
	name, archive := strings.CutSuffix(filepath.Base(path), ".tar.gz")
	if !archive {
		name, archive = strings.CutSuffix(filepath.Base(path), ".tgz")
	}
	var err error
	if !archive {
		err = os.Mkdir(path, 0o700)
	} else if s.file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		s.root, s.zip = name, gzip.NewWriter(s.file)
		s.tar = tar.NewWriter(s.zip)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, usageError{fmt.Errorf("--out: %s exists already; name another file or folder", path)}
	}
	return s, err
}

func (s *reportSink) add(name string, data []byte) error {
	if s.file == nil {
		to := filepath.Join(s.path, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	}
	if err := s.tar.WriteHeader(&tar.Header{Name: s.root + "/" + name, Mode: 0o600, Size: int64(len(data)), ModTime: s.now, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := s.tar.Write(data)
	return err
}

func (s *reportSink) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.tar.Close(), s.zip.Close(), s.file.Close())
}
