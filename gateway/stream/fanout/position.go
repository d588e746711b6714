package fanout

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is the place of a message in its partition: the number of its entry in the log, and which of the messages of
// that entry it is. The zero Position is before all messages.
type Position struct {
	Seq   uint64
	Index uint32
}

// Before reports whether p is an earlier place than q.
func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// String returns 17, or 17.2 for the message of index 2.
func (p Position) String() string {
	if p.Index == 0 {
		return strconv.FormatUint(p.Seq, 10)
	}
	return fmt.Sprintf("%d.%d", p.Seq, p.Index)
}

// MaxPartitions bounds the partitions of a hub, and so a token.
const MaxPartitions = 1024

// Token reports what a subscription has: of each partition named, all that matches up to the position. A subscription that
// resumes from it gets what is behind. Of a partition that is not named it gets new messages only.
type Token struct {
	Lineage uint32
	At      []PartitionPosition // by rising partition
}

// PartitionPosition is a position of one partition.
type PartitionPosition struct {
	Partition int
	At        Position
}

// String returns the token as text, like 3.p0:17,p1:9.2.
func (t Token) String() string {
	b := strconv.AppendUint(nil, uint64(t.Lineage), 10)
	for i, p := range t.At {
		sep := byte(',')
		if i == 0 {
			sep = '.'
		}
		b = append(b, sep, 'p')
		b = append(strconv.AppendInt(b, int64(p.Partition), 10), ':')
		b = append(b, p.At.String()...)
	}
	return string(b)
}

const allowedToken = "LINEAGE.pPARTITION:SEQ,… by rising partition, as a message or gap named it, like 3.p0:17,p1:9.2"

// ParseToken reads what String wrote.
func ParseToken(text string) (Token, error) {
	bad := func() (Token, error) {
		return Token{}, fmt.Errorf("resume token is %.80q, allowed: %s", text, allowedToken)
	}
	if len(text) > 48*MaxPartitions {
		return bad()
	}
	lineage, list, more := strings.Cut(text, ".")
	n, ok := parseNumber(lineage, 32)
	if !ok || more && list == "" {
		return bad()
	}
	t := Token{Lineage: uint32(n)}
	if !more {
		return t, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		name, at, _ := strings.Cut(part, ":")
		if !strings.HasPrefix(name, "p") {
			return bad()
		}
		p, ok := parseNumber(name[1:], 32)
		if !ok || p >= MaxPartitions || len(t.At) > 0 && int(p) <= t.At[len(t.At)-1].Partition {
			return bad()
		}
		seq, index, has := strings.Cut(at, ".")
		s, ok := parseNumber(seq, 64)
		i := uint64(0)
		if has {
			var indexed bool
			i, indexed = parseNumber(index, 32)
			ok = ok && indexed && i > 0
		}
		if !ok {
			return bad()
		}
		t.At = append(t.At, PartitionPosition{int(p), Position{s, uint32(i)}})
	}
	return t, nil
}

// parseNumber reads digits without a leading zero.
func parseNumber(text string, bits int) (uint64, bool) {
	if text == "" || text[0] == '+' || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, bits)
	return n, err == nil
}

// Range is a part of a partition that a subscription has not got: all messages that match behind After up to Through.
type Range struct {
	Partition      int
	After, Through Position
	Count          uint64 // messages that matched; 0: not known
}

// Gap is what a subscription has missed at a place in its stream.
type Gap struct {
	Ranges []Range // one for each partition concerned
	User   int     // messages of clients, or Unknown; 0: none
}

// add extends the gap by one message, or by a range.
func (g *Gap) add(r Range) {
	for i := range g.Ranges {
		if k := &g.Ranges[i]; k.Partition == r.Partition {
			if r.After.Before(k.After) {
				k.After = r.After
			}
			if k.Through.Before(r.Through) {
				k.Through = r.Through
			}
			if k.Count += r.Count; r.Count == 0 {
				k.Count = 0
			}
			return
		}
	}
	g.Ranges = append(g.Ranges, r)
}
