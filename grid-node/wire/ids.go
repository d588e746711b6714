package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// PartitionID is the number of a partition of the grid, 0..MaxPartitions-1. The partitions
// of a grid never change, wherever their copies are.
type PartitionID uint16

// MaxPartitions is how many partitions a grid may have.
const MaxPartitions = 1024

// MakePartitionID checks the number of a partition.
func MakePartitionID(n int) (PartitionID, error) {
	if n < 0 || n >= MaxPartitions {
		return 0, fmt.Errorf("partition is %d, allowed: 0..%d", n, MaxPartitions-1)
	}
	return PartitionID(n), nil
}

// AppendText appends the text form, for example "p1".
func (p PartitionID) AppendText(dst []byte) []byte {
	return strconv.AppendUint(append(dst, 'p'), uint64(p), 10)
}

// String is the text form, for example "p1".
func (p PartitionID) String() string { return string(p.AppendText(nil)) }

// ParsePartitionID reads the text form.
func ParsePartitionID(s string) (PartitionID, error) {
	digits, ok := strings.CutPrefix(s, "p")
	n, err := parseDigits(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("partition is %.40q, allowed: p<number>, for example p1", s)
	}
	return MakePartitionID(n)
}

func parseDigits(s string) (int, error) {
	if s == "" || len(s) > 5 || s[0] == '+' || s[0] == '-' || len(s) > 1 && s[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

// OrderID is the grid order id: the position of an order in its partition's log.
type OrderID struct {
	Partition PartitionID
	Seq       uint64
}

// String is the text form, for example "p1/17".
func (id OrderID) String() string {
	b := make([]byte, 0, 32)
	b = id.Partition.AppendText(b)
	b = append(b, '/')
	return string(strconv.AppendUint(b, id.Seq, 10))
}

// ParseOrderID reads the text form.
func ParseOrderID(s string) (OrderID, error) {
	part, seq, ok := strings.Cut(s, "/")
	if !ok {
		return OrderID{}, fmt.Errorf("order id is %.60q, allowed: <partition>/<seq>, for example p1/17", s)
	}
	p, err := ParsePartitionID(part)
	if err != nil {
		return OrderID{}, fmt.Errorf("order id: %w", err)
	}
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil || n == 0 || seq[0] == '0' {
		return OrderID{}, fmt.Errorf("order id: seq is %.40q, allowed: 1..18446744073709551615", seq)
	}
	return OrderID{Partition: p, Seq: n}, nil
}

// FormatMemberID composes a member id: "<pod>/<16 hex digits>".
func FormatMemberID(pod string, boot uint64) string {
	return pod + "/" + FormatBootID(boot)
}

// FormatBootID is the 16 lower-case hex digits of a boot id.
func FormatBootID(boot uint64) string { return fmt.Sprintf("%016x", boot) }

// ParseMemberID parses a member id. Frames between replicas carry the boot id; it is never
// 0.
func ParseMemberID(s string) (pod string, boot uint64, err error) {
	pod, hex, ok := strings.Cut(s, "/")
	if ok && pod != "" && len(hex) == 16 && strings.ToLower(hex) == hex {
		if boot, err = strconv.ParseUint(hex, 16, 64); err == nil && boot != 0 {
			return pod, boot, nil
		}
	}
	return "", 0, fmt.Errorf("member id is %.80q, allowed: <pod name>/<16 lower-case hex digits, not all 0>", s)
}
