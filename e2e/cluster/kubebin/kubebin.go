package kubebin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// CacheRoot is the directory all builds live in: $XDG_CACHE_HOME or ~/.cache,
// then ordergrid/bin.
func CacheRoot() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the binary cache: %w; set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "ordergrid", "bin"), nil
}

// Dir returns where the programs of the checkout at root are, or will be once
// Ensure has run. It does not build.
func Dir(ctx context.Context, root string) (string, error) {
	cache, err := CacheRoot()
	if err != nil {
		return "", err
	}
	id, err := key(ctx, filepath.Join(root, moduleDir))
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, id), nil
}

// Ensure builds the programs unless the cache holds them and returns their
// directory. Callers in several processes wait for the first one's build.
// report is given lines of progress and may be called every few seconds.
func Ensure(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	dir, err := Dir(ctx, root)
	if err != nil || complete(dir) {
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
	if complete(dir) {
		return dir, nil
	}
	// A directory appears under its final name only when it is whole.
	work := dir + ".partial"
	if err := errors.Join(os.RemoveAll(work), os.RemoveAll(dir), os.MkdirAll(work, 0o755)); err != nil {
		return "", err
	}
	if err := build(ctx, filepath.Join(root, moduleDir), work, report); err != nil {
		return "", err
	}
	for _, name := range links {
		if err := os.Symlink("hyperkube", filepath.Join(work, name)); err != nil {
			return "", err
		}
	}
	if err := os.Rename(work, dir); err != nil {
		return "", err
	}
	return dir, pointCurrent(dir)
}

// complete tells whether dir holds every program. Ensure renames it into place
// as a whole, so what is missing was removed by hand.
func complete(dir string) bool {
	for _, name := range append([]string{"hyperkube", "coredns", "helm", "pause"}, links...) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
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

// Names lists the programs by the names they are called by.
func Names() string { return strings.Join(append([]string{"coredns", "helm"}, links...), " ") }
