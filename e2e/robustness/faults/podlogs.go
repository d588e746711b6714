package faults

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// podLogs copies what containers write, as they write it: the kubelet keeps the last
// two processes of a container and nothing of a pod that is gone, and a run ends many.
type podLogs struct {
	pattern string // of the files of containers: …/NAMESPACE_POD_UID/CONTAINER/N.log
	dir     string // gets one file per pod

	open  []*podLog
	stop  context.CancelFunc
	ended sync.WaitGroup
	errs  error
}

type podLog struct {
	from *os.File
	info os.FileInfo // of from, to know it again under another name
	to   string
}

// logsLook is how often files are looked at: a container that ends is kept longer.
const logsLook = 200 * time.Millisecond

// followPodLogs copies from the files that pattern matches, from their beginning on,
// until Close.
func followPodLogs(pattern, dir string) (*podLogs, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &podLogs{pattern: pattern, dir: dir, stop: cancel}
	l.ended.Go(func() {
		for ctx.Err() == nil {
			l.look()
			select {
			case <-ctx.Done():
			case <-time.After(logsLook):
			}
		}
	})
	return l, nil
}

// Close copies the rest and returns what could not be copied.
func (l *podLogs) Close() error {
	l.stop()
	l.ended.Wait()
	l.look()
	for _, p := range l.open {
		l.errs = errors.Join(l.errs, p.from.Close())
	}
	return l.errs
}

// look finds new files and copies what all of them have more. One that was renamed or
// removed in the meantime is still read to its end.
func (l *podLogs) look() {
	names, err := filepath.Glob(l.pattern)
	if err != nil {
		l.fail(err)
	}
	for _, name := range names {
		l.find(name)
	}
	for _, p := range l.open {
		l.fail(p.copy())
	}
}

func (l *podLogs) find(name string) {
	info, err := os.Stat(name)
	if err != nil {
		return // it was just removed
	}
	for _, p := range l.open {
		if os.SameFile(p.info, info) {
			return
		}
	}
	f, err := os.Open(name)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			l.fail(err)
		}
		return
	}
	if info, err = f.Stat(); err != nil {
		l.fail(errors.Join(err, f.Close()))
		return
	}
	// NAMESPACE_POD_UID: none of the three has an underscore.
	pod := strings.Split(filepath.Base(filepath.Dir(filepath.Dir(name))), "_")
	to := pod[min(1, len(pod)-1)]
	l.open = append(l.open, &podLog{from: f, info: info, to: filepath.Join(l.dir, to+".log")})
}

// fail keeps the first few errors: the same one repeats at every poll.
func (l *podLogs) fail(err error) {
	if err != nil && l.errs == nil {
		l.errs = err
	}
}

func (p *podLog) copy() (err error) {
	rest, err := io.ReadAll(p.from)
	if len(rest) == 0 || err != nil {
		return err
	}
	to, err := os.OpenFile(p.to, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = to.Write(rest)
	return err
}
