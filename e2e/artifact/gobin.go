package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Set is programs that are built together.
type Set struct {
	// Module is its place below the repository root.
	Module string
	// Cache is the directory of the builds, below ordergrid in the user's cache.
	Cache string
	// What the modules are of, for people.
	What string
	// Mains are built in this order.
	Mains []string
	// Tags are build tags, LDFlags those of the linker, both beside Flags.
	Tags, LDFlags string
	// Programs are the files that come of it.
	Programs []string
	// Links are further names of LinkTo, one of Programs.
	Links  []string
	LinkTo string

	// CGO builds with a C compiler.
	CGO bool
	// Prepare makes what the sources lack before they are compiled, and may put
	// programs of its own beside the others. Recipe names what it does, for the key.
	Prepare func(context.Context, Preparation) (flags []string, err error)
	Recipe  string
}

// Preparation is what Set.Prepare works with.
type Preparation struct {
	Root    string // the checkout
	Module  string // directory of the module, not to be changed
	Scratch string // an empty directory that goes when the build is over
	Out     string // where the programs go
	Report  func(format string, args ...any)
}

// CacheRoot is the directory all builds live in: $XDG_CACHE_HOME or ~/.cache,
// then ordergrid and s.Cache.
func (s *Set) CacheRoot() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the binary cache: %w; set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "ordergrid", s.Cache), nil
}

// Dir returns where the programs of the checkout at root are, or will be once
// Ensure has run. It does not build.
func (s *Set) Dir(ctx context.Context, root string) (string, error) {
	cache, err := s.CacheRoot()
	if err != nil {
		return "", err
	}
	id, err := s.key(ctx, filepath.Join(root, s.Module))
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, id), nil
}

// Ensure builds the programs unless the cache holds them and returns their
// directory. Callers in several processes wait for the first one's build.
// report is given lines of progress and may be called every few seconds.
func (s *Set) Ensure(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	dir, err := s.Dir(ctx, root)
	if err != nil || s.complete(dir) {
		return dir, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(dir+".lock", report)
	if err != nil {
		return "", err
	}
	defer unlock()
	if s.complete(dir) {
		return dir, nil
	}
	// A directory appears under its final name only when it is whole.
	work, scratch := dir+".partial", dir+".scratch"
	if err := errors.Join(os.RemoveAll(work), os.RemoveAll(scratch), os.RemoveAll(dir), os.MkdirAll(work, 0o755), os.MkdirAll(scratch, 0o755)); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	p := Preparation{Root: root, Module: filepath.Join(root, s.Module), Scratch: scratch, Out: work, Report: report}
	if err := s.build(ctx, p); err != nil {
		return "", err
	}
	for _, name := range s.Links {
		if err := os.Symlink(s.LinkTo, filepath.Join(work, name)); err != nil {
			return "", err
		}
	}
	if err := os.Rename(work, dir); err != nil {
		return "", err
	}
	return dir, pointCurrent(dir)
}

// complete reports whether dir holds every program. Ensure renames it into place
// as a whole, so what is missing was removed by hand.
func (s *Set) complete(dir string) bool {
	for _, names := range [][]string{s.Programs, s.Links} {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				return false
			}
		}
	}
	return true
}

// pointCurrent makes the link "current" name the newest build, for people and
// for tools that cannot compute the key.
func pointCurrent(dir string) error {
	link := filepath.Join(filepath.Dir(dir), "current")
	fresh := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(filepath.Base(dir), fresh); err != nil {
		return err
	}
	return os.Rename(fresh, link)
}

// lock takes the file lock, saying so when another process holds it.
func lock(path string, report func(string, ...any)) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	fd := int(file.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		report("another process is building these binaries; waiting for it")
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
	return func() { file.Close() }, nil
}
