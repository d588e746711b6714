package nodefeatures

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoPrivilege means that the result would describe this process, not the node.
var errNoPrivilege = errors.New("needs the capabilities SYS_ADMIN (a network namespace of its own) and NET_ADMIN")

// Probe tries every feature. It needs CAP_SYS_ADMIN and CAP_NET_ADMIN, and fails without them
// rather than reporting a feature as unsupported.
func Probe(node string) (*Report, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return nil, fmt.Errorf("uname: %w", err)
	}
	r := &Report{Node: node, Kernel: unix.ByteSliceToString(uts.Release[:]), Arch: runtime.GOARCH, Features: map[Name]Feature{}}
	trials := map[Name]func() error{Stress: tryStress, Time: tryTime, Fuse: tryFuse}
	for name, try := range trials {
		if err := r.note(name, try()); err != nil {
			return nil, err
		}
	}
	return r, r.probeNetwork()
}

// probeNetwork tries the features of a network namespace in a new one, on a thread that ends with
// it.
func (r *Report) probeNetwork() error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread dies, and the namespace with it
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("a network namespace: %w: %w", err, errNoPrivilege)
			return
		}
		done <- r.tryNetwork()
	}()
	return <-done
}

func (r *Report) tryNetwork() error {
	link, err := newQdiscs()
	if err != nil {
		return err
	}
	defer link.Close()
	tables, err := newXtables()
	if err != nil {
		return err
	}
	defer tables.Close()
	for name, try := range map[Name]func() error{
		Netem:             link.netem,
		TBF:               link.tbf,
		Prio:              link.prio,
		IPTables:          tables.filter,
		IPTablesStatistic: func() error { return tables.match("statistic") },
		IPTablesReject:    func() error { return tables.target("REJECT") },
		IPSet:             func() error { return errors.Join(tables.match("set"), tryIPSets()) },
		NFQueue:           func() error { return errors.Join(tables.target("NFQUEUE"), tryQueue()) },
	} {
		if err := r.note(name, try()); err != nil {
			return err
		}
	}
	return nil
}

// note records a trial. A lack of privilege proves nothing about the node.
func (r *Report) note(name Name, err error) error {
	if name != Time && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)) {
		return fmt.Errorf("%s: %w: %w", name, err, errNoPrivilege)
	}
	f := Feature{Supported: err == nil}
	if err != nil {
		f.Reason = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	r.Features[name] = f
	return nil
}
