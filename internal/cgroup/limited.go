package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Limited is a control group created below the one of this process, to give the processes in it a
// CPU quota: for tests. Root only.
type Limited struct {
	dir string
	v2  bool
}

// NewLimited creates a group without a quota, in a hierarchy in which the kernel allows it. Remove
// it after use.
func NewLimited() (*Limited, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may create a control group")
	}
	self, err := Self()
	if err != nil {
		return nil, err
	}
	var reasons error
	for _, try := range []struct {
		parent string
		v2     bool
	}{{self.v2, true}, {self.cpu, false}} {
		if try.parent == "" {
			continue
		}
		dir, err := os.MkdirTemp(try.parent, "ordergrid-test-")
		if err != nil {
			reasons = errors.Join(reasons, err)
			continue
		}
		l := &Limited{dir, try.v2}
		err = l.Quota(0, 0)
		if err == nil {
			return l, nil
		}
		reasons = errors.Join(reasons, err, l.Remove())
	}
	return nil, fmt.Errorf("no control group with a CPU quota can be created here: %w", reasons)
}

// Procs is the file that adds a process by its id to the group, with the processes that it starts.
func (l *Limited) Procs() string { return filepath.Join(l.dir, "cgroup.procs") }

// Quota lets all processes of the group together run for quota in every period; a quota of 0
// removes it.
func (l *Limited) Quota(quota, period time.Duration) error {
	us := func(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
	switch {
	case l.v2 && quota == 0:
		return l.write("cpu.max", "max")
	case l.v2:
		return l.write("cpu.max", us(quota)+" "+us(period))
	case quota == 0:
		return l.write("cpu.cfs_quota_us", "-1")
	}
	return errors.Join(l.write("cpu.cfs_period_us", us(period)), l.write("cpu.cfs_quota_us", us(quota)))
}

// write creates no file: a missing one means a disabled controller.
func (l *Limited) write(name, text string) error {
	f, err := os.OpenFile(filepath.Join(l.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Remove waits for the kernel to remove the processes of the group.
func (l *Limited) Remove() error {
	var err error
	for range 100 {
		if err = os.Remove(l.dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
