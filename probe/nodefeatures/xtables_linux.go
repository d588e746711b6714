package nodefeatures

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From <linux/netfilter_ipv4/ip_tables.h>; constants of the kernel's interface.
const (
	iptSoGetInfo           = 64
	iptSoGetRevisionMatch  = 66
	iptSoGetRevisionTarget = 67
)

// xtRevision is struct xt_get_revision.
type xtRevision struct {
	name     [29]byte
	revision uint8
}

// iptInfo is struct ipt_getinfo.
type iptInfo struct {
	name       [32]byte
	validHooks uint32
	hookEntry  [5]uint32
	underflow  [5]uint32
	entries    uint32
	size       uint32
}

// xtables queries the kernel's side of iptables-legacy, which is used by Chaos Mesh's daemon. The
// kernel loads requested modules, as for iptables.
type xtables struct{ fd int }

func newXtables() (*xtables, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	return &xtables{fd}, nil
}

func (x *xtables) Close() { _ = unix.Close(x.fd) }

// get is getsockopt with an input value, which package unix lacks.
func (x *xtables) get(option int, value unsafe.Pointer, size uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(x.fd), unix.SOL_IP, uintptr(option), uintptr(value), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (x *xtables) filter() error {
	info := iptInfo{}
	copy(info.name[:], "filter")
	err := x.get(iptSoGetInfo, unsafe.Pointer(&info), uint32(unsafe.Sizeof(info)))
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.ENOENT) {
		return errors.New("the kernel has no iptables-legacy filter table")
	}
	return err
}

func (x *xtables) match(name string) error {
	return x.extension(iptSoGetRevisionMatch, "match", name)
}

func (x *xtables) target(name string) error {
	return x.extension(iptSoGetRevisionTarget, "target", name)
}

func (x *xtables) extension(option int, what, name string) error {
	question := xtRevision{}
	copy(question.name[:], name)
	err := x.get(option, unsafe.Pointer(&question), uint32(unsafe.Sizeof(question)))
	// EPROTONOSUPPORT means that the extension exists in other revisions only, or not at all;
	// ENOENT that it does not exist.
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return fmt.Errorf("the kernel has no iptables %s %s", what, name)
	}
	return err
}
