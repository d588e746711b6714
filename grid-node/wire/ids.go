package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// PartitionID names one partition of the grid: shard<<4 | index.
// 4096 shards of at most 16 partitions.
type PartitionID uint16

// Limits of the two parts of a PartitionID.
const (
	MaxShards             = 4096
	MaxPartitionsPerShard = 16
)

// MakePartitionID puts shard (0..4095) and index (0..15) together.
func MakePartitionID(shard, index int) (PartitionID, error) {
	if shard < 0 || shard >= MaxShards {
		return 0, fmt.Errorf("partition: shard is %d, allowed: 0..%d", shard, MaxShards-1)
	}
	if index < 0 || index >= MaxPartitionsPerShard {
		return 0, fmt.Errorf("partition: index is %d, allowed: 0..%d", index, MaxPartitionsPerShard-1)
	}
	return PartitionID(shard<<4 | index), nil
}

// Shard is the number of the shard, 0..4095.
func (p PartitionID) Shard() int { return int(p >> 4) }

// Index is the partition's place in its shard, 0..15.
func (p PartitionID) Index() int { return int(p & 15) }

// AppendText appends the text form, for example "s0p1".
func (p PartitionID) AppendText(dst []byte) []byte {
	dst = append(dst, 's')
	dst = strconv.AppendUint(dst, uint64(p>>4), 10)
	dst = append(dst, 'p')
	return strconv.AppendUint(dst, uint64(p&15), 10)
}

// String is the text form, for example "s0p1".
func (p PartitionID) String() string { return string(p.AppendText(nil)) }

// ParsePartitionID reads the text form.
func ParsePartitionID(s string) (PartitionID, error) {
	rest, ok := strings.CutPrefix(s, "s")
	shard, index, ok2 := strings.Cut(rest, "p")
	a, err1 := parseDigits(shard)
	b, err2 := parseDigits(index)
	if !ok || !ok2 || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("partition is %.40q, allowed: s<shard>p<index>, for example s0p1", s)
	}
	return MakePartitionID(a, b)
}

func parseDigits(s string) (int, error) {
	if s == "" || len(s) > 5 || s[0] == '+' || s[0] == '-' || len(s) > 1 && s[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

// OrderID is the grid order id: where an order stands in its partition's log.
type OrderID struct {
	Partition PartitionID
	Seq       uint64
}

// String is the text form, for example "s0p1/17".
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
		return OrderID{}, fmt.Errorf("order id is %.60q, allowed: <partition>/<seq>, for example s0p1/17", s)
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

// FormatMemberID puts a member id together: "<pod>/<16 hex digits>".
func FormatMemberID(pod string, boot uint64) string {
	return pod + "/" + FormatBootID(boot)
}

// FormatBootID is the 16 lower-case hex digits of a boot id.
func FormatBootID(boot uint64) string { return fmt.Sprintf("%016x", boot) }

// ParseMemberID takes a member id apart. The boot id is what frames between
// replicas carry; it is never 0.
func ParseMemberID(s string) (pod string, boot uint64, err error) {
	pod, hex, ok := strings.Cut(s, "/")
	if ok && pod != "" && len(hex) == 16 && strings.ToLower(hex) == hex {
		if boot, err = strconv.ParseUint(hex, 16, 64); err == nil && boot != 0 {
			return pod, boot, nil
		}
	}
	return "", 0, fmt.Errorf("member id is %.80q, allowed: <pod name>/<16 lower-case hex digits, not all 0>", s)
}
