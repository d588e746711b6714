package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lockFile is held by the process that writes the journals of a directory, and has its id.
const lockFile = "lock"

// lockPoll is how often a lock that another process has is tried again.
const lockPoll = 50 * time.Millisecond

// Lock takes a directory of journals for this process, and makes it if it does not exist:
// two processes that append to one journal would destroy it. A process that is about to end
// is waited for, until ctx ends. The kernel releases the lock when the process dies.
func Lock(ctx context.Context, path string) (release func() error, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		select {
		case <-ctx.Done():
			holder, _ := os.ReadFile(f.Name()) // for the message only
			return nil, errors.Join(fmt.Errorf("%s is locked by process %s, which writes the journals there; allowed: one node for each directory", f.Name(), strings.TrimSpace(string(holder))), f.Close())
		case <-time.After(lockPoll):
		}
	}
	if err == nil {
		err = errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintln(os.Getpid())))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), err), f.Close())
	}
	return f.Close, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}
